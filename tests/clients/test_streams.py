"""Many streams at once, readers that leave or dawdle, and the end of the process."""

from __future__ import annotations

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import WITH_TEMPERATURE, client_of

TEXT = (Path(__file__).parent.parent / "reference" / "text.txt").read_text(encoding="utf-8")
MODEL = "claude-sonnet-4-6"


class RawStream:
    """A streaming request on a plain socket, for clients that do not behave."""

    def __init__(self, gateway, content: str, max_tokens: int, receive_buffer: int = 0):
        body = json.dumps(
            {
                "model": MODEL,
                "max_tokens": max_tokens,
                "stream": True,
                "temperature": 0,
                "messages": [{"role": "user", "content": content}],
            }
        )
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(60)
        self.socket.connect((gateway.host, gateway.port))
        self.socket.sendall(
            (
                f"POST /v1/messages HTTP/1.1\r\nhost: {gateway.host}\r\n"
                "anthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}"
            ).encode()
        )
        self.received = b""

    def read_until(self, marker: bytes) -> bytes:
        while marker not in self.received:
            data = self.socket.recv(65536)
            assert data, f"closed before {marker!r}: {self.received[-500:]!r}"
            self.received += data
        return self.received

    def read_all(self) -> bytes:
        while data := self.socket.recv(65536):
            self.received += data
        return self.received

    def close(self) -> None:
        self.socket.close()


def idle(metrics) -> bool:
    return (
        metrics["incipit_requests_running"] == 0
        and metrics["incipit_requests_waiting"] == 0
        and metrics['incipit_kv_blocks{state="in_use"}'] == 0
    )


def test_16_streams_at_once_all_end_and_say_what_they_say_alone(default_model):
    def ask(number: int) -> str:
        with client_of(default_model) as client:
            with client.messages.stream(
                model=MODEL,
                max_tokens=16,
                messages=[{"role": "user", "content": f"Name {number} animals of the forest."}],
                extra_headers=WITH_TEMPERATURE,
                extra_body={"temperature": 0},
            ) as stream:
                text = "".join(stream.text_stream)
                message = stream.get_final_message()
        assert message.stop_reason in ("end_turn", "max_tokens")
        assert text == message.content[0].text
        return text

    numbers = range(2, 18)
    with ThreadPoolExecutor(max_workers=16) as pool:
        together = list(pool.map(ask, numbers))
    assert [ask(number) for number in (2, 9, 17)] == [together[0], together[7], together[15]]
    default_model.wait_for(idle)


def test_a_client_that_leaves_during_prefill_frees_its_work_within_two_steps(gateway_factory):
    gateway = gateway_factory("--model", "default")
    stream = RawStream(gateway, TEXT, max_tokens=5)  # a dozen prefill steps
    before = gateway.wait_for(lambda m: m["incipit_requests_running"] == 1)
    stream.close()
    after = gateway.wait_for(idle)
    # One step may have begun between reading the counter and closing the socket.
    assert after["incipit_engine_steps_total"] - before["incipit_engine_steps_total"] <= 3
    assert after["incipit_cancelled_total"] == before["incipit_cancelled_total"] + 1


def test_a_client_that_leaves_during_decode_frees_its_work(gateway_factory):
    gateway = gateway_factory("--model", "default")
    stream = RawStream(gateway, "Write a long story about a lighthouse.", max_tokens=4000)
    stream.read_until(b"content_block_delta")
    before = gateway.wait_for(lambda m: m["incipit_requests_running"] == 1)
    stream.close()
    after = gateway.wait_for(idle, seconds=2)
    assert after["incipit_cancelled_total"] == before["incipit_cancelled_total"] + 1
    # The steps of a few milliseconds of decoding, not the thousands that were asked for.
    assert after["incipit_engine_steps_total"] - before["incipit_engine_steps_total"] < 50


def test_a_slow_reader_slows_nobody_and_still_gets_everything(gateway_factory):
    gateway = gateway_factory("--model", "tiny")
    request = {
        "model": MODEL,
        "max_tokens": 300,
        "messages": [{"role": "user", "content": "Quick?"}],
        "extra_headers": WITH_TEMPERATURE,
        "extra_body": {"temperature": 0},
    }
    with client_of(gateway) as client:

        def seconds() -> float:
            started = time.monotonic()
            client.messages.create(**request)
            return time.monotonic() - started

        seconds()
        alone = min(seconds() for _ in range(3))
        slow = RawStream(gateway, "Slow?", max_tokens=6000, receive_buffer=2048)
        beside = min(seconds() for _ in range(3))
    # Two sequences share the machine, so some slowing is fair; waiting for the reader is not.
    assert beside < 4 * alone + 0.5
    assert slow.read_all().rstrip().endswith(b"0") and b"message_stop" in slow.received
    gateway.wait_for(idle)


def test_sigterm_lets_a_running_stream_finish_and_then_ends_with_0(gateway_factory):
    gateway = gateway_factory("--model", "default")
    stream = RawStream(gateway, "Count from one to a hundred in words.", max_tokens=60)
    stream.read_until(b"content_block_delta")
    gateway.terminate()
    assert b"message_stop" in stream.read_all()
    assert b"event: error" not in stream.received
    assert gateway.process.wait(timeout=10) == 0
    with pytest.raises(OSError):
        socket.create_connection((gateway.host, gateway.port), timeout=2)


def test_sigterm_without_requests_ends_at_once(gateway_factory):
    gateway = gateway_factory("--model", "tiny")
    started = time.monotonic()
    gateway.terminate()
    assert gateway.process.wait(timeout=10) == 0
    assert time.monotonic() - started < 3
