"""context_management and turn-scoped system messages, with the official client."""

from __future__ import annotations

import anthropic
import pytest

MODEL = "claude-sonnet-4-6"
BETA = "context-management-2025-06-27"
CLEAR = {
    "type": "clear_tool_uses_20250919",
    "trigger": {"type": "tool_uses", "value": 2},
    "keep": {"type": "tool_uses", "value": 1},
}


def conversation(calls: int) -> list:
    messages = [{"role": "user", "content": "Look at the files."}]
    for number in range(calls):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {"n": number}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "x" * 700}
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result]})
    return messages


def test_edits_shorten_the_prompt_and_are_reported(tiny_client):
    def ask(**more):
        return tiny_client.beta.messages.create(
            model=MODEL, max_tokens=1, messages=conversation(3), betas=[BETA], **more
        )

    plain = ask()
    assert plain.context_management is None
    nothing = ask(context_management={"edits": [{**CLEAR, "keep": {"type": "tool_uses", "value": 3}}]})
    assert nothing.context_management.applied_edits == []
    assert nothing.usage.input_tokens == plain.usage.input_tokens
    edited = ask(context_management={"edits": [CLEAR]})
    [applied] = edited.context_management.applied_edits
    assert (applied.type, applied.cleared_tool_uses) == ("clear_tool_uses_20250919", 2)
    assert edited.usage.input_tokens == plain.usage.input_tokens - applied.cleared_input_tokens
    assert applied.cleared_input_tokens > 1200

    counted = tiny_client.beta.messages.count_tokens(
        model=MODEL, messages=conversation(3), betas=[BETA], context_management={"edits": [CLEAR]}
    )
    assert counted.input_tokens == edited.usage.input_tokens
    assert counted.context_management.original_input_tokens == plain.usage.input_tokens

    with tiny_client.beta.messages.stream(
        model=MODEL,
        max_tokens=1,
        messages=conversation(3),
        betas=[BETA],
        context_management={"edits": [CLEAR]},
    ) as stream:
        final = stream.get_final_message()
    assert final.context_management == edited.context_management


def test_the_prefix_is_read_up_to_the_first_cleared_block(tiny_client):
    def ask(calls):
        messages = conversation(calls)
        messages[0]["content"] = [
            {"type": "text", "text": "y" * 1200, "cache_control": {"type": "ephemeral"}}
        ]
        return tiny_client.beta.messages.create(
            model=MODEL,
            max_tokens=1,
            messages=messages,
            betas=[BETA],
            cache_control={"type": "ephemeral"},
            context_management={"edits": [CLEAR]},
        ).usage

    first = ask(2)
    assert first.cache_read_input_tokens == 0
    assert first.cache_creation_input_tokens > 1200 + 2 * 700
    third = ask(3)  # now the edit fires: only the text before the calls is what it was
    assert 1200 <= third.cache_read_input_tokens < 1300


def test_malformed_edits_are_the_providers_error(tiny_client):
    with pytest.raises(anthropic.BadRequestError, match="must be the first edit"):
        tiny_client.beta.messages.create(
            model=MODEL,
            max_tokens=1,
            messages=conversation(0),
            betas=[BETA],
            context_management={"edits": [CLEAR, {"type": "clear_thinking_20251015", "keep": "all"}]},
        )


def test_a_turn_scoped_system_message_leaves_with_the_next_user_message(tiny_client):
    def tokens(*messages):
        return tiny_client.beta.messages.count_tokens(
            model="claude-opus-5",
            messages=[*messages],
            betas=["mid-conversation-system-clear-at-2026-08-21"],
        ).input_tokens

    user = {"role": "user", "content": "Hello"}
    scoped = {"role": "system", "content": "z" * 300, "clear_at": "next_user_message"}
    reply = {"role": "assistant", "content": "Hi"}
    assert tokens(user, scoped) > tokens(user) + 290
    assert tokens(user, scoped, reply, user) == tokens(user, reply, user)


def test_models_say_which_edits_there_are(tiny_client):
    edits = tiny_client.beta.models.retrieve("claude-opus-5").capabilities.context_management
    assert edits.supported
    assert edits.clear_tool_uses_20250919.supported
    assert edits.clear_thinking_20251015.supported
    assert not edits.compact_20260112.supported
