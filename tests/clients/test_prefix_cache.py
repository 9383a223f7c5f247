"""What the gateway is for: a marked prefix is paid for once, and usage says so with numbers that
add up."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from conftest import WITH_TEMPERATURE, client_of

TEXT = (Path(__file__).parent.parent / "reference" / "text.txt").read_text(encoding="utf-8")
MODEL = "claude-sonnet-4-6"  # at least 1,024 tokens to cache, and still takes a temperature


def timed_stream(client, **request):
    """The final message and the seconds from the call to the first piece of text."""
    started = time.monotonic()
    first = None
    with client.messages.stream(**request) as stream:
        for event in stream:
            if first is None and event.type == "content_block_delta":
                first = time.monotonic() - started
        return stream.get_final_message(), first


@pytest.mark.parametrize(
    ("fixture", "characters", "least", "most"),
    [("default_model", 13600, 2700, 3400), ("gemma", 8000, 1500, 2500)],
)
def test_the_second_identical_request_reads_what_the_first_wrote(
    request, fixture, characters, least, most
):
    gateway = request.getfixturevalue(fixture)
    body = {
        "model": MODEL,
        "max_tokens": 24,
        "system": [
            {
                "type": "text",
                "text": TEXT[:characters],
                "cache_control": {"type": "ephemeral"},
            }
        ],
        "messages": [{"role": "user", "content": "Who kept two logbooks?"}],
    }
    greedy = {"extra_headers": WITH_TEMPERATURE, "extra_body": {"temperature": 0}}
    with client_of(gateway) as client:
        countable = {name: body[name] for name in ("model", "system", "messages")}
        counted = client.messages.count_tokens(**countable).input_tokens
        cold, cold_seconds = timed_stream(client, **body, **greedy)
        warm, warm_seconds = timed_stream(client, **body, **greedy)

    print(f"{fixture}: {counted} tokens, first text {cold_seconds:.3f} s, then {warm_seconds:.3f} s")
    assert least <= counted <= most
    assert cold.usage.cache_read_input_tokens == 0
    written = cold.usage.cache_creation_input_tokens
    assert written == cold.usage.cache_creation.ephemeral_5m_input_tokens > 0.9 * counted
    assert warm.usage.cache_read_input_tokens == written
    assert warm.usage.cache_creation_input_tokens == 0
    for usage in (cold.usage, warm.usage):
        parts = usage.cache_read_input_tokens + usage.cache_creation_input_tokens
        assert parts + usage.input_tokens == counted
    assert cold.content[0].text == warm.content[0].text
    assert warm_seconds <= cold_seconds / 15


def test_a_growing_conversation_reads_its_past_through_the_automatic_marker(tiny_client):
    messages = [{"role": "user", "content": "Once upon a time. " + TEXT[:2000]}]
    first = tiny_client.messages.create(
        model=MODEL, max_tokens=1, messages=messages, cache_control={"type": "ephemeral"}
    ).usage
    assert first.cache_read_input_tokens == 0
    assert first.input_tokens == 0
    written = first.cache_creation_input_tokens
    messages += [
        {"role": "assistant", "content": "And then?"},
        {"role": "user", "content": "Then the fog came."},
    ]
    second = tiny_client.messages.create(
        model=MODEL, max_tokens=1, messages=messages, cache_control={"type": "ephemeral"}
    ).usage
    # The entry ends with the first turn; closing that turn belongs to what was added after it.
    assert 0 < second.cache_read_input_tokens <= written
    assert second.cache_creation_input_tokens > 0
    assert second.input_tokens == 0


def test_entries_are_listed_with_their_hits_and_their_time_left(gateway_factory):
    gateway = gateway_factory("--model", "tiny", "--virtual-clock")
    body = {
        "model": MODEL,
        "max_tokens": 0,
        "system": [
            {
                "type": "text",
                "text": "Entries. " + TEXT[:3000],
                "cache_control": {"type": "ephemeral", "ttl": "1h"},
            }
        ],
        "messages": [{"role": "user", "content": "x"}],
    }
    with client_of(gateway) as client:
        written = client.messages.create(**body).usage
        assert written.cache_creation.ephemeral_1h_input_tokens > 3000
        assert client.messages.create(**body).usage.cache_read_input_tokens > 3000
        status, _, text = gateway.request("GET", "/incipit/entries")
        assert status == 200
        assert '"hits":1' in text.replace(" ", "")
        status, _, text = gateway.request("POST", "/incipit/clock", {"advance_seconds": 3601})
        assert status == 200, text
        again = client.messages.create(**body).usage
        assert again.cache_read_input_tokens == 0
        assert again.cache_creation.ephemeral_1h_input_tokens > 3000


def test_an_unmarked_repeat_is_fast_but_reports_no_read(default_client):
    request = {
        "model": MODEL,
        "max_tokens": 1,
        "messages": [{"role": "user", "content": "Unmarked. " + TEXT[:9000]}],
    }
    _, cold = timed_stream(default_client, **request)
    message, warm = timed_stream(default_client, **request)
    assert message.usage.cache_read_input_tokens == 0
    assert message.usage.cache_creation_input_tokens == 0
    assert warm < cold / 3
