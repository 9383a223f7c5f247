"""Requests that cannot be served: the provider's status, envelope and client exception."""

from __future__ import annotations

import contextlib
import json
import socket
import threading

import anthropic
import pytest
from conftest import client_of

MODEL = "claude-sonnet-4-6"
QUESTION = [{"role": "user", "content": "Hello?"}]
VALID = {"model": MODEL, "max_tokens": 1, "messages": QUESTION}
MEBIBYTE = 1 << 20


def refused(gateway, body, path="/v1/messages", method="POST", headers=None):
    """(status, error object) of an answer that must be the error envelope."""
    status, sent, text = gateway.request(method, path, body, headers)
    assert status >= 400, text
    envelope = json.loads(text)
    assert envelope["type"] == "error"
    assert envelope["request_id"] == sent["request-id"]
    if status in (400, 401, 404, 405, 413):
        assert sent["x-should-retry"] == "false"
    return status, envelope["error"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_tokens": None}, "max_tokens: "),
        ({"max_tokens": "many"}, "max_tokens: Input should be a valid integer"),
        ({"max_tokens": -1}, "max_tokens: "),
        ({"messages": []}, "messages: at least one message is required"),
        ({"messages": "Hello?"}, "messages: "),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"temperature": 1.5}, "temperature: Input should be less than or equal to 1"),
        ({"stop_sequences": ["  "]}, "stop_sequences: "),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search_20250305"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "thinking"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
            "messages.0.content.0",
        ),
        (
            {"system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "10m"}}]},
            "system.0.cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
        ),
        (
            {
                "system": [
                    {"type": "text", "text": f"{n}", "cache_control": {"type": "ephemeral"}}
                    for n in range(5)
                ]
            },
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
    ],
)
def test_a_request_that_breaks_a_rule_is_told_which(tiny, change, message):
    body = {name: value for name, value in {**VALID, **change}.items() if value is not None}
    status, error = refused(tiny, body)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert message in error["message"]


def test_broken_json_is_told_where_it_breaks(tiny):
    status, error = refused(tiny, '{"model": "claude-sonnet-4-6", "max_tokens": }')
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert "The request body is not valid JSON" in error["message"]
    assert any(character.isdigit() for character in error["message"]), "no offset named"


def test_a_prompt_beyond_the_context_is_refused_with_both_numbers(tiny_client, tiny):
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > \d+ maximum"):
        tiny_client.messages.create(
            model=MODEL, max_tokens=1, messages=[{"role": "user", "content": "word " * 20000}]
        )
    assert tiny_client.messages.create(**VALID).usage.input_tokens > 0


def test_an_unknown_model_is_not_found(tiny_client):
    with pytest.raises(anthropic.NotFoundError) as caught:
        tiny_client.messages.create(model="gpt-4o", max_tokens=1, messages=QUESTION)
    assert caught.value.body["error"] == {"type": "not_found_error", "message": "model: gpt-4o"}


def test_a_bad_request_is_the_clients_bad_request(tiny_client):
    with pytest.raises(anthropic.BadRequestError) as caught:
        tiny_client.messages.create(model=MODEL, max_tokens=1, messages=[])
    assert caught.value.status_code == 400
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert caught.value.request_id.startswith("req_")


def test_unknown_paths_and_verbs(tiny):
    assert refused(tiny, None, "/v1/nothing", "GET")[0] == 404
    status, error = refused(tiny, {}, "/v1/complete")
    assert (status, error["type"]) == (404, "not_found_error")
    status, error = refused(tiny, None, "/v1/messages", "DELETE")
    assert (status, error["type"]) == (405, "invalid_request_error")


def test_the_version_header_is_required(tiny):
    connection = socket.create_connection((tiny.host, tiny.port), timeout=10)
    body = json.dumps(VALID)
    connection.sendall(
        f"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
    )
    answer = connection.recv(65536).decode()
    connection.close()
    assert answer.startswith("HTTP/1.1 400 ")
    assert "anthropic-version: header is required" in answer


def test_a_body_over_32_mib_is_refused_before_it_is_read(tiny):
    connection = socket.create_connection((tiny.host, tiny.port), timeout=10)
    connection.sendall(
        b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nanthropic-version: 2023-06-01\r\n"
        b"content-length: %d\r\n\r\n" % (32 * MEBIBYTE + 1)
    )
    answer = connection.recv(65536).decode()
    connection.close()
    assert answer.startswith("HTTP/1.1 413 ")
    assert "request_too_large" in answer


def test_a_body_over_32_mib_is_the_clients_content_too_large(tiny_client):
    with pytest.raises(anthropic.APIStatusError) as caught:
        tiny_client.messages.create(
            model=MODEL,
            max_tokens=1,
            messages=[{"role": "user", "content": "x" * (33 * MEBIBYTE)}],
        )
    assert caught.value.status_code == 413
    assert isinstance(caught.value, anthropic.ContentTooLargeError)


def test_a_full_queue_is_overloaded_with_a_time_to_come_back(gateway_factory):
    gateway = gateway_factory("--model", "tiny", "--max-queue", "1")
    body = {
        "model": MODEL,
        "max_tokens": 20000,
        "stream": True,
        "temperature": 0,
        "messages": QUESTION,
    }
    text = json.dumps(body)
    head = (
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nanthropic-version: 2023-06-01\r\n"
        f"content-length: {len(text)}\r\n\r\n"
    )
    answers: list[str] = []
    connections = []

    def first_line(connection) -> None:
        with contextlib.suppress(OSError):  # closed while it waited
            answers.append(connection.recv(4096).decode(errors="replace"))

    readers = []
    for _ in range(120):  # more than run and wait at once
        connection = socket.create_connection((gateway.host, gateway.port), timeout=60)
        connection.sendall((head + text).encode())
        connections.append(connection)
        readers.append(threading.Thread(target=first_line, args=(connection,), daemon=True))
        readers[-1].start()
    overloaded = None
    try:
        with client_of(gateway) as client:
            for _ in range(50):
                try:
                    client.messages.create(**VALID)
                except anthropic.OverloadedError as error:
                    overloaded = error
                    break
    finally:
        for connection in connections:
            connection.close()
    refusals = [answer for answer in answers if answer.startswith("HTTP/1.1 529 ")]
    assert overloaded or refusals, "nothing was refused"
    if overloaded:
        assert overloaded.status_code == 529
        assert int(overloaded.response.headers["retry-after"]) > 0
        assert overloaded.body["error"]["type"] == "overloaded_error"
    for refusal in refusals:
        assert "overloaded_error" in refusal
        assert "retry-after:" in refusal.lower()
    gateway.wait_for(lambda m: m["incipit_requests_running"] == 0, seconds=20)
