"""A conversation that pays for its past once: the marker is on the last block of every request.

Needs a running gateway (`./incipit serve`) and `pip install anthropic`. Prints what each turn read
from the cache, wrote to it, and sent as plain input.
"""

import os
from pathlib import Path

import anthropic

MODEL = "claude-sonnet-4-6"
HANDBOOK = (Path(__file__).parent.parent / "LICENSE").read_text()
QUESTIONS = [
    "Which licence is this?",
    "May I sell a program that contains the work?",
    "What must I keep when I do?",
]

client = anthropic.Anthropic(
    base_url=os.environ.get("ANTHROPIC_BASE_URL", "http://127.0.0.1:8787"),
    api_key=os.environ.get("ANTHROPIC_API_KEY", "any"),
)
messages = []
print("  read  written  plain  answer")
for question in QUESTIONS:
    messages.append({"role": "user", "content": question})
    answer = client.messages.create(
        model=MODEL,
        max_tokens=40,
        system=HANDBOOK,
        messages=messages,
        cache_control={"type": "ephemeral"},
    )
    text = "".join(block.text for block in answer.content)
    usage = answer.usage
    print(
        f"{usage.cache_read_input_tokens:6}  {usage.cache_creation_input_tokens:7}"
        f"  {usage.input_tokens:5}  {' '.join(text.split())[:60]}"
    )
    messages.append({"role": "assistant", "content": text or "…"})
