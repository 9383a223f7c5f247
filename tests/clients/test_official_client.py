"""The official Python client, unmodified, against the gateway."""

from __future__ import annotations

import asyncio

import anthropic
import pytest
from conftest import WITH_TEMPERATURE, client_of

MODEL = "claude-sonnet-4-6"
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
WEATHER = {
    "name": "get_weather",
    "description": "The weather in a city, now.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


def total(usage) -> int:
    return usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens


def test_create_answers_a_question(default_client):
    message = default_client.messages.create(
        model=MODEL,
        max_tokens=24,
        messages=QUESTION,
        extra_headers=WITH_TEMPERATURE,
        extra_body={"temperature": 0},
    )
    assert message.type == "message"
    assert message.role == "assistant"
    assert message.model == MODEL
    assert message.id.startswith("msg_")
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert [block.type for block in message.content] == ["text"]
    assert "Paris" in message.content[0].text
    assert 0 < message.usage.output_tokens <= 24
    assert message._request_id.startswith("req_")


def test_the_sdks_own_version_of_the_api_is_served_without_sampling_parameters(tiny_client):
    message = tiny_client.messages.create(model="claude-opus-5", max_tokens=4, messages=QUESTION)
    assert message.usage.output_tokens <= 4
    with pytest.raises(anthropic.BadRequestError, match="temperature"):
        tiny_client.messages.create(
            model="claude-opus-5", max_tokens=4, messages=QUESTION, extra_body={"temperature": 1}
        )


def test_usage_without_caching_has_every_counter_as_a_number(tiny_client):
    usage = tiny_client.messages.create(model=MODEL, max_tokens=1, messages=QUESTION).usage
    counted = tiny_client.messages.count_tokens(model=MODEL, messages=QUESTION)
    assert usage.input_tokens == counted.input_tokens
    assert usage.cache_creation_input_tokens == 0
    assert usage.cache_read_input_tokens == 0
    assert usage.cache_creation.ephemeral_5m_input_tokens == 0
    assert usage.cache_creation.ephemeral_1h_input_tokens == 0


def test_stream_yields_the_events_in_the_order_of_the_protocol(default_client):
    events = list(
        default_client.messages.create(
            model=MODEL, max_tokens=16, messages=QUESTION, stream=True
        )
    )
    kinds = [event.type for event in events]
    assert kinds[0] == "message_start"
    assert kinds[1] == "content_block_start"
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(kinds[2:-3]) <= {"content_block_delta", "ping"}
    start, delta = events[0].message, events[-2]
    assert start.content == [] and start.stop_reason is None
    assert start.usage.cache_creation.ephemeral_5m_input_tokens == 0
    assert delta.delta.stop_reason in ("end_turn", "max_tokens")
    assert delta.usage.input_tokens == start.usage.input_tokens
    assert delta.usage.output_tokens > 0


def test_stream_and_create_say_the_same_at_temperature_0(default_client):
    request = {
        "model": MODEL,
        "max_tokens": 32,
        "messages": QUESTION,
        "extra_headers": WITH_TEMPERATURE,
        "extra_body": {"temperature": 0},
    }
    whole = default_client.messages.create(**request)
    with default_client.messages.stream(**request) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    assert "".join(pieces) == whole.content[0].text == final.content[0].text
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert total(final.usage) == total(whole.usage)


def test_stream_helper_reports_snapshots_and_its_final_text(default_client):
    with default_client.messages.stream(model=MODEL, max_tokens=12, messages=QUESTION) as stream:
        text_events = [event for event in stream if event.type == "text"]
        assert text_events, "no text at all"
        assert text_events[-1].snapshot == stream.get_final_text()


def test_leaving_a_stream_early_frees_its_work(default_model, default_client):
    stream = default_client.messages.create(
        model=MODEL,
        max_tokens=2000,
        messages=[{"role": "user", "content": "Write a very long story about a lighthouse."}],
        stream=True,
    )
    for event in stream:
        if event.type == "content_block_delta":
            break
    stream.close()
    default_model.wait_for(lambda m: m["incipit_requests_running"] == 0, seconds=5)


def test_count_tokens_counts_tools_and_system(tiny_client):
    def count(**more) -> int:
        return tiny_client.messages.count_tokens(
            model=MODEL, messages=QUESTION, **more
        ).input_tokens

    plain = count()
    assert count(system="Answer briefly.") > plain
    assert count(tools=[WEATHER]) > plain
    assert count(cache_control={"type": "ephemeral"}) == plain


def test_stop_sequences_are_cut_and_named(default_client):
    message = default_client.messages.create(
        model=MODEL,
        max_tokens=40,
        messages=QUESTION,
        stop_sequences=["Paris"],
        extra_headers=WITH_TEMPERATURE,
        extra_body={"temperature": 0},
    )
    assert message.stop_reason == "stop_sequence"
    assert message.stop_sequence == "Paris"
    assert all("Paris" not in block.text for block in message.content)


def test_max_tokens_0_warms_the_prompt_and_says_nothing(tiny_client):
    message = tiny_client.messages.create(model=MODEL, max_tokens=0, messages=QUESTION)
    assert message.content == []
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 0


def test_tools_and_their_results_make_a_round_trip(tiny_client):
    asked = [
        *QUESTION,
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me look."},
                {
                    "type": "tool_use",
                    "id": "toolu_01abc",
                    "name": "get_weather",
                    "input": {"city": "Paris"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_01abc", "content": "12 degrees"},
                {"type": "text", "text": "And tomorrow?"},
            ],
        },
    ]
    message = tiny_client.messages.create(
        model="claude-opus-5", max_tokens=8, tools=[WEATHER], messages=asked
    )
    assert message.stop_reason in ("end_turn", "max_tokens", "tool_use")
    counted = tiny_client.messages.count_tokens(
        model="claude-opus-5", tools=[WEATHER], messages=asked
    )
    assert total(message.usage) == counted.input_tokens


def test_models_are_listed_page_by_page(tiny_client):
    everything = list(tiny_client.models.list(limit=1000))
    ids = [model.id for model in everything]
    assert {"claude-sonnet-4-6", "claude-opus-5", "claude-haiku-4-5-20251001"} <= set(ids)
    assert len(ids) == len(set(ids))
    assert all(model.type == "model" and model.display_name for model in everything)
    assert len(ids) > 6

    first = tiny_client.models.list(limit=3)
    assert [model.id for model in first.data] == ids[:3]
    assert first.has_more and first.first_id == ids[0] and first.last_id == ids[2]
    assert [model.id for model in first] == ids, "iterating goes on to the last page"
    back = tiny_client.models.list(limit=2, before_id=ids[4])
    assert [model.id for model in back.data] == ids[2:4]


def test_a_model_is_found_by_id_and_by_alias(tiny_client):
    dated = tiny_client.models.retrieve("claude-haiku-4-5-20251001")
    alias = tiny_client.models.retrieve("claude-haiku-4-5")
    assert dated.id == alias.id
    with pytest.raises(anthropic.NotFoundError, match="no-such-model"):
        tiny_client.models.retrieve("no-such-model")


def test_the_list_says_which_models_end_and_when(tiny_client):
    listed = {model.id: model for model in tiny_client.models.list(limit=1000)}
    for model, end in [
        ("claude-sonnet-4-5-20250929", "2026-11-30"),
        ("claude-opus-4-5-20251101", "2027-01-22"),
    ]:
        assert listed[model].lifecycle == "deprecated"
        assert listed[model].retires_at.isoformat().startswith(end)
    assert listed["claude-opus-5"].retires_at is None
    assert "claude-mythos-preview" not in listed, "only when asked for"
    assert tiny_client.models.retrieve("claude-mythos-preview").lifecycle == "retired"


def test_the_async_client_streams_two_answers_at_once(default_model):
    async def run():
        async with anthropic.AsyncAnthropic(
            base_url=default_model.base_url, api_key="any", max_retries=0
        ) as client:

            async def one(name: str):
                async with client.messages.stream(
                    model=MODEL,
                    max_tokens=12,
                    messages=[{"role": "user", "content": f"Say hello to {name}."}],
                ) as stream:
                    pieces = [piece async for piece in stream.text_stream]
                    return "".join(pieces), await stream.get_final_message()

            return await asyncio.gather(one("Ada"), one("Grace"))

    for text, message in asyncio.run(run()):
        assert text == message.content[0].text


def test_raw_responses_show_the_headers_that_clients_read(tiny_client):
    raw = tiny_client.messages.with_raw_response.create(
        model=MODEL, max_tokens=1, messages=QUESTION
    )
    assert raw.headers["request-id"].startswith("req_")
    for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
        for field in ("limit", "remaining", "reset"):
            assert raw.headers[f"anthropic-ratelimit-{kind}-{field}"]
    assert "read=0" in raw.headers["incipit-cache"]


def test_x_api_key_and_bearer_are_the_same_key(gateway_factory, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text(
        '{"key": "sk-test-1", "organization": "acme", "workspace": "blue"}\n'
        '{"key": "sk-test-2", "organization": "acme", "workspace": "green"}\n'
    )
    gateway = gateway_factory("--model", "tiny", "--keys", keys)
    count = {"model": MODEL, "messages": QUESTION}
    with client_of(gateway, api_key="sk-test-1") as client:
        assert client.messages.count_tokens(**count).input_tokens > 0
    status, _, body = gateway.request(
        "POST", "/v1/messages/count_tokens", count, {"x-api-key": "sk-test-2"}
    )
    assert status == 200, body
    with client_of(gateway, api_key="sk-wrong") as client:
        with pytest.raises(anthropic.AuthenticationError):
            client.messages.count_tokens(**count)
    status, _, body = gateway.request("POST", "/v1/messages/count_tokens", count)
    assert status == 401 and "x-api-key header is required" in body
