"""Message batches with the official client: create, poll, results, pages, cancel, delete."""

from __future__ import annotations

import time

import anthropic
import pytest
from conftest import client_of

MODEL = "claude-sonnet-4-6"


def params(text: str = "Hello", max_tokens: int = 3, **more) -> dict:
    return {
        "model": MODEL,
        "max_tokens": max_tokens,
        "messages": [{"role": "user", "content": text}],
        **more,
    }


def requests(count: int, max_tokens: int = 3) -> list[dict]:
    return [{"custom_id": f"r{i}", "params": params(f"Number {i}", max_tokens)} for i in range(count)]


def wait(client: anthropic.Anthropic, batch_id: str):
    deadline = time.monotonic() + 60
    while True:
        batch = client.messages.batches.retrieve(batch_id)
        if batch.processing_status == "ended":
            return batch
        assert batch.request_counts.succeeded == batch.request_counts.errored == 0
        assert batch.results_url is None
        assert time.monotonic() < deadline, batch
        time.sleep(0.02)


def test_a_batch_from_its_creation_to_its_results(tiny, tiny_client):
    batch = tiny_client.messages.batches.create(
        requests=[*requests(5), {"custom_id": "bad", "params": {**params(), "messages": []}}]
    )
    assert batch.id.startswith("msgbatch_")
    assert batch.type == "message_batch"
    assert batch.processing_status == "in_progress"
    assert batch.request_counts.processing == 6
    assert (batch.expires_at - batch.created_at).total_seconds() == 24 * 3600
    ended = wait(tiny_client, batch.id)
    assert ended.request_counts.to_dict() == {
        "processing": 0, "succeeded": 5, "errored": 1, "canceled": 0, "expired": 0,
    }  # fmt: skip
    assert ended.ended_at is not None
    assert ended.results_url.startswith(tiny.base_url + "/")
    results = {result.custom_id: result.result for result in tiny_client.messages.batches.results(batch.id)}
    assert set(results) == {"r0", "r1", "r2", "r3", "r4", "bad"}
    for i in range(5):
        message = results[f"r{i}"].message
        assert results[f"r{i}"].type == "succeeded"
        assert message.id.startswith("msg_")
        assert message.usage.service_tier == "batch"
        assert 0 < message.usage.output_tokens <= 3
    assert results["bad"].type == "errored"
    assert results["bad"].error.type == "error"
    assert results["bad"].error.error.type == "invalid_request_error"
    assert "messages" in results["bad"].error.error.message


def test_the_beta_resource_is_the_same(tiny_client):
    batch = tiny_client.beta.messages.batches.create(requests=requests(1))
    wait(tiny_client, batch.id)
    [result] = tiny_client.beta.messages.batches.results(batch.id)
    assert result.result.type == "succeeded"


def test_caching_works_inside_of_batches(tiny_client):
    """C-103: a prefix that a message has warmed is read by the requests of a batch."""
    system = [{"type": "text", "text": "s" * 2000, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    warm = tiny_client.messages.create(**params(system=system))
    assert warm.usage.cache_creation.ephemeral_1h_input_tokens > 1900
    batch = tiny_client.messages.batches.create(
        requests=[{"custom_id": f"r{i}", "params": params(f"{i}", system=system)} for i in range(4)]
    )
    wait(tiny_client, batch.id)
    for result in tiny_client.messages.batches.results(batch.id):
        usage = result.result.message.usage
        assert usage.cache_read_input_tokens == warm.usage.cache_creation_input_tokens


def test_pages_in_both_directions(gateway_factory):
    with client_of(gateway_factory("--model", "tiny")) as client:
        made = [client.messages.batches.create(requests=requests(1)).id for _ in range(7)][::-1]
        assert [batch.id for batch in client.messages.batches.list(limit=3)] == made
        page = client.messages.batches.list(limit=2, before_id=made[5])
        assert [batch.id for batch in page.data] == made[3:5]
        assert [batch.id for batch in page.get_next_page().data] == made[1:3]


def test_cancel_keeps_what_is_done(tiny_client):
    batch = tiny_client.messages.batches.create(requests=requests(30, max_tokens=20000))
    with pytest.raises(anthropic.AnthropicError, match="results_url"):
        tiny_client.messages.batches.results(batch.id)
    canceling = tiny_client.messages.batches.cancel(batch.id)
    assert canceling.processing_status == "canceling"
    assert canceling.cancel_initiated_at is not None
    ended = wait(tiny_client, batch.id)
    assert ended.request_counts.canceled >= 20
    kinds = [result.result.type for result in tiny_client.messages.batches.results(batch.id)]
    assert kinds.count("canceled") == ended.request_counts.canceled
    assert set(kinds) <= {"canceled", "succeeded"}


def test_delete(tiny_client):
    batch = tiny_client.messages.batches.create(requests=requests(1))
    wait(tiny_client, batch.id)
    deleted = tiny_client.messages.batches.delete(batch.id)
    assert (deleted.id, deleted.type) == (batch.id, "message_batch_deleted")
    with pytest.raises(anthropic.NotFoundError):
        tiny_client.messages.batches.retrieve(batch.id)


def test_expiry_and_archive_on_a_clock_that_moves(gateway_factory):
    gateway = gateway_factory("--model", "tiny", "--virtual-clock", "--batch-concurrency", "1")
    with client_of(gateway) as client:
        batch = client.messages.batches.create(requests=requests(40, max_tokens=20000))
        gateway.request("POST", "/incipit/clock", {"advance_seconds": 24 * 3600})
        ended = wait(client, batch.id)
        assert ended.request_counts.expired >= 30
        assert ended.ended_at >= ended.expires_at
        assert "expired" in {r.result.type for r in client.messages.batches.results(batch.id)}
        gateway.request("POST", "/incipit/clock", {"advance_seconds": 28 * 24 * 3600})
        archived = client.messages.batches.retrieve(batch.id)
        assert archived.archived_at is not None
        assert archived.results_url is None


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"max_tokens": 0}, "max_tokens"),  # C-105
        ({"stream": True}, "stream"),
        ({"speed": "standard"}, "speed"),
        ({"thread": {"id": "t"}}, "thread"),
    ],
)
def test_refused_inside_of_params(tiny_client, more, named):
    with pytest.raises(anthropic.BadRequestError, match=rf"requests\.1\.params\.{named}: "):
        tiny_client.messages.batches.create(
            requests=[*requests(1), {"custom_id": "x", "params": {**params(), **more}}]
        )


def test_two_requests_of_the_same_name(tiny_client):
    with pytest.raises(anthropic.BadRequestError, match=r"requests\.1\.custom_id: 'r0'"):
        tiny_client.messages.batches.create(requests=requests(1) * 2)


def test_a_signal_ends_a_gateway_with_a_batch_on_its_way(gateway_factory):
    gateway = gateway_factory("--model", "tiny")
    with client_of(gateway) as client:
        client.messages.batches.create(requests=requests(50, max_tokens=30000))
    gateway.terminate()
    assert gateway.process.wait(timeout=20) == 0


def test_workspaces_do_not_see_each_others_batches(gateway_factory, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text('{"key": "a", "workspace": "one"}\n{"key": "b", "workspace": "two"}\n')
    gateway = gateway_factory("--model", "tiny", "--keys", str(keys))
    with client_of(gateway, api_key="a") as mine, client_of(gateway, api_key="b") as other:
        batch = mine.messages.batches.create(requests=requests(1))
        wait(mine, batch.id)
        assert [r.custom_id for r in mine.messages.batches.results(batch.id)] == ["r0"]
        assert list(other.messages.batches.list()) == []
        with pytest.raises(anthropic.NotFoundError):
            other.messages.batches.retrieve(batch.id)
        with pytest.raises(anthropic.PermissionDeniedError):
            other.messages.batches.list(workspace_id="one")
