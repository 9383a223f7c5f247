"""Writes the bodies that tests/sdk/prompt_test.cpp expects of the prompt builder, with Python's own
JSON writer: compact, UTF-8 as it is, keys in the order that sdk/include/incipit/anthropic.h states.

    python3 tests/data/prompt/make_snapshots.py
"""

import json
import pathlib

FOLDER = pathlib.Path(__file__).parent
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def text(words, **more):
    return {"type": "text", "text": words, **more}


def user(*content):
    return {"role": "user", "content": list(content)}


def assistant(*content):
    return {"role": "assistant", "content": list(content)}


def call(ident, **given):
    return {"type": "tool_use", "id": ident, "name": "weather", "input": given}


def result(ident, *content, **more):
    block = {"type": "tool_result", "tool_use_id": ident}
    if content:
        block["content"] = list(content)
    return {**block, **more}


WEATHER = {
    "name": "weather",
    "description": "The weather of a city.",
    # Not in alphabetical order: it stays as it is.
    "input_schema": {
        "type": "object",
        "required": ["city"],
        "properties": {"city": {"type": "string"}, "celsius": {"type": "boolean"}},
    },
}

SNAPSHOTS = {
    "smallest": {
        "model": "claude-sonnet-5",
        "max_tokens": 4096,
        "messages": [user(text("Hello"))],
    },
    "characters": {
        "model": "claude-sonnet-5",
        "max_tokens": 1,
        "system": [text('"quoted" \\ and\ttabbed\r\n\b\f')],
        "messages": [user(text("naïve – 日本語 😀 \u2028 \x7f \x01 </script> &"))],
    },
    "tool_loop": {
        "model": "claude-opus-5-5",
        "max_tokens": 2048,
        "tools": [
            {**WEATHER, "cache_control": HOUR},
            {"type": "web_search_20260318", "name": "web_search", "max_uses": 3},
        ],
        "system": [text("You know the weather."), text("Be brief.", cache_control=HOUR)],
        "messages": [
            user(text("Prague and Oslo?")),
            assistant(
                {"type": "thinking", "thinking": "Two calls.", "signature": "c2ln"},
                text("I look."),
                call("toolu_1", city="Prague", celsius=True),
                call("toolu_2", city="Oslo"),
            ),
            user(
                result("toolu_1", text("18 °C")),
                result("toolu_2", text("no such city"), is_error=True),
                text("And tomorrow?", cache_control=MARK),
            ),
            {"role": "system", "content": [text("It is evening.")]},
            assistant(call("toolu_3", city="Brno")),
            user(result("toolu_3", cache_control=MARK)),
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "low"},
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u-1"},
    },
    "automatic": {
        "model": "claude-haiku-5-5",
        "max_tokens": 64,
        "system": [text("Describe what you see.")],
        "messages": [
            user(
                {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                text("What is this?"),
            )
        ],
        "cache_control": MARK,
    },
}

for name, body in SNAPSHOTS.items():
    compact = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    (FOLDER / f"{name}.json").write_bytes(compact.encode())
