"""Every refusal that the wire contract words: status, type, text and headers.

Sections 2, 4, 6, 7, 8, 11, 13 and rules W-2, W-5, W-9 of the wire contract; E-1 to E-10 of the
cache semantics. A plain string is the exact text, a compiled pattern what the text must match.
"""

from __future__ import annotations

import json
import re
import socket
import threading

import pytest

SONNET_4_6 = "claude-sonnet-4-6"
SONNET_4_5 = "claude-sonnet-4-5-20250929"
OPUS_5 = "claude-opus-5"
OPUS_5_5 = "claude-opus-5-5"
SONNET_5_5 = "claude-sonnet-5-5"
OPUS_4_8 = "claude-opus-4-8"

QUESTION = [{"role": "user", "content": "Hello?"}]
VALID = {"model": SONNET_4_6, "max_tokens": 1, "messages": QUESTION}
TOOL = {"name": "look", "input_schema": {"type": "object"}}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "seen"}
ABSENT = object()


def text(words: str, **more) -> dict:
    return {"type": "text", "text": words, **more}


def user(*blocks) -> dict:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks) -> dict:
    return {"role": "assistant", "content": list(blocks)}


def marker(**more) -> dict:
    return {"cache_control": {"type": "ephemeral", **more}}


def marked(count: int, **more) -> list:
    return [text(f"{n}", **marker(**more)) for n in range(count)]


def tools(*more: dict) -> dict:
    return {"tools": list(more)}


def pattern(words: str) -> re.Pattern:
    return re.compile(words, re.DOTALL)


def thinking(kind: str, **more) -> dict:
    return {"thinking": {"type": kind, **more}}


def manual(model: str) -> dict:
    return {"model": model, "max_tokens": 2000, **thinking("enabled", budget_tokens=1024)}


def schema_of(**more) -> dict:
    return {"output_config": {"format": {"type": "json_schema", "schema": more}}}


UNPAIRED = (
    "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)
UNASKED = (
    "messages.{}: unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` "
    "block must have a corresponding `tool_use` block in the previous message."
)
FORCED = 'tool_choice: type "tool" and "any" are not supported for this model.'
NO_PREFILL = (
    "This model does not support assistant message prefill. "
    "The conversation must end with a user message."
)
USE_ADAPTIVE = (
    '"thinking.type.{}" is not supported for this model. Use "thinking.type.adaptive" and '
    '"output_config.effort" to control thinking behavior.'
)
BETWEEN = '"thinking.type.between_tools" is not supported for this model.'
ORDER = (
    "{}cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
    "cache_control block. Note that blocks are processed in the following order: `tools`, "
    "`system`, `messages`."
)
TTL = "cache_control.ephemeral.ttl: Input should be '5m' or '1h'"
EXTRA = "{}: Extra inputs are not permitted"
FOUND = "A maximum of 4 blocks with cache_control may be provided. Found {}."
THOUGHT = {"type": "thinking", "thinking": "Hm", "signature": "c2ln", **marker()}
HIDDEN = {"type": "redacted_thinking", "data": "c2ln", **marker()}

BODIES = {
    # Section 4.
    "no model": ({"model": ABSENT}, "model: Field required"),
    "no max_tokens": ({"max_tokens": ABSENT}, "max_tokens: Field required"),
    "no messages": ({"messages": ABSENT}, "messages: Field required"),
    "model a number": ({"model": 4}, "model: Input should be a valid string"),
    "max_tokens a string": ({"max_tokens": "1"}, "max_tokens: Input should be a valid integer"),
    "max_tokens a fraction": (
        {"max_tokens": 1.5},
        pattern("^max_tokens: Input should be a valid integer"),
    ),
    "max_tokens true": ({"max_tokens": True}, "max_tokens: Input should be a valid integer"),
    "max_tokens below 0": ({"max_tokens": -1}, "max_tokens: must be greater than or equal to 0"),
    "max_tokens above the cap": (
        {"model": SONNET_4_5, "max_tokens": 64001},
        "max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for "
        + SONNET_4_5,
    ),
    "max_tokens far above": (
        {"model": OPUS_5, "max_tokens": 128001},
        "max_tokens: 128001 > 128000, which is the maximum allowed number of output tokens for "
        + OPUS_5,
    ),
    "extra key": ({"colour": "red"}, EXTRA.format("colour")),
    "extra key in a message": (
        {"messages": [{**QUESTION[0], "name": "Ada"}]},
        EXTRA.format("messages.0.name"),
    ),
    "extra key in a block": (
        {"messages": [user(text("x", colour="red"))]},
        EXTRA.format("messages.0.content.0.text.colour"),
    ),
    "extra key in metadata": ({"metadata": {"team": "x"}}, EXTRA.format("metadata.team")),
    "user_id a number": (
        {"metadata": {"user_id": 5}},
        pattern(r"^metadata\.user_id: Input should be a valid string"),
    ),
    "blank stop sequence": (
        {"stop_sequences": [" \n"]},
        "stop_sequences: each stop sequence must contain non-whitespace",
    ),
    "stop sequences not a list": ({"stop_sequences": "x"}, pattern("^stop_sequences: Input should")),
    "stream a word": ({"stream": "yes"}, pattern("^stream: Input should be a valid boolean")),
    "temperature above 1": (
        {"temperature": 1.01},
        "temperature: Input should be less than or equal to 1",
    ),
    "temperature below 0": (
        {"temperature": -0.1},
        "temperature: Input should be greater than or equal to 0",
    ),
    "temperature on a new model (W-5)": (
        {"model": OPUS_5, "temperature": 0.5},
        pattern("^temperature: "),
    ),
    "top_p on a new model (W-5)": ({"model": OPUS_5, "top_p": 0.5}, pattern("^top_p: ")),
    "top_k on a new model (W-5)": ({"model": OPUS_5, "top_k": 5}, pattern("^top_k: ")),
    "unknown service tier": ({"service_tier": "gold"}, pattern("^service_tier: .*'standard_only'")),
    "system a number": ({"system": 5}, pattern("^system: Input should be a valid string")),
    "system with an image": (
        {"system": [{"type": "image", "source": {"type": "url", "url": "https://a.example/a.png"}}]},
        pattern(r"^system\.0"),
    ),
    "context_management without its beta": (
        {"context_management": {"edits": []}},
        EXTRA.format("context_management"),
    ),
    "mcp_servers without its beta": ({"mcp_servers": []}, EXTRA.format("mcp_servers")),
    "fallbacks without its beta": ({"fallbacks": "default"}, EXTRA.format("fallbacks")),
    "compaction without its beta": (
        {"compaction": {"type": "summarize"}},
        EXTRA.format("compaction"),
    ),
    "thread without its beta": ({"thread": {"type": "create"}}, EXTRA.format("thread")),
    # Section 4.1.
    "empty messages": ({"messages": []}, "messages: at least one message is required"),
    "messages a string": ({"messages": "x"}, pattern("^messages: Input should be a valid list")),
    "no role": ({"messages": [{"content": "x"}]}, "messages.0.role: Field required"),
    "no content": ({"messages": [{"role": "user"}]}, "messages.0.content: Field required"),
    "unknown role": (
        {"messages": [{"role": "tool", "content": "x"}]},
        pattern(r"^messages\.0\.role: Input should be 'user'"),
    ),
    "assistant first": (
        {"messages": [assistant(text("x")), user(text("y"))]},
        'messages: first message must use the "user" role',
    ),
    "empty text": (
        {"messages": [user(text(""))]},
        "messages: text content blocks must be non-empty",
    ),
    "blank text": (
        {"messages": [user(text(" \n "))]},
        "messages: text content blocks must contain non-whitespace text",
    ),
    "empty message": (
        {"messages": [*QUESTION, assistant(), *QUESTION]},
        "messages.1: all messages must have non-empty content except for the optional final "
        "assistant message",
    ),
    "prefill on a new model": (
        {"messages": [*QUESTION, assistant(text("Well"))]},
        NO_PREFILL,
    ),
    "prefill with a blank at its end": (
        {"model": SONNET_4_5, "messages": [*QUESTION, assistant(text("Well "))]},
        "messages: final assistant content cannot end with trailing whitespace",
    ),
    "system message first": (
        {"model": OPUS_5, "messages": [{"role": "system", "content": "x"}, *QUESTION]},
        pattern("^messages"),
    ),
    "system message on an older model": (
        {"messages": [*QUESTION, {"role": "system", "content": "x"}]},
        pattern("^messages"),
    ),
    "system message before a user message": (
        {"model": OPUS_5, "messages": [*QUESTION, {"role": "system", "content": "x"}, *QUESTION]},
        pattern("^messages"),
    ),
    # Section 4.2.
    "call without result": (
        {**tools(TOOL), "messages": [*QUESTION, assistant(CALL), user(text("And?"))]},
        UNPAIRED.format(1, "toolu_1"),
    ),
    "result without call": (
        {**tools(TOOL), "messages": [*QUESTION, assistant(text("Hm")), user(RESULT)]},
        UNASKED.format("2.content.0", "toolu_1"),
    ),
    "text before the results": (
        {**tools(TOOL), "messages": [*QUESTION, assistant(CALL), user(text("So:"), RESULT)]},
        pattern("^messages"),
    ),
    "one id twice": (
        {**tools(TOOL), "messages": [*QUESTION, assistant(CALL, CALL), user(RESULT)]},
        "messages: `tool_use` ids must be unique",
    ),
    "id with a blank": (
        {**tools(TOOL), "messages": [*QUESTION, assistant({**CALL, "id": "a b"}), user(RESULT)]},
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    # Section 5.
    "unknown block": (
        {"messages": [user({"type": "smell"})]},
        pattern(
            r"^messages\.0\.content\.0: Input tag 'smell' found using 'type' does not match any of "
            r"the expected tags: '.*'text'"
        ),
    ),
    "input not an object": (
        {**tools(TOOL), "messages": [*QUESTION, assistant({**CALL, "input": "x"}), user(RESULT)]},
        pattern(r"^messages\.1\.content\.0\.tool_use\.input: Input should be a valid dictionary"),
    ),
    "unknown caller": (
        {
            **tools(TOOL),
            "messages": [*QUESTION, assistant({**CALL, "caller": {"type": "x"}}), user(RESULT)],
        },
        pattern(r"^messages\.1\.content\.0"),
    ),
    # Section 6.
    "tool name": (
        tools({**TOOL, "name": "no blanks"}),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    "tool without schema": (tools({"name": "look"}), "tools.0.custom.input_schema: Field required"),
    "tool without name": (
        tools({"input_schema": {"type": "object"}}),
        "tools.0.custom.name: Field required",
    ),
    "schema of another type": (
        tools({"name": "look", "input_schema": {"type": "string"}}),
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    "two tools of one name": (tools(TOOL, TOOL), "tools: Tool names must be unique."),
    "unknown tool type": (
        tools({"type": "crystal_ball", "name": "x"}),
        pattern(
            r"^tools\.0: Input tag 'crystal_ball' found using 'type' does not match any of the "
            r"expected tags: 'bash_20250124', .*'custom'"
        ),
    ),
    "tool type of the server": (
        tools({"type": "web_search_20250305", "name": "web_search"}),
        pattern(rf"^'{SONNET_4_6}' does not support tool types: web_search_20250305\."),
    ),
    "deferred tool with a marker (E-7)": (
        tools(TOOL, {**TOOL, "name": "later", "defer_loading": True, **marker()}),
        "Tool 'later' cannot have both defer_loading=true and cache_control set. Tools with "
        "defer_loading cannot use prompt caching.",
    ),
    # Section 6.4.
    "any without tools": (
        {"tool_choice": {"type": "any"}},
        "tool_choice.any may only be specified while providing tools",
    ),
    "any with an empty list": (
        {"tools": [], "tool_choice": {"type": "any"}},
        "tool_choice.any may only be specified while providing tools",
    ),
    "tool that is not there": (
        {**tools(TOOL), "tool_choice": {"type": "tool", "name": "hear"}},
        "Tool 'hear' not found in provided tools",
    ),
    "tool without tools": (
        {"tool_choice": {"type": "tool", "name": "hear"}},
        "Tool 'hear' not found in provided tools",
    ),
    "any on 5.5": (
        {"model": OPUS_5_5, **tools(TOOL), "tool_choice": {"type": "any"}},
        FORCED,
    ),
    "tool on 5.5": (
        {"model": SONNET_5_5, **tools(TOOL), "tool_choice": {"type": "tool", "name": "look"}},
        FORCED,
    ),
    "the list is checked before the model": (
        {"model": SONNET_5_5, "tool_choice": {"type": "any"}},
        "tool_choice.any may only be specified while providing tools",
    ),
    "forced call with manual thinking": (
        {**manual(SONNET_4_6), **tools(TOOL), "tool_choice": {"type": "any"}},
        pattern("tool_choice"),
    ),
    "unknown choice": ({"tool_choice": {"type": "some"}}, pattern("^tool_choice: Input tag 'some'")),
    # Section 7.1.
    "enabled on 4.8": (manual(OPUS_4_8), USE_ADAPTIVE.format("enabled")),
    "enabled on 5": (manual(OPUS_5), USE_ADAPTIVE.format("enabled")),
    "adaptive on 4.5": (
        {"model": SONNET_4_5, **thinking("adaptive")},
        "adaptive thinking is not supported on this model",
    ),
    "disabled on Opus 5.5": (
        {"model": OPUS_5_5, **thinking("disabled")},
        USE_ADAPTIVE.format("disabled"),
    ),
    "between_tools on 4.6": (thinking("between_tools"), BETWEEN),
    "between_tools on 5": ({"model": OPUS_5, **thinking("between_tools")}, BETWEEN),
    "budget too small": (
        {"max_tokens": 3000, **thinking("enabled", budget_tokens=1023)},
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    "no budget": (
        {"max_tokens": 3000, **thinking("enabled")},
        "thinking.enabled.budget_tokens: Field required",
    ),
    "budget not below max_tokens": (
        {"max_tokens": 1024, **thinking("enabled", budget_tokens=1024)},
        pattern("^`max_tokens` must be greater than `thinking.budget_tokens`"),
    ),
    "unknown display": (
        {"model": OPUS_5, **thinking("adaptive", display="loud")},
        pattern(r"^thinking\.adaptive\.display: Input should be 'summarized'.* 'omitted'"),
    ),
    "unknown thinking": (thinking("deep"), pattern("^thinking: Input tag 'deep'")),
    # Section 7.2.
    "unknown effort": (
        {"output_config": {"effort": "huge"}},
        pattern(r"^output_config\.effort: Input should be 'low', 'medium', 'high'"),
    ),
    "effort without thinking": (
        {"model": OPUS_5, **thinking("disabled"), "output_config": {"effort": "xhigh"}},
        "output_config.effort 'xhigh' is not supported when thinking is disabled on this model. "
        "Use effort 'high' or below, or enable thinking.",
    ),
    # Section 7.3; more in test_random_schemas.py.
    "format without schema": (
        {"output_config": {"format": {"type": "json_schema"}}},
        pattern(r"^output_config\.format\.(json_schema\.)?schema: Field required"),
    ),
    "open object": (
        schema_of(type="object", properties={}),
        pattern(r"^output_config\.format.*additionalProperties"),
    ),
    "structured output and prefill": (
        {
            "model": SONNET_4_5,
            "messages": [*QUESTION, assistant(text("{"))],
            **schema_of(type="object", properties={}, additionalProperties=False),
        },
        pattern("prefill"),
    ),
    # E-1 to E-10.
    "E-1": (
        {"system": marked(4), "messages": [user(text("x", **marker()))]},
        FOUND.format(5),
    ),
    "E-1 with a tool": (
        {
            "tools": [{**TOOL, **marker()}],
            "system": marked(4),
            "messages": [user(text("x", **marker()))],
        },
        FOUND.format(6),
    ),
    "E-2 at system": (
        {"tools": [{**TOOL, **marker()}], "system": marked(1, ttl="1h")},
        ORDER.format("system.0."),
    ),
    "E-2 at a message": (
        {"system": marked(1), "messages": [user(text("y"), text("x", **marker(ttl="1h")))]},
        ORDER.format("messages.0.content.1."),
    ),
    "E-2 at a tool": (
        {"tools": [{**TOOL, **marker(ttl="5m")}, {**TOOL, "name": "b", **marker(ttl="1h")}]},
        ORDER.format("tools.1."),
    ),
    "E-2 at the automatic marker": (
        {"system": marked(1), "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        pattern("^(.*[.])?cache_control.*ttl='1h' cache_control block must not come after a ttl='5m'"),
    ),
    "E-3 at system": ({"system": marked(1, ttl="10m")}, "system.0." + TTL),
    "E-3 at a message": (
        {"messages": [user(text("x", **marker(ttl=300)))]},
        "messages.0.content.0.text." + TTL,
    ),
    "E-4 wrong": (
        {"system": [text("x", cache_control={"type": "forever"})]},
        pattern(r"^system\.0\.cache_control.*: Input .*'ephemeral'"),
    ),
    "E-4 missing": (
        {"system": [text("x", cache_control={})]},
        pattern(r"^system\.0\.cache_control\.type: Field required"),
    ),
    "E-5 at a message": (
        {"messages": [user(text("x"), text("", **marker()))]},
        "messages.0.content.1.text: cache_control cannot be set for empty text blocks",
    ),
    "E-5 at system": (
        {"system": [text("", **marker())]},
        "system.0: cache_control cannot be set for empty text blocks",
    ),
    "E-6": (
        {"messages": [*QUESTION, assistant(THOUGHT, text("Hi")), *QUESTION]},
        EXTRA.format("messages.1.content.0.thinking.cache_control"),
    ),
    "E-6 redacted": (
        {"messages": [*QUESTION, assistant(HIDDEN, text("Hi")), *QUESTION]},
        EXTRA.format("messages.1.content.0.redacted_thinking.cache_control"),
    ),
    "E-8": (
        {"system": marked(4), "cache_control": {"type": "ephemeral"}},
        FOUND.format(5),
    ),
    "E-9": (
        {
            "messages": [user(text("x", **marker(ttl="1h")))],
            "cache_control": {"type": "ephemeral", "ttl": "5m"},
        },
        "Top-level cache_control has ttl='5m' but the target block already has cache_control with "
        "ttl='1h'",
    ),
    "E-10": (
        {"system": [text("x", **marker(colour="red"))]},
        EXTRA.format("system.0.cache_control.ephemeral.colour"),
    ),
    # Cache semantics, C-90.
    "max_tokens 0 streaming": ({"max_tokens": 0, "stream": True}, pattern("^max_tokens: .*stream")),
    "max_tokens 0 with a forced tool": (
        {"max_tokens": 0, **tools(TOOL), "tool_choice": {"type": "any"}},
        pattern("^max_tokens: .*tool_choice"),
    ),
    "max_tokens 0 with a format": (
        {"max_tokens": 0, **schema_of(type="object", properties={}, additionalProperties=False)},
        pattern("^max_tokens: .*output_config"),
    ),
    "prompt too long": (
        {"messages": [user(text("word " * 20000))]},
        pattern(r"^prompt is too long: \d+ tokens > \d+ maximum$"),
    ),
}


def refusal(gateway, method, path, body=None, headers=None):
    """(status, error, headers) of an answer that must be the envelope of section 11."""
    status, sent, received = gateway.request(method, path, body, headers)
    assert status >= 400, received
    envelope = json.loads(received)
    assert list(envelope) == ["type", "error", "request_id"]
    assert envelope["type"] == "error"
    assert list(envelope["error"])[:2] == ["type", "message"]
    assert set(envelope["error"]) <= {"type", "message", "details"}
    assert sent["content-type"] == "application/json"
    assert sent["request-id"] == envelope["request_id"]
    assert sent["request-id"].startswith("req_")
    if status < 500 and status not in (408, 409, 429):
        assert sent["x-should-retry"] == "false"
        assert not [name for name in sent if "ratelimit" in name]
        assert "retry-after" not in sent
    else:
        assert sent.get("x-should-retry", "true") == "true"
    return status, envelope["error"], sent


def fits(message: str, expected) -> bool:
    if isinstance(expected, str):
        return message == expected
    return expected.search(message) is not None


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_breaks_a_rule(tiny, name):
    change, expected = BODIES[name]
    body = {key: value for key, value in {**VALID, **change}.items() if value is not ABSENT}
    status, error, _ = refusal(tiny, "POST", "/v1/messages", body)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert fits(error["message"], expected), error["message"]


NOT_COUNTED = {
    "stop_sequences": ["x"],
    "metadata": {},
    "service_tier": "auto",
    "inference_geo": "us",
    "container": "container_1",
    "diagnostics": {},
}


@pytest.mark.parametrize("field", NOT_COUNTED)
def test_fields_that_counting_does_not_know(tiny, field):
    body = {"model": SONNET_4_6, "messages": QUESTION, field: NOT_COUNTED[field]}
    status, error, _ = refusal(tiny, "POST", "/v1/messages/count_tokens", body)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert error["message"] == EXTRA.format(field)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"messages": ABSENT}, "messages: Field required"),
        ({"model": ABSENT}, "model: Field required"),
        ({"model": OPUS_5_5, **tools(TOOL), "tool_choice": {"type": "any"}}, FORCED),
        ({"system": marked(5)}, FOUND.format(5)),
    ],
)
def test_counting_refuses_as_creating_does(tiny, change, message):
    body = {"model": SONNET_4_6, "messages": QUESTION, **change}
    body = {key: value for key, value in body.items() if value is not ABSENT}
    status, error, _ = refusal(tiny, "POST", "/v1/messages/count_tokens", body)
    assert (status, error["type"], error["message"]) == (400, "invalid_request_error", message)


@pytest.mark.parametrize("field", ["temperature", "top_p", "top_k"])
def test_the_newer_version_has_no_sampling_parameters_even_at_their_defaults(tiny, field):
    newer = {"anthropic-version": "2026-10-21"}
    status, error, _ = refusal(tiny, "POST", "/v1/messages", {**VALID, field: 1}, newer)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith(field + ": ")
    assert tiny.request("POST", "/v1/messages", {**VALID, field: 1})[0] == 200


def test_the_newer_version_has_no_documents_or_citations_of_the_other_side(tiny):
    newer = {"anthropic-version": "2026-10-21"}
    source = {"type": "text", "media_type": "text/plain", "data": "x"}
    document = {"type": "document", "source": source}
    cited = {
        "type": "char_location",
        "cited_text": "x",
        "document_index": 0,
        "document_title": None,
        "start_char_index": 0,
        "end_char_index": 1,
    }
    for messages in (
        [*QUESTION, assistant(document), *QUESTION],
        [user(document, text("x", citations=[cited]))],
    ):
        body = {**VALID, "messages": messages}
        status, error, _ = refusal(tiny, "POST", "/v1/messages", body, newer)
        assert (status, error["type"]) == (400, "invalid_request_error")
        assert error["message"].startswith("messages.")
    legal = [user(document), assistant(text("x", citations=[cited])), *QUESTION]
    assert tiny.request("POST", "/v1/messages", {**VALID, "messages": legal}, newer)[0] == 200


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"model": ', pattern("^The request body is not valid JSON: ")),
        ("", pattern("^The request body is not valid JSON: ")),
        (b"\xff\xfe", pattern("^The request body is not valid JSON: ")),
        ("[1]", pattern("JSON object|valid dictionary")),
    ],
)
def test_a_body_that_is_no_json_object(tiny, body, expected):
    status, error, _ = refusal(tiny, "POST", "/v1/messages", body)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert fits(error["message"], expected), error["message"]


PATHS = [
    ("GET", "/v1/messages", 405, "invalid_request_error"),
    ("DELETE", "/v1/messages", 405, "invalid_request_error"),
    ("GET", "/v1/messages/count_tokens", 405, "invalid_request_error"),
    ("POST", "/v1/models", 405, "invalid_request_error"),
    ("PUT", "/v1/models/claude-opus-5", 405, "invalid_request_error"),
    ("GET", "/v1/nothing", 404, "not_found_error"),
    ("POST", "/v1/complete", 404, "not_found_error"),
    ("GET", "/v1/skills", 404, "not_found_error"),
    ("GET", "/v1/organizations/me", 404, "not_found_error"),
    ("GET", "/", 404, "not_found_error"),
    ("POST", "/v1/messages/", 404, "not_found_error"),
    ("GET", "/v1/models/no-such-model", 404, "not_found_error"),
]


@pytest.mark.parametrize(("method", "path", "expected", "kind"), PATHS)
def test_paths_and_verbs(tiny, method, path, expected, kind):
    body = VALID if method in ("POST", "PUT") else None
    status, error, headers = refusal(tiny, method, path, body)
    assert (status, error["type"]) == (expected, kind)
    if status == 405:
        assert method not in headers["allow"]
    if path == "/v1/models/no-such-model":
        assert error["message"] == "model: no-such-model"


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_an_unknown_model(tiny, path):
    body = {"model": "gpt-4o", "messages": QUESTION}
    status, error, _ = refusal(
        tiny, "POST", path, {**body, "max_tokens": 1} if path == "/v1/messages" else body
    )
    assert (status, error) == (404, {"type": "not_found_error", "message": "model: gpt-4o"})


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=0", "limit: Input should be greater than or equal to 1"),
        ("limit=1001", "limit: Input should be less than or equal to 1000"),
        ("limit=x", pattern("^limit: Input should be a valid integer")),
        ("lifecycle[]=old", pattern("^lifecycle.*'active'.*'deprecated'.*'retired'")),
        ("after_id=no-such-model", pattern("^after_id: ")),
        ("after_id=claude-opus-5&before_id=claude-opus-5", pattern("^(after|before)_id: ")),
    ],
)
def test_a_list_of_models_that_cannot_be(tiny, query, message):
    status, error, _ = refusal(tiny, "GET", "/v1/models?" + query)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert fits(error["message"], message), error["message"]


def test_heads_that_are_refused(tiny, gateway_factory):
    post = ("POST", "/v1/messages", VALID)
    for version in ("", "latest"):
        status, error, _ = refusal(tiny, *post, {"anthropic-version": version})
        assert (status, error["type"]) == (400, "invalid_request_error")
        assert error["message"].startswith("anthropic-version: ")
        if not version:
            assert error["message"] == "anthropic-version: header is required"  # W-2
    status, error, _ = refusal(tiny, *post, {"content-encoding": "gzip"})
    assert status == 400
    assert error["details"]["error_code"] == "request_body_encoding_unsupported"
    unknown = {"anthropic-beta": "pdfs-2024-09-25,dreams-2030-01-01"}
    assert tiny.request(*post, unknown)[0] == 200
    strict = gateway_factory("--model", "tiny", "--strict-betas")
    status, error, _ = refusal(strict, *post, unknown)
    assert status == 400
    assert error["message"] == (
        "Unexpected value(s) `dreams-2030-01-01` for the `anthropic-beta` header. Please consult "
        "our documentation at platform.claude.com/docs or try again without the header."
    )
    known = {"anthropic-beta": "pdfs-2024-09-25, context-management-2025-06-27"}
    assert strict.request(*post, known)[0] == 200


def test_keys(gateway_factory, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text('{"key": "sk-test-1", "organization": "acme", "workspace": "blue"}\n')
    gateway = gateway_factory("--model", "tiny", "--keys", keys)
    for path, method, body in [
        ("/v1/messages", "POST", VALID),
        ("/v1/messages/count_tokens", "POST", {"model": SONNET_4_6, "messages": QUESTION}),
        ("/v1/models", "GET", None),
        ("/v1/models/claude-opus-5", "GET", None),
    ]:
        for headers, message in [
            ({}, "x-api-key header is required"),
            ({"x-api-key": "sk-other"}, "invalid x-api-key"),
            ({"authorization": "Bearer sk-other"}, "invalid bearer token"),
        ]:
            status, error, _ = refusal(gateway, method, path, body, headers)
            assert (status, error) == (401, {"type": "authentication_error", "message": message})
        # Either is enough (W-7, W-8).
        for headers in [
            {"x-api-key": "sk-test-1"},
            {"authorization": "Bearer sk-test-1"},
            {"x-api-key": "sk-other", "authorization": "Bearer sk-test-1"},
        ]:
            assert gateway.request(method, path, body, headers)[0] == 200


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_a_body_that_is_too_large(tiny, path):
    """Refused by its announced length, before it is sent."""
    with socket.create_connection((tiny.host, tiny.port), timeout=10) as connection:
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nhost: x\r\nanthropic-version: 2023-06-01\r\n"
            f"content-length: {(32 << 20) + 1}\r\n\r\n".encode()
        )
        answer = connection.recv(65536).decode()
    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 413 ")
    assert "x-should-retry: false" in head.lower()
    envelope = json.loads(body)
    assert envelope["error"]["type"] == "request_too_large"
    assert f"request-id: {envelope['request_id']}" in head


@pytest.mark.parametrize(
    ("limit", "what"),
    [
        ("requests=1", "requests"),
        ("output-tokens=1", "output tokens"),
        ("input-tokens=100", "input tokens"),
    ],
)
def test_rate_limits(gateway_factory, limit, what):
    gateway = gateway_factory("--model", "tiny", "--limits", limit)
    body = {**VALID, "max_tokens": 4, "messages": [user(text("x" * 90))]}
    assert gateway.request("POST", "/v1/messages", body)[0] == 200
    if limit.startswith("output"):  # charged when the answer is complete, which may be after it is read
        gateway.wait_for(lambda m: m["incipit_requests_running"] == 0)
        gateway.request("POST", "/v1/messages", body)
    status, error, headers = refusal(gateway, "POST", "/v1/messages", body)
    assert (status, error["type"]) == (429, "rate_limit_error")
    assert what in error["message"], "names the limit"
    assert 0 < int(headers["retry-after"]) <= 300


def test_a_full_queue_is_overloaded_and_a_late_reply_timed_out(gateway_factory):
    gateway = gateway_factory(
        "--model", "tiny", "--max-queue", "1", "--kv-memory", "32M", "--request-timeout", "2"
    )
    long = {**VALID, "max_tokens": 20000, "temperature": 0}
    answers = []
    askers = [
        threading.Thread(
            target=lambda: answers.append(refusal(gateway, "POST", "/v1/messages", long))
        )
        for _ in range(80)
    ]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert len(answers) == len(askers)
    kinds = {(status, error["type"]) for status, error, _ in answers}
    assert kinds == {(529, "overloaded_error"), (504, "timeout_error")}
    for status, error, headers in answers:
        assert error["message"]
        if status == 529:
            assert int(headers["retry-after"]) > 0
    assert gateway.request("POST", "/v1/messages", VALID)[0] == 200
