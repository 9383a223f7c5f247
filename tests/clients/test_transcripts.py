"""Streams on the wire: bytes, headers, and every payload key by key, as captured from the API.

The shapes are those of the wire contract, sections 3.2, 9, 10.2 and 10.3, rules W-20 to W-27.
"""

from __future__ import annotations

import http.client
import json
import re
import socket

import pytest
from gateway_process import Gateway

MODEL = "claude-sonnet-4-6"
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
GREEDY = {"model": MODEL, "messages": QUESTION, "temperature": 0}
WEATHER = {
    "name": "get_weather",
    "description": "The weather in a city, now.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}

MESSAGE = (
    "model id type role content container stop_reason stop_sequence stop_details usage diagnostics"
).split()
INPUT_COUNTERS = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
SERVICE = ["service_tier", "inference_geo"]
USAGE_AT_START = [*INPUT_COUNTERS, "cache_creation", "output_tokens", *SERVICE]
USAGE_OF_A_BODY = [
    *INPUT_COUNTERS,
    "cache_creation",
    "output_tokens",
    "output_tokens_details",
    *SERVICE,
]
USAGE_OF_A_DELTA = [*INPUT_COUNTERS, "output_tokens", "output_tokens_details"]
STOP_STATE = ["stop_reason", "stop_sequence", "stop_details", "container"]
BLOCK_KEYS = {
    "text": ["type", "text"],
    "thinking": ["type", "thinking", "signature"],
    "tool_use": ["type", "id", "name", "input", "caller"],
}
DELTA_KEYS = {
    "text_delta": ["type", "text"],
    "thinking_delta": ["type", "thinking"],
    "signature_delta": ["type", "signature"],
    "input_json_delta": ["type", "partial_json"],
}
DELTAS_OF = {
    "text": {"text_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "tool_use": {"input_json_delta"},
}
ID = r"[1-9A-HJ-NP-Za-km-z0]{24}"


@pytest.fixture(scope="module")
def thinking():
    with Gateway("--model", "tiny-thinking") as gateway:
        yield gateway


def post(gateway, body, timeout=60, **headers):
    """(status, headers, body as bytes); a chunked body that was cut off raises IncompleteRead."""
    connection = http.client.HTTPConnection(gateway.host, gateway.port, timeout=timeout)
    sent = {"content-type": "application/json", "anthropic-version": "2023-06-01", **headers}
    connection.request("POST", "/v1/messages", body=json.dumps(body), headers=sent)
    answer = connection.getresponse()
    received = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), received


def events_in(received: bytes) -> list[dict]:
    """The payloads; the framing of section 10.1 holds to the byte."""
    assert received.endswith(b"\n\n")
    assert b"\r" not in received and b"[DONE]" not in received
    payloads = []
    for frame in received.decode("utf-8")[:-2].split("\n\n"):
        name, data = frame.split("\n")
        assert name.startswith("event: ") and data.startswith("data: "), frame
        payloads.append(json.loads(data.removeprefix("data: ")))
        assert payloads[-1]["type"] == name.removeprefix("event: ")
    return payloads


class Transcript:
    """A whole stream, checked key by key while it is read."""

    def __init__(self, payloads: list[dict]):
        kinds = [payload["type"] for payload in payloads]
        assert kinds[0] == "message_start"
        assert kinds[-2:] == ["message_delta", "message_stop"]
        for kind in ("message_start", "message_delta", "message_stop"):
            assert kinds.count(kind) == 1
        self.kinds = kinds
        self._read_start(payloads[0])
        self.blocks: list[dict] = []
        self.deltas: list[list[dict]] = []
        self._read_blocks(payloads[1:-2])
        self._read_end(payloads[-2])
        assert payloads[-1] == {"type": "message_stop"}

    def _read_start(self, payload):
        assert list(payload) == ["type", "message"]
        message = payload["message"]
        assert list(message) == MESSAGE
        assert re.fullmatch("msg_" + ID, message["id"])
        assert (message["type"], message["role"], message["content"]) == ("message", "assistant", [])
        unset = "container stop_reason stop_sequence stop_details diagnostics".split()
        assert {name: message[name] for name in unset} == dict.fromkeys(unset)
        usage = message["usage"]
        assert list(usage) == USAGE_AT_START
        assert list(usage["cache_creation"]) == [
            "ephemeral_5m_input_tokens",
            "ephemeral_1h_input_tokens",
        ]
        assert sum(usage["cache_creation"].values()) == usage["cache_creation_input_tokens"]
        self.message, self.usage_at_start = message, usage

    def _read_blocks(self, payloads):
        running = False
        pings = []
        for at, payload in enumerate(payloads):
            kind = payload["type"]
            if kind == "ping":
                assert payload == {"type": "ping"}
                pings.append(at)
                continue
            if kind == "content_block_start":
                assert not running, "a block is stopped before the next starts"
                assert list(payload) == ["type", "index", "content_block"]
                block = payload["content_block"]
                assert list(block) == BLOCK_KEYS[block["type"]]
                if block["type"] == "tool_use":
                    assert (block["input"], block["caller"]) == ({}, {"type": "direct"})
                    assert re.fullmatch("toolu_" + ID, block["id"])
                else:
                    assert set(block.values()) == {block["type"], ""}
                self.blocks.append(block)
                self.deltas.append([])
            elif kind == "content_block_delta":
                assert running and list(payload) == ["type", "index", "delta"]
                delta = payload["delta"]
                assert list(delta) == DELTA_KEYS[delta["type"]]
                assert delta["type"] in DELTAS_OF[self.blocks[-1]["type"]]
                self.deltas[-1].append(delta)
            else:
                assert running and list(payload) == ["type", "index"]
                assert kind == "content_block_stop"
            assert payload["index"] == len(self.blocks) - 1
            running = kind != "content_block_stop"
        assert not running
        # One ping, after the first content_block_start (W-21a).
        assert pings == ([1] if self.blocks else [])

    def _read_end(self, payload):
        assert list(payload) == ["type", "delta", "usage"]
        assert list(payload["delta"]) == STOP_STATE
        assert payload["delta"]["stop_details"] is None and payload["delta"]["container"] is None
        self.stop = (payload["delta"]["stop_reason"], payload["delta"]["stop_sequence"])
        self.usage = payload["usage"]
        assert list(self.usage) == USAGE_OF_A_DELTA
        assert list(self.usage["output_tokens_details"]) == ["thinking_tokens"]
        for name in INPUT_COUNTERS:
            assert self.usage[name] == self.usage_at_start[name]
        # Cumulative (W-20).
        assert self.usage["output_tokens"] >= self.usage_at_start["output_tokens"]
        assert self.usage["output_tokens_details"]["thinking_tokens"] <= self.usage["output_tokens"]

    def joined(self, block: int) -> str:
        """The text of a block's deltas, the signature left out."""
        texts = [delta for delta in self.deltas[block] if delta["type"] != "signature_delta"]
        return "".join(next(v for k, v in delta.items() if k != "type") for delta in texts)


def stream(gateway, body) -> Transcript:
    status, _, received = post(gateway, {**body, "stream": True})
    assert status == 200, received
    return Transcript(events_in(received))


def test_headers_of_a_stream_and_of_a_body(tiny):
    for body, content_type in [
        ({**GREEDY, "max_tokens": 3, "stream": True}, "text/event-stream; charset=utf-8"),
        ({**GREEDY, "max_tokens": 3}, "application/json"),
    ]:
        status, headers, received = post(tiny, body)
        assert status == 200, received
        headers = {name.lower(): value for name, value in headers.items()}
        assert headers["content-type"] == content_type
        assert re.fullmatch("req_" + ID, headers["request-id"])
        assert headers["anthropic-organization-id"]
        assert "x-should-retry" not in headers and "retry-after" not in headers
        limits = {}
        for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
            stem = f"anthropic-ratelimit-{kind}-"
            limits[kind] = int(headers[stem + "limit"])
            remaining = int(headers[stem + "remaining"])
            assert 0 <= remaining <= limits[kind]
            if kind != "requests":
                assert remaining % 1000 == 0 or remaining == limits[kind]
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", headers[stem + "reset"])
        assert limits["tokens"] == limits["input-tokens"] + limits["output-tokens"]
        if "stream" in body:
            assert headers["cache-control"] == "no-cache"
            assert headers["transfer-encoding"] == "chunked"


@pytest.mark.parametrize("connection", ["close", "keep-alive"])
def test_the_body_of_a_stream_closes_after_message_stop(tiny, connection):
    body = json.dumps({**GREEDY, "max_tokens": 3, "stream": True}).encode()
    request = (
        b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: %b\r\n"
        b"anthropic-version: 2023-06-01\r\ncontent-length: %d\r\n\r\n%b"
    ) % (connection.encode(), len(body), body)
    with socket.create_connection((tiny.host, tiny.port), timeout=20) as peer:
        for _ in range(1 if connection == "close" else 2):
            peer.sendall(request)
            received = b""
            while not received.endswith(b"\r\n0\r\n\r\n"):
                data = peer.recv(65536)
                assert data, received
                received += data
            assert received.startswith(b"HTTP/1.1 200 ")
            assert received.endswith(b'{"type":"message_stop"}\n\n\r\n0\r\n\r\n')
        if connection == "close":
            assert peer.recv(1) == b""


def test_a_text_reply_says_what_the_whole_body_says(default_model):
    told = stream(default_model, {**GREEDY, "max_tokens": 24})
    assert [block["type"] for block in told.blocks] == ["text"]
    assert told.kinds[:3] == ["message_start", "content_block_start", "ping"]
    assert told.stop[0] in ("end_turn", "max_tokens") and told.stop[1] is None
    status, _, received = post(default_model, {**GREEDY, "max_tokens": 24})
    whole = json.loads(received)
    assert status == 200
    assert list(whole) == MESSAGE and list(whole["usage"]) == USAGE_OF_A_BODY
    assert whole["content"] == [{"type": "text", "text": told.joined(0)}]
    assert (whole["stop_reason"], whole["stop_sequence"]) == told.stop
    assert whole["usage"]["output_tokens"] == told.usage["output_tokens"]
    assert len(told.deltas[0]) > 1, "arrives in pieces"
    assert all(delta["text"] for delta in told.deltas[0])
    assert told.message["model"] == whole["model"] == MODEL


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "get_weather"}])
def test_a_forced_call_has_no_text_and_its_pieces_make_one_object(tiny, choice):
    body = {"model": "claude-opus-5", "messages": QUESTION, "tools": [WEATHER], "max_tokens": 300}
    choice = {**choice, "disable_parallel_tool_use": True}
    told = stream(tiny, {**body, "tool_choice": choice, "thinking": {"type": "disabled"}})
    assert told.stop == ("tool_use", None)
    [block] = told.blocks
    assert (block["type"], block["name"]) == ("tool_use", "get_weather")
    assert told.deltas[0][0]["partial_json"] == ""  # W-23
    assert isinstance(json.loads(told.joined(0))["city"], str)


@pytest.mark.parametrize("display", ["summarized", "omitted"])
def test_a_thought_ends_with_one_signature(thinking, display):
    body = {"messages": QUESTION, "max_tokens": 60, "output_config": {"effort": "low"}}
    shape = {"type": "adaptive", "display": display}
    told = stream(thinking, {**body, "model": "claude-opus-4-8", "thinking": shape})
    assert told.blocks[0]["type"] == "thinking"
    kinds = [delta["type"] for delta in told.deltas[0]]
    assert kinds.count("signature_delta") == 1 and kinds[-1] == "signature_delta"
    assert told.deltas[0][-1]["signature"]
    if display == "omitted":
        assert told.joined(0) == "" and len(kinds) <= 2  # W-25
    assert told.usage["output_tokens_details"]["thinking_tokens"] > 0


def test_a_stop_sequence_is_cut_before_its_match_and_named(default_model):
    told = stream(default_model, {**GREEDY, "max_tokens": 40, "stop_sequences": ["zzz", "Paris"]})
    assert told.stop == ("stop_sequence", "Paris")
    assert "Paris" not in told.joined(0)
    free = stream(default_model, {**GREEDY, "max_tokens": 40})
    assert free.joined(0).startswith(told.joined(0) + "Paris")


def test_max_tokens_ends_the_reply_there(default_model):
    told = stream(default_model, {**GREEDY, "max_tokens": 3})
    assert told.stop == ("max_tokens", None)
    assert told.usage["output_tokens"] == 3


def test_a_prefill_is_continued_and_not_repeated(default_model):
    body = {**GREEDY, "model": "claude-sonnet-4-5-20250929", "max_tokens": 12}
    start = "The capital of France is"
    told = stream(
        default_model,
        {**body, "messages": [*QUESTION, {"role": "assistant", "content": start}]},
    )
    assert "Paris" in told.joined(0)
    assert not told.joined(0).lstrip().startswith("The capital")


def test_an_error_after_the_200_is_the_last_event(gateway_factory):
    gateway = gateway_factory("--model", "tiny", "--request-timeout", "1")
    status, headers, received = post(gateway, {**GREEDY, "max_tokens": 30000, "stream": True})
    assert status == 200
    payloads = events_in(received)
    kinds = [payload["type"] for payload in payloads]
    assert kinds[0] == "message_start" and kinds.count("error") == 1 and kinds[-1] == "error"
    assert "message_delta" not in kinds and "message_stop" not in kinds
    error = payloads[-1]
    assert list(error)[:2] == ["type", "error"]
    assert error["error"]["type"] == "timeout_error" and error["error"]["message"]
    assert error["request_id"] == {k.lower(): v for k, v in headers.items()}["request-id"]
