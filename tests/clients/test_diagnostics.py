"""Cache diagnostics with the official client (V24 to V26, C-93 to C-102)."""

from __future__ import annotations

import pytest

MODEL = "claude-sonnet-4-6"
TOOL = {"name": "f", "description": "Does f.", "input_schema": {"type": "object"}}
UNAVAILABLE = {"type": "unavailable"}


@pytest.fixture
def ask(tiny_client):
    def create(previous=None, **changes):
        request = {
            "model": MODEL,
            "max_tokens": 2,
            "system": "You know fjords. " * 40,
            "tools": [TOOL],
            "messages": [{"role": "user", "content": "Hi"}],
            "diagnostics": {"previous_message_id": previous},
            **changes,
        }
        return tiny_client.messages.create(**request)

    return create


def reason(message) -> dict | None:
    if message.diagnostics is None:
        return None
    return message.diagnostics.cache_miss_reason.to_dict()


def test_the_key_is_there_and_null_without_a_request(ask):
    body = ask(diagnostics=None).to_dict()
    assert body["diagnostics"] is None


def test_an_edit_of_the_system_prompt(ask):
    """V24"""
    first = ask()
    assert first.diagnostics is None
    found = reason(ask(first.id, system="You know lakes. " * 40))
    assert found["type"] == "system_changed"
    assert 0 < found["cache_missed_input_tokens"] <= first.usage.input_tokens


def test_an_unknown_id(ask):
    """V25"""
    assert reason(ask("msg_01unknown")) == {"type": "previous_message_not_found"}
    silent = ask(diagnostics=None)
    assert reason(ask(silent.id)) == {"type": "previous_message_not_found"}


def test_only_the_tool_choice(ask):
    """V26"""
    assert reason(ask(ask().id, tool_choice={"type": "none"})) == UNAVAILABLE


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model": "claude-opus-4-6"}, "model_changed"),
        ({"tools": [{**TOOL, "description": "Does g."}]}, "tools_changed"),
        ({"messages": [{"role": "user", "content": "Ho"}]}, "messages_changed"),
        # One reason, in the order of the checks (C-96).
        ({"tools": [], "system": "Other."}, "system_changed"),
        ({"tools": [], "system": "Other.", "model": "claude-opus-4-6"}, "model_changed"),
    ],
)
def test_each_change_has_its_reason(ask, changes, expected):
    found = reason(ask(ask().id, **changes))
    assert found["type"] == expected
    assert found["cache_missed_input_tokens"] > 0


def test_a_conversation_that_only_grows_has_no_divergence(ask):
    first = ask()
    turns = [
        {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "More?"},
    ]
    second = ask(first.id, messages=turns)
    assert second.diagnostics is None  # markers are no difference (C-101)
    assert ask(second.id, messages=turns[:1]).diagnostics is None


def test_in_streams_it_is_in_message_start(tiny_client, ask):
    first = ask()
    with tiny_client.messages.stream(
        model=MODEL,
        max_tokens=2,
        system="Other.",
        messages=[{"role": "user", "content": "Hi"}],
        diagnostics={"previous_message_id": first.id},
    ) as stream:
        start = next(event for event in stream if event.type == "message_start")
    assert start.message.diagnostics.cache_miss_reason.type == "system_changed"


def test_the_detail_is_an_extension_on_request(ask):
    first = ask(system="Today is Monday.")
    plain = ask(first.id, system="Today is Tuesday.").to_dict()["diagnostics"]
    assert set(plain) == {"cache_miss_reason"}
    message = ask(
        first.id, system="Today is Tuesday.", extra_headers={"incipit-diagnostics": "detail"}
    )
    detail = message.to_dict()["diagnostics"]["incipit"]
    assert set(detail) == {"path", "byte_offset", "before", "after", "explanation"}
    assert detail["path"] == "system.0.text"
    assert "Monday" in detail["before"] and "Tuesday" in detail["after"]
    assert isinstance(detail["byte_offset"], int) and detail["byte_offset"] > 0
