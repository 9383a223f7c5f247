"""What applications do with the official client beyond single questions: tool loops, structured
output, thoughts that come back, and requests of the shape that coding agents send.

The random models answer, so texts mean nothing; what is checked is what the API promises about them.
"""

from __future__ import annotations

import json

import anthropic
import pydantic
import pytest
from conftest import WITH_TEMPERATURE, client_of
from gateway_process import Gateway

MODEL = "claude-sonnet-4-6"
HELLO = [{"role": "user", "content": "Hello."}]


def tool(name: str, **more) -> dict:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    return {"name": name, "description": f"The {name} of a city.", "input_schema": schema, **more}


@pytest.fixture(scope="module")
def thinking_client():
    with Gateway("--model", "tiny-thinking") as gateway, client_of(gateway) as client:
        yield client


# Tools


def test_the_tool_runner_goes_on_until_there_is_no_call(tiny_client):
    calls = []

    @anthropic.beta_tool
    def weather(city: str) -> str:
        """The weather in a city.

        Args:
            city: Its name.
        """
        calls.append(city)
        return f"It is {len(calls)} degrees."

    runner = tiny_client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=300,
        messages=HELLO,
        tools=[weather],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
    )
    replies = []
    for reply in runner:
        replies.append(reply)
        if len(replies) == 3:
            runner.set_messages_params(
                lambda params: {**params, "max_tokens": 8, "tool_choice": {"type": "none"}}
            )
    assert [reply.stop_reason for reply in replies[:3]] == ["tool_use"] * 3
    assert len(replies) == 4 and replies[3].stop_reason in ("end_turn", "max_tokens")
    assert calls == [reply.content[0].input["city"] for reply in replies[:3]]
    prompts = [reply.usage.input_tokens for reply in replies]
    assert prompts == sorted(set(prompts)), "each turn adds its call and its result"


def test_a_failing_tool_is_reported_and_the_loop_goes_on(tiny_client):
    @anthropic.beta_tool
    def weather(city: str) -> str:
        """The weather in a city."""
        raise ValueError("no such city")

    runner = tiny_client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=200,
        messages=HELLO,
        tools=[weather],
        tool_choice={"type": "tool", "name": "weather"},
        max_iterations=2,
    )
    replies = list(runner)
    assert [reply.content[0].type for reply in replies] == ["tool_use", "tool_use"]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ({"type": "any"}, {"weather", "time"}),
        ({"type": "any", "disable_parallel_tool_use": True}, {"weather", "time"}),
        ({"type": "tool", "name": "time"}, {"time"}),
    ],
)
def test_a_forced_choice_calls_and_says_nothing_before(tiny_client, choice, names):
    message = tiny_client.messages.create(
        model=MODEL,
        max_tokens=600,
        messages=HELLO,
        tools=[tool("weather"), tool("time")],
        tool_choice=choice,
    )
    assert message.stop_reason in ("tool_use", "max_tokens")
    assert {block.type for block in message.content} == {"tool_use"}
    assert {block.name for block in message.content} <= names
    assert all(block.id.startswith("toolu_") for block in message.content)
    if choice.get("disable_parallel_tool_use"):
        assert len(message.content) == 1


@pytest.mark.parametrize("choice", [None, {"type": "auto"}, {"type": "none"}])
def test_a_free_choice_may_speak(tiny_client, choice):
    settings = {} if choice is None else {"tool_choice": choice}
    message = tiny_client.messages.create(
        model=MODEL, max_tokens=8, messages=HELLO, tools=[tool("weather")], **settings
    )
    assert [block.type for block in message.content] == ["text"]


def test_parallel_calls_are_answered_together(tiny_client):
    calls = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": "weather", "input": {"city": "Oslo"}}
        for n in range(3)
    ]
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": "9"}]}
        for call in reversed(calls)
    ]
    messages = [*HELLO, {"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    settings = {"model": MODEL, "max_tokens": 4, "tools": [tool("weather")]}
    assert tiny_client.messages.create(messages=messages, **settings).content
    with pytest.raises(anthropic.BadRequestError, match="toolu_0"):
        tiny_client.messages.create(
            messages=[*messages[:2], {"role": "user", "content": results[:2]}], **settings
        )


def test_a_streamed_call_joins_to_the_final_message(tiny_client):
    with tiny_client.messages.stream(
        model=MODEL,
        max_tokens=300,
        messages=HELLO,
        tools=[tool("weather", strict=True)],
        tool_choice={"type": "tool", "name": "weather"},
    ) as stream:
        pieces = {}
        for event in stream:
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                pieces[event.index] = pieces.get(event.index, "") + event.delta.partial_json
        message = stream.get_final_message()
    for index, text in pieces.items():
        assert json.loads(text) == message.content[index].input
    assert isinstance(message.content[0].input["city"], str)


# Structured output


class Town(pydantic.BaseModel):
    name: str
    inhabitants: int
    harbour: bool | None


def test_parse_fills_a_pydantic_model(tiny_client):
    message = tiny_client.messages.parse(
        model=MODEL, max_tokens=900, messages=HELLO, output_format=Town
    )
    assert isinstance(message.parsed_output, Town)
    assert json.loads(message.content[0].text) == message.parsed_output.model_dump()


def test_a_format_holds_in_a_stream_as_well(tiny_client):
    schema = {"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 1}
    with tiny_client.messages.stream(
        model=MODEL,
        max_tokens=600,
        messages=HELLO,
        output_config={"format": {"type": "json_schema", "schema": schema}},
    ) as stream:
        message = stream.get_final_message()
    colours = json.loads(message.content[0].text)
    assert colours and set(colours) <= {"red", "green"}


def test_a_schema_beyond_the_subset_is_named(tiny_client):
    schema = {"type": "integer", "minimum": 3}
    with pytest.raises(anthropic.BadRequestError, match="minimum"):
        tiny_client.messages.create(
            model=MODEL,
            max_tokens=9,
            messages=HELLO,
            output_config={"format": {"type": "json_schema", "schema": schema}},
        )


# Turns


def test_a_prefill_is_continued_on_old_models_and_refused_on_newer_ones(tiny_client):
    messages = [*HELLO, {"role": "assistant", "content": "The answer is"}]
    message = tiny_client.messages.create(model="claude-sonnet-4-5", max_tokens=4, messages=messages)
    assert not message.content[0].text.startswith("The answer is")
    with pytest.raises(anthropic.BadRequestError, match="does not support assistant message prefill"):
        tiny_client.messages.create(model=MODEL, max_tokens=4, messages=messages)


def test_an_instruction_in_place_is_for_the_models_that_know_it(tiny_client):
    messages = [*HELLO, {"role": "system", "content": "Be brief."}]
    assert tiny_client.messages.create(model="claude-opus-5", max_tokens=4, messages=messages).content
    with pytest.raises(anthropic.BadRequestError):
        tiny_client.messages.create(model="claude-sonnet-5", max_tokens=4, messages=messages)


def test_a_text_document_counts_as_input(tiny_client):
    text = "All cats are grey at night. " * 20
    source = {"type": "text", "media_type": "text/plain", "data": text}
    document = {"type": "document", "source": source, "title": "Cats"}
    with_it = [{"role": "user", "content": [document, {"type": "text", "text": "Hello."}]}]
    count = tiny_client.messages.count_tokens
    more = count(model=MODEL, messages=with_it).input_tokens
    assert more >= count(model=MODEL, messages=HELLO).input_tokens + len(text)
    message = tiny_client.messages.create(model=MODEL, max_tokens=2, messages=with_it)
    assert message.usage.input_tokens == more


@pytest.mark.parametrize("version", ["2023-06-01", "2026-10-21"])
def test_both_versions_answer_alike(tiny, version):
    with client_of(tiny, default_headers={"anthropic-version": version}) as client:
        message = client.messages.create(model=MODEL, max_tokens=3, messages=HELLO)
        assert message.usage.output_tokens > 0
        if version == WITH_TEMPERATURE["anthropic-version"]:
            client.messages.create(
                model=MODEL, max_tokens=3, messages=HELLO, extra_body={"temperature": 0.5}
            )
            return
        with pytest.raises(anthropic.BadRequestError, match="temperature"):
            client.messages.create(
                model=MODEL, max_tokens=3, messages=HELLO, extra_body={"temperature": 1}
            )


@pytest.mark.parametrize("helper", ["create", "stream"])
def test_every_reply_has_its_request_id(tiny_client, helper):
    raw = tiny_client.messages.with_raw_response.create(
        model=MODEL, max_tokens=2, messages=HELLO, stream=helper == "stream"
    )
    assert raw.headers["request-id"].startswith("req_")
    assert raw.headers["anthropic-organization-id"]
    for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
        for what in ("limit", "remaining", "reset"):
            assert raw.headers[f"anthropic-ratelimit-{kind}-{what}"]
    if helper == "create":
        assert raw.parse()._request_id == raw.headers["request-id"]


# Thinking


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-opus-5-5", "claude-sonnet-4-6"])
def test_a_thought_goes_through_a_tool_loop(thinking_client, model):
    settings = {
        "model": model,
        "max_tokens": 60,
        "thinking": {"type": "adaptive"},
        "tools": [tool("weather")],
    }
    reply = thinking_client.messages.create(messages=HELLO, **settings)
    assert reply.content[0].type == "thinking" and reply.content[0].signature
    call = {"type": "tool_use", "id": "toolu_9", "name": "weather", "input": {"city": "Oslo"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_9", "content": "sunny"}
    thought = reply.content[0].model_dump()

    def loop(block: dict) -> list[dict]:
        return [
            *HELLO,
            {"role": "assistant", "content": [block, call]},
            {"role": "user", "content": [result]},
        ]

    assert thinking_client.messages.create(messages=loop(thought), **settings).content
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.1\.content\.0"):
        thinking_client.messages.create(
            messages=loop({**thought, "signature": "AAAA" + thought["signature"][4:]}), **settings
        )


# Coding agents

AGENT_BETAS = [
    "claude-code-20250219",
    "oauth-2025-04-20",
    "interleaved-thinking-2025-05-14",
    "redact-thinking-2026-02-12",
    "context-management-2025-06-27",
    "prompt-caching-scope-2026-01-05",
    "advanced-tool-use-2025-11-20",
]


def agent_request(turn: int, messages: list[dict]) -> dict:
    hour = {"type": "ephemeral", "ttl": "1h"}
    billing = f"x-anthropic-billing-header: cc_version=2.1.{turn}; cc_entrypoint=cli; cch={turn:05x};"
    return {
        "model": "claude-opus-5",
        "max_tokens": 64,
        "stream": True,
        "system": [
            {"type": "text", "text": billing},
            {
                "type": "text",
                "text": "You are an agent.",
                "cache_control": {**hour, "scope": "global"},
            },
            {"type": "text", "text": "Work carefully. " * 40, "cache_control": hour},
        ],
        "tools": [tool(f"tool_{n}") for n in range(16)],
        "metadata": {"user_id": "user_1_account__session_2"},
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "medium"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "messages": messages,
    }


def marked(text: str) -> list[dict]:
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]


def test_a_coding_agents_second_turn_hits(thinking_client):
    """Although the billing line changes with each request, and with thoughts sent back."""

    def turn(number: int, messages: list[dict]):
        body = agent_request(number, messages)
        del body["stream"]
        with thinking_client.beta.messages.stream(
            **body, betas=AGENT_BETAS, extra_query={"beta": "true"}
        ) as stream:
            return stream.get_final_message()

    messages = [{"role": "user", "content": marked("Fix the bug.")}]
    first = turn(1, messages)
    assert first.usage.cache_read_input_tokens == 0
    assert first.usage.input_tokens == 0
    written = first.usage.cache_creation_input_tokens
    assert written == first.usage.cache_creation.ephemeral_1h_input_tokens > 512
    assert "thinking" in {block.type for block in first.content}

    reply = [block.model_dump(exclude_none=True) for block in first.content]
    if reply[-1]["type"] == "thinking":  # cut within its thought
        reply.append({"type": "text", "text": "I am on it."})
    messages = [
        {"role": "user", "content": "Fix the bug."},
        {"role": "assistant", "content": reply},
        {"role": "user", "content": marked("Go on.")},
    ]
    second = turn(2, messages)
    assert second.usage.cache_read_input_tokens == written
    assert second.usage.input_tokens == 0
    assert second.usage.cache_creation_input_tokens > 0
    assert second.context_management is None or not second.context_management.applied_edits


def test_a_warm_up_before_the_first_turn_pays(thinking_client):
    body = agent_request(7, [{"role": "user", "content": "x"}])
    del body["stream"]
    body["system"][1]["text"] = "You are another agent."
    warm = thinking_client.beta.messages.create(**{**body, "max_tokens": 0}, betas=AGENT_BETAS)
    assert warm.content == [] and warm.usage.output_tokens == 0
    body["messages"] = [{"role": "user", "content": "Fix it."}]
    real = thinking_client.beta.messages.create(**body, betas=AGENT_BETAS)
    assert real.usage.cache_read_input_tokens == warm.usage.cache_creation_input_tokens > 512


# Errors


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"model": "gpt-4o"}, anthropic.NotFoundError),
        ({"max_tokens": -1}, anthropic.BadRequestError),
        ({"messages": []}, anthropic.BadRequestError),
        ({"extra_body": {"colour": "red"}}, anthropic.BadRequestError),
        ({"tool_choice": {"type": "any"}}, anthropic.BadRequestError),
    ],
)
def test_errors_are_the_clients_classes(tiny_client, change, error):
    with pytest.raises(error) as caught:
        tiny_client.messages.create(
            **{"model": MODEL, "max_tokens": 1, "messages": HELLO, **change}
        )
    assert caught.value.request_id.startswith("req_")
    assert caught.value.body["request_id"] == caught.value.request_id
    assert caught.value.response.headers["x-should-retry"] == "false"
