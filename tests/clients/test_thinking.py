"""Thinking that goes back to the gateway, with the official client and a model that thinks aloud.

The vectors V22 and V23 of the cache semantics with thoughts that the gateway signed itself.
"""

from __future__ import annotations

import anthropic
import pytest
from conftest import client_of
from gateway_process import Gateway

QUESTION = "What is the weather? " * 70
CALL = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
BUDGET = {"type": "enabled", "budget_tokens": 1024}
BINDING = "thinking-binding-controls-2026-08-01"
# The random model hardly ever ends a thought by itself.
SMALL = {"max_tokens": 24, "output_config": {"effort": "low"}}


@pytest.fixture(scope="module")
def client():
    with Gateway("--model", "tiny-thinking") as gateway, client_of(gateway) as client:
        yield client


def marked(block: dict) -> dict:
    return {**block, "cache_control": {"type": "ephemeral"}}


def thought_of(message):
    block = message.content[0]
    assert block.type == "thinking"
    assert block.signature
    return block.model_dump()


def run_loop(client, **settings):
    """U1, A1[thinking, tool_use], U2[tool_result *], A2[thinking, text], U3[text *]: the usage of
    the second and of the third request, and the third's messages."""

    def ask(messages):
        return client.messages.create(messages=messages, **settings)

    messages = [{"role": "user", "content": QUESTION}]
    messages.append({"role": "assistant", "content": [thought_of(ask(messages)), CALL]})
    result = {"type": "tool_result", "tool_use_id": CALL["id"], "content": "sunny"}
    messages.append({"role": "user", "content": [marked(result)]})
    second = ask(messages)
    text = {"type": "text", "text": "It is sunny."}
    messages.append({"role": "assistant", "content": [thought_of(second), text]})
    messages.append({"role": "user", "content": [marked({"type": "text", "text": "Thanks."})]})
    return second.usage, ask(messages).usage, messages


def without_thoughts(messages):
    return [
        {**message, "content": [block for block in message["content"] if block["type"] != "thinking"]}
        if message["role"] == "assistant"
        else message
        for message in messages
    ]


def test_v22_a_last_turn_model_loses_the_prefix_with_the_thoughts(client):
    settings = {"model": "claude-sonnet-4-5-20250929", "thinking": BUDGET}
    second, third, messages = run_loop(client, max_tokens=1100, **settings)
    assert second.cache_creation_input_tokens > len(QUESTION)
    assert third.cache_read_input_tokens == 0
    stripped = client.messages.count_tokens(messages=without_thoughts(messages), **settings)
    assert third.cache_creation_input_tokens + third.input_tokens == stripped.input_tokens


def test_v23_a_keep_all_model_reads_up_to_the_result(client):
    second, third, messages = run_loop(client, model="claude-opus-5", **SMALL)
    assert second.cache_creation_input_tokens > len(QUESTION)
    assert third.cache_read_input_tokens == second.cache_creation_input_tokens
    stripped = client.messages.count_tokens(
        model="claude-opus-5", messages=without_thoughts(messages)
    )
    total = third.cache_read_input_tokens + third.cache_creation_input_tokens + third.input_tokens
    assert total > stripped.input_tokens


def test_counting_leaves_out_earlier_turns_thoughts_and_counts_the_current_ones(client):
    messages = [{"role": "user", "content": QUESTION}]
    thought = thought_of(client.messages.create(model="claude-opus-5", messages=messages, **SMALL))
    result = {"type": "tool_result", "tool_use_id": CALL["id"], "content": "sunny"}

    def count(*blocks, then=()):
        loop = [
            *messages,
            {"role": "assistant", "content": [*blocks, CALL]},
            {"role": "user", "content": [result]},
            *then,
        ]
        return client.messages.count_tokens(model="claude-opus-5", messages=loop).input_tokens

    later = [{"role": "assistant", "content": "Sunny."}, {"role": "user", "content": "Thanks."}]
    assert count(thought) > count()
    assert count(thought, then=later) == count(then=later)


@pytest.mark.parametrize("display", ["summarized", "omitted"])
def test_a_thought_comes_back_whatever_was_shown(client, display):
    settings = {"model": "claude-opus-5", "thinking": {"type": "adaptive", "display": display}, **SMALL}
    messages = [{"role": "user", "content": "Hello"}]
    for _ in range(20):  # now and then the random model's thought is empty
        thought = thought_of(client.messages.create(messages=messages, **settings))
        if thought["thinking"] != "" or display == "omitted":
            break
    assert (thought["thinking"] == "") == (display == "omitted")

    def again(block):
        return client.messages.create(
            messages=[
                *messages,
                {"role": "assistant", "content": [block, {"type": "text", "text": "Hi"}]},
                {"role": "user", "content": "And?"},
            ],
            **settings,
        )

    plain = again(thought).usage.input_tokens
    changed = {**thought, "thinking": "something else"}
    if display == "omitted":
        assert again(changed).usage.input_tokens == plain
    else:
        with pytest.raises(anthropic.BadRequestError, match="cannot be modified"):
            again(changed)
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature` in `thinking` block"):
        again({**thought, "signature": thought["signature"][:-8] + "AAAAAAA="})


def test_a_bound_thought_stays_with_its_conversation(client):
    settings = {"model": "claude-opus-5-5", **SMALL}
    first = [{"role": "user", "content": "Hello"}]
    thought = thought_of(client.messages.create(messages=first, **settings))
    rest = [
        {"role": "assistant", "content": [thought, {"type": "text", "text": "Hi"}]},
        {"role": "user", "content": "And?"},
    ]
    client.messages.create(messages=[*first, *rest], **settings)
    other = [{"role": "user", "content": "Goodbye"}, *rest]
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        client.messages.create(messages=other, **settings)
    behavior = {"prefix_mismatch_behavior": "drop_block"}
    dropped = client.beta.messages.create(
        messages=other,
        betas=[BINDING],
        thinking={"type": "adaptive", "block_binding": behavior},
        **settings,
    )
    [report] = dropped.input_transformations
    assert report.type == "thinking_dropped"
    assert (report.path, report.reason) == ("messages.1.content.0", "prefix_binding_mismatch")


def test_signatures_outlive_the_gateway():
    messages = [{"role": "user", "content": "Hello"}]
    rest = []
    for _ in range(2):
        with Gateway("--model", "tiny-thinking") as gateway, client_of(gateway) as client:
            answer = client.messages.create(
                model="claude-opus-5-5", messages=[*messages, *rest], **SMALL
            )
        rest = [
            {"role": "assistant", "content": [thought_of(answer), {"type": "text", "text": "Hi"}]},
            {"role": "user", "content": "And?"},
        ]


@pytest.mark.parametrize(
    ("model", "types"),
    [
        ("claude-opus-5-5", {"adaptive"}),
        ("claude-sonnet-5-5", {"adaptive", "between_tools"}),
        ("claude-sonnet-4-6", {"adaptive", "enabled", "disabled"}),
        ("claude-haiku-4-5", {"enabled", "disabled"}),
    ],
)
def test_models_say_how_they_may_be_asked_to_think(client, tiny_client, model, types):
    def taken(of):
        thinking = of.models.retrieve(model).capabilities.thinking
        return thinking.supported, {
            name for name, leaf in thinking.types.to_dict().items() if leaf["supported"]
        }

    assert taken(client) == (True, types)
    assert taken(tiny_client) == (False, set())  # the loaded model does not think
    assert client.models.retrieve(model).capabilities.structured_outputs.supported
