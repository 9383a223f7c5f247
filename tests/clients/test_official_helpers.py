"""The official client's helpers: events of its streams, its tool runners, its retries."""

from __future__ import annotations

import asyncio
import json
import threading

import anthropic
import pydantic
import pytest
from conftest import client_of
from gateway_process import Gateway

MODEL = "claude-sonnet-4-6"
HELLO = [{"role": "user", "content": "Hello."}]
VALID = {"model": MODEL, "max_tokens": 1, "messages": HELLO}
ONE_CALL = {"type": "any", "disable_parallel_tool_use": True}
WEATHER = {
    "name": "weather",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
    "strict": True,
}


class Town(pydantic.BaseModel):
    name: str
    twins: list[str]
    harbour: bool | None = None


@pytest.fixture(scope="module")
def thinking_client():
    with Gateway("--model", "tiny-thinking") as gateway, client_of(gateway) as client:
        yield client


def recording_client(gateway, bodies: list[dict]) -> anthropic.Anthropic:
    """Puts the body of every request it sends into `bodies`."""

    def record(request) -> None:
        bodies.append(json.loads(request.content))

    http_client = anthropic.DefaultHttpxClient(event_hooks={"request": [record]})
    return client_of(gateway, http_client=http_client)


# Streams


def test_a_thoughts_events_add_up(thinking_client):
    with thinking_client.messages.stream(
        model="claude-opus-4-8",
        max_tokens=80,
        messages=HELLO,
        thinking={"type": "adaptive", "display": "summarized"},
        output_config={"effort": "low"},
    ) as stream:
        events = list(stream)
        message = stream.get_final_message()
    thought = message.content[0]
    heard = [event for event in events if event.type == "thinking"]
    assert "".join(event.thinking for event in heard) == thought.thinking
    assert not heard or heard[-1].snapshot == thought.thinking
    [signature] = [event.signature for event in events if event.type == "signature"]
    assert signature == thought.signature
    stops = [event.content_block for event in events if event.type == "content_block_stop"]
    assert [block.type for block in stops] == [block.type for block in message.content]
    assert events[-1].type == "message_stop" and events[-1].message.id == message.id
    assert message.usage.output_tokens_details.thinking_tokens > 0


def test_a_calls_events_add_up(tiny_client):
    with tiny_client.messages.stream(
        model=MODEL, max_tokens=600, messages=HELLO, tools=[WEATHER], tool_choice=ONE_CALL
    ) as stream:
        events = list(stream)
        message = stream.get_final_message()
    heard = [event for event in events if event.type == "input_json"]
    [call] = message.content
    assert json.loads("".join(event.partial_json for event in heard)) == call.input
    assert heard[-1].snapshot == call.input
    assert set(call.input) == {"city", "days"} and isinstance(call.input["days"], int)
    assert message.stop_reason == "tool_use"


def test_a_stream_can_be_held_to_a_model_of_the_application(tiny_client):
    with tiny_client.messages.stream(
        model=MODEL, max_tokens=2000, messages=HELLO, output_format=Town
    ) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert isinstance(message.parsed_output, Town)
    assert Town.model_validate_json(text) == message.parsed_output


# Tool runners


def weather_tool(heard: list, **options):
    @anthropic.beta_tool(**options)
    def weather(city: str, days: int | None = None) -> str:
        """The weather in a city.

        Args:
            city: Its name.
            days: How far ahead.
        """
        heard.append((city, days))
        return "sunny"

    return weather


def test_the_runner_goes_back_to_whole_requests_where_there_are_no_threads(tiny):
    bodies: list[dict] = []
    heard: list = []
    with recording_client(tiny, bodies) as client:
        runner = client.beta.messages.tool_runner(
            model=MODEL,
            max_tokens=900,
            messages=HELLO,
            tools=[weather_tool(heard, strict=True)],
            tool_choice=ONE_CALL,
            max_iterations=3,
        )
        replies = list(runner)
    assert [reply.stop_reason for reply in replies] == ["tool_use"] * 3
    assert bodies[0]["thread"] == {"type": "create"}, "it tries a thread first"
    whole = [body for body in bodies if "thread" not in body]
    assert [len(body["messages"]) for body in whole] == [1, 3, 5]
    for body, reply in zip(whole[1:], replies):
        [call, result] = body["messages"][-2]["content"] + body["messages"][-1]["content"]
        assert (call["id"], call["input"]) == (reply.content[0].id, reply.content[0].input)
        assert (result["tool_use_id"], result["content"]) == (call["id"], "sunny")


def test_a_thread_is_refused_with_the_code_that_clients_know(tiny_client):
    with pytest.raises(anthropic.BadRequestError) as refusal:
        tiny_client.beta.messages.create(
            **VALID,
            betas=["message-threads-2026-08-12"],
            extra_body={"thread": {"type": "create"}},
        )
    details = refusal.value.body["error"]["details"]
    assert details["error_code"] == "thread_unsupported_request"


@pytest.mark.parametrize("eagerly", [False, True])
def test_the_runner_streams(tiny_client, eagerly):
    heard: list = []
    runner = tiny_client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=900,
        messages=HELLO,
        tools=[weather_tool(heard, strict=True)],
        tool_choice=ONE_CALL,
        max_iterations=2,
        stream=True,
        run_tools_eagerly=eagerly,
    )
    inputs = []
    for stream in runner:
        for event in stream:
            if event.type == "content_block_stop":
                inputs.append(event.content_block.input)
    assert len(inputs) == 2
    assert heard[0] == (inputs[0]["city"], inputs[0].get("days"))


def test_the_async_runner_runs_the_calls_of_a_reply_together(tiny):
    async def run() -> None:
        heard: list[str] = []

        @anthropic.beta_async_tool(strict=True)
        async def weather(city: str) -> str:
            """The weather in a city."""
            heard.append(city)
            return "sunny"

        async with anthropic.AsyncAnthropic(
            base_url=tiny.base_url, api_key="any", max_retries=0
        ) as client:
            runner = client.beta.messages.tool_runner(
                model=MODEL,
                max_tokens=3000,
                messages=HELLO,
                tools=[weather],
                tool_choice={"type": "tool", "name": "weather"},
                max_iterations=2,
            )
            replies = [reply async for reply in runner]
        asked = [block.input["city"] for block in replies[0].content]
        assert sorted(heard[: len(asked)]) == sorted(asked)

    asyncio.run(run())


# Retries


def test_a_client_waits_out_the_rate_limit(gateway_factory):
    gateway = gateway_factory("--model", "tiny", "--limits", "requests=60")  # one per second
    with client_of(gateway) as client:
        with pytest.raises(anthropic.RateLimitError) as refusal:
            for _ in range(100):
                client.messages.create(**VALID)
        assert refusal.value.body["error"]["type"] == "rate_limit_error"
        wait = int(refusal.value.response.headers["retry-after"])
        assert 1 <= wait <= 2
        patient = client.with_options(max_retries=3)
        raw = patient.messages.with_raw_response.create(**VALID)
    assert raw.retries_taken > 0
    assert raw.parse().usage.output_tokens == 1


def test_a_client_waits_out_an_overload(gateway_factory):
    """Late replies are ended after two seconds, which makes room."""
    gateway = gateway_factory("--model", "tiny", "--max-queue", "1", "--request-timeout", "2")
    long = {**VALID, "max_tokens": 20000, "temperature": 0}
    answers: list[int] = []
    askers = [
        threading.Thread(
            target=lambda: answers.append(gateway.request("POST", "/v1/messages", long)[0])
        )
        for _ in range(80)
    ]
    for asker in askers:
        asker.start()
    gateway.wait_for(lambda _: 529 in answers)
    with client_of(gateway, max_retries=8) as client:
        assert client.messages.create(**VALID).usage.output_tokens == 1
    for asker in askers:
        asker.join()
    assert set(answers) <= {504, 529}
