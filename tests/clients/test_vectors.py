"""The cache vectors of tests/data/cache/vectors.json over HTTP, on a clock that the test moves.

The same table is run on the ledger alone by tests/cache/vectors_test.cpp. Its block sizes are met to
the token: the tiny model has one token per byte, and its template one token for each marker, which
opens or closes a turn. `POST /v1/messages/count_tokens` confirms every prompt.
"""

from __future__ import annotations

import hashlib
import json
import socket
from pathlib import Path

import pytest
from gateway_process import Gateway

TABLE = json.loads(
    (Path(__file__).parent.parent / "data" / "cache" / "vectors.json").read_text(encoding="utf-8")
)
VECTORS = [v for v in TABLE["vectors"] if "http" not in v.get("not_on", {})]
TURN_OF = {"tool": "tools", "system": "system", "user": "user", "result": "user"}
TURN_OF |= {"assistant": "assistant", "call": "assistant", "later": "later"}
USERS = ("user", "later")  # a system message among the messages belongs to the user's turn
SCHEMA = '{"type":"object"}'
EMPTY_INPUT = '{"q":""}'
COUNTABLE = ("model", "system", "messages", "tools", "tool_choice", "cache_control")
COUNTABLE += ("thinking", "output_config")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    keys = tmp_path_factory.mktemp("keys") / "keys"
    lines = (json.dumps({"key": key, **k}) + "\n" for key, k in TABLE["keys"].items())
    keys.write_text("".join(lines))
    with Gateway("--model", "tiny", "--virtual-clock", "--keys", str(keys)) as started:
        yield started


def letters(vector: str, kind: str, name: str, count: int) -> str:
    """Text that only this block of this vector has."""
    assert count > 0, f"{vector}: block {name} is smaller than its markers"
    digest = hashlib.sha256(f"{vector}/{kind}/{name}".encode()).hexdigest()
    return (digest * (count // len(digest) + 1))[:count]


def name_of(vector: str, name: str) -> str:
    return "n_" + hashlib.sha256(f"{vector}/{name}".encode()).hexdigest()[:8]


def block_json(vector: str, kind: str, name: str, size: int) -> dict:
    """A block that takes `size` tokens between the markers of its turn."""
    if kind == "tool":
        tool = name_of(vector, name)
        text = letters(vector, kind, name, size - len(tool) - len(SCHEMA))
        return {"name": tool, "description": text, "input_schema": json.loads(SCHEMA)}
    if kind == "call":
        tool = name_of(vector, "tool of a call")
        text = letters(vector, kind, name, size - len(tool) - len(EMPTY_INPUT))
        return {
            "type": "tool_use",
            "id": "toolu_" + name_of(vector, name),
            "name": tool,
            "input": {"q": text},
        }
    text = letters(vector, kind, name, size)
    if kind == "result":
        return {
            "type": "tool_result",
            "tool_use_id": "toolu_" + name_of(vector, name),
            "content": text,
        }
    return {"type": "text", "text": text}


def body_of(vector: dict, step: dict) -> tuple[dict, int]:
    """The request of a step and the number of its prompt tokens."""
    blocks = [block.split() for block in step["blocks"]]
    body = {
        "model": step.get("model", vector["model"]),
        "max_tokens": step.get("max_tokens", 1),
        "messages": [],
    }
    if "automatic" in step:
        body["cache_control"] = {"type": "ephemeral", "ttl": step["automatic"]}
    if "tool_choice" in step:
        body["tool_choice"] = step["tool_choice"]
    body |= step.get("settings", {})
    total = 0
    for i, (kind, name, tokens, *ttl) in enumerate(blocks):
        turn = TURN_OF[kind]
        before = TURN_OF[blocks[i - 1][0]] if i > 0 else None
        after = TURN_OF[blocks[i + 1][0]] if i + 1 < len(blocks) else None
        # The first block of a turn opens it and closes the one before; but the last block of a user
        # turn closes that and opens the assistant's already.
        is_opened = before == turn or (turn == "assistant" and before in USERS)
        markers = 1 if before is None else 0 if is_opened else 2
        markers += 2 if turn in USERS and after not in USERS else 0
        total += int(tokens)
        block = block_json(vector["id"], kind, name, int(tokens) - markers)
        if ttl:
            block["cache_control"] = {"type": "ephemeral", "ttl": ttl[0]}
        if turn in ("tools", "system"):
            body.setdefault(turn, []).append(block)
            continue
        role = "system" if turn == "later" else turn
        if not body["messages"] or body["messages"][-1]["role"] != role:
            body["messages"].append({"role": role, "content": []})
        body["messages"][-1]["content"].append(block)
    return body, total


def ask(gateway: Gateway, path: str, body: dict, key: str) -> tuple[int, dict]:
    status, _, text = gateway.request("POST", path, body, {"x-api-key": key})
    return status, json.loads(text)


def ask_at_once(gateway: Gateway, body: dict, key: str, times: int) -> list[tuple[int, dict]]:
    """The same request on several connections. All but the last byte of each goes ahead, so that
    they arrive together: far closer than a prefill takes."""
    payload = json.dumps(body).encode()
    head = (
        f"POST /v1/messages HTTP/1.1\r\nhost: {gateway.host}\r\nconnection: close\r\n"
        f"content-type: application/json\r\nanthropic-version: 2023-06-01\r\nx-api-key: {key}\r\n"
        f"content-length: {len(payload)}\r\n\r\n"
    ).encode()
    peers = [socket.create_connection((gateway.host, gateway.port), timeout=60) for _ in range(times)]
    try:
        for peer in peers:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.sendall(head + payload[:-1])
        for peer in peers:
            peer.sendall(payload[-1:])
        answers = []
        for peer in peers:
            with peer.makefile("rb") as file:
                status = int(file.readline().split()[1])
                headers = {}
                while (line := file.readline().strip()) != b"":
                    name, _, value = line.partition(b":")
                    headers[name.lower()] = value.strip()
                answers.append((status, json.loads(file.read(int(headers[b"content-length"])))))
        return answers
    finally:
        for peer in peers:
            peer.close()


def check_answer(answer: dict, step: dict) -> None:
    expected = step["expect"]
    usage = answer["usage"]
    split = usage["cache_creation"]
    assert {
        "input": usage["input_tokens"],
        "write_5m": split["ephemeral_5m_input_tokens"],
        "write_1h": split["ephemeral_1h_input_tokens"],
        "read": usage["cache_read_input_tokens"],
    } == expected
    assert usage["cache_creation_input_tokens"] == expected["write_5m"] + expected["write_1h"]
    reply = {**answer, "output_tokens": usage["output_tokens"]}
    for name, value in step.get("reply", {}).items():
        assert reply[name] == value, name


@pytest.mark.parametrize("vector", VECTORS, ids=[v["id"] for v in VECTORS])
def test_vector(gateway, vector):
    for number, step in enumerate(vector["steps"], 1):
        key = step.get("key", "alice")
        if "advance" in step:
            moved = {"advance_seconds": step["advance"]}
            status, answer = ask(gateway, "/incipit/clock", moved, key)
            assert status == 200, answer
        body, total = body_of(vector, step)
        if "error" in step:
            status, answer = ask(gateway, "/v1/messages", body, key)
            assert (status, answer["type"]) == (400, "error"), f"step {number}: {answer}"
            assert answer["error"]["type"] == "invalid_request_error"
            assert answer["error"]["message"] == step["error"]
            continue
        countable = {name: body[name] for name in COUNTABLE if name in body}
        status, answer = ask(gateway, "/v1/messages/count_tokens", countable, key)
        assert (status, answer) == (200, {"input_tokens": total}), f"step {number}"
        for status, answer in ask_at_once(gateway, body, key, step.get("parallel", 1)):
            assert status == 200, f"step {number}: {answer}"
            check_answer(answer, step)


def test_the_engine_kept_every_promise(gateway):
    """Otherwise the vectors before this would prove less than they say."""
    status, _, text = gateway.request("GET", "/metrics", headers={"x-api-key": "alice"})
    assert status == 200, text
    assert "\nincipit_entries_lost_total 0\n" in text


def test_v1_to_v21_are_all_run():
    assert {f"V{i}" for i in range(1, 22)} <= {v["id"] for v in VECTORS}
