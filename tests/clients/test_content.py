"""Documents, search results, deferred tools and tools that the API defines, with the official client."""

from __future__ import annotations

import anthropic
import pytest

MODEL = "claude-sonnet-4-6"


def document(text: str, **more) -> dict:
    source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "document", "source": source, **more}


def asked(*blocks) -> list:
    return [{"role": "user", "content": [*blocks, {"type": "text", "text": "What does it say?"}]}]


def usage(client, **body):
    return client.messages.create(**{"model": MODEL, "max_tokens": 1, **body}).usage


def test_a_document_is_part_of_the_prompt_and_of_the_cache(tiny_client):
    text = "The tower is 330 metres high. " * 60
    marked = document(text, title="Towers", cache_control={"type": "ephemeral"})
    first = usage(tiny_client, messages=asked(marked))
    assert first.cache_creation_input_tokens > len(text)
    again = usage(tiny_client, messages=asked(marked))
    assert again.cache_read_input_tokens == first.cache_creation_input_tokens
    retitled = usage(tiny_client, messages=asked({**marked, "title": "Masts"}))
    assert retitled.cache_read_input_tokens == 0


def test_a_search_result_and_a_document_of_blocks_are_read(tiny_client):
    count = tiny_client.messages.count_tokens
    found = {
        "type": "search_result",
        "source": "https://a.example",
        "title": "Rivers",
        "content": [{"type": "text", "text": "x" * 500}],
        "citations": {"enabled": True},
    }
    parts = {
        "type": "document",
        "source": {"type": "content", "content": [{"type": "text", "text": "y" * 700}]},
    }
    bare = count(model=MODEL, messages=asked()).input_tokens
    assert count(model=MODEL, messages=asked(found)).input_tokens >= bare + 500
    assert count(model=MODEL, messages=asked(parts)).input_tokens >= bare + 700


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}, "PDF"),
        ({"type": "url", "url": "https://a.example/a.pdf"}, "URL"),
    ],
)
def test_what_is_not_text_is_refused_with_what_to_send(tiny_client, source, says):
    with pytest.raises(anthropic.BadRequestError, match=says) as refusal:
        usage(tiny_client, messages=asked({"type": "document", "source": source}))
    assert "text/plain" in refusal.value.message


def test_an_unknown_file_is_not_found(tiny_client):
    block = {"type": "document", "source": {"type": "file", "file_id": "file_011nothere"}}
    with pytest.raises(anthropic.NotFoundError, match="file_011nothere"):
        tiny_client.messages.create(
            model=MODEL,
            max_tokens=1,
            messages=asked(block),
            extra_headers={"anthropic-beta": "files-api-2025-04-14"},
        )


def test_tools_that_the_api_defines_count_as_input(tiny_client):
    tools = [
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
        {"type": "memory_20250818", "name": "memory"},
    ]
    count = tiny_client.messages.count_tokens
    sizes = [
        count(model=MODEL, messages=asked(), tools=tools[:n]).input_tokens
        for n in range(len(tools) + 1)
    ]
    assert sizes == sorted(set(sizes))
    with pytest.raises(anthropic.BadRequestError, match="does not support tool types: web_search"):
        usage(
            tiny_client,
            messages=asked(),
            tools=[{"type": "web_search_20250305", "name": "web_search"}],
        )


def test_a_tool_found_later_leaves_the_prefix_readable(tiny_client):
    def tool(name, **more):
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        return {"name": name, "description": name * 40, "input_schema": schema, **more}

    tools = [
        tool("find_tools", cache_control={"type": "ephemeral"}),
        tool("weather", defer_loading=True),
    ]
    system = [{"type": "text", "text": "s" * 2000, "cache_control": {"type": "ephemeral"}}]
    start = [{"role": "user", "content": "What is the weather?"}]
    found = [
        *start,
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "find_tools", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "tool_reference", "tool_name": "weather"}],
                }
            ],
        },
    ]
    first = usage(tiny_client, messages=start, tools=tools, system=system)
    second = usage(tiny_client, messages=found, tools=tools, system=system)
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens > 2000
    named_only = [*found]
    named_only[-1] = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "weather"}],
    }
    plain = usage(tiny_client, messages=named_only, tools=tools, system=system)
    assert second.input_tokens > plain.input_tokens + len("weather" * 40)
    with pytest.raises(anthropic.BadRequestError, match="'wind' not found in available tools"):
        found[-1]["content"][0]["content"][0]["tool_name"] = "wind"
        usage(tiny_client, messages=found, tools=tools, system=system)
