"""What the SDK costs an application, beside the official Python SDK in the same run.

Runs build/release/tests/incipit-bench-sdk, and does the same work with `anthropic`: builds a request of
200,000 tokens in 400 blocks and takes it as far as its bytes, which a transport receives and drops.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time

import anthropic
import httpx2

REPLY = {
    "model": "m", "id": "msg_1", "type": "message", "role": "assistant",
    "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn", "stop_sequence": None,
    "usage": {"input_tokens": 8, "output_tokens": 1},
}  # fmt: skip


class Drop(httpx2.BaseTransport):
    """Answers at once, and remembers when the request's bytes were there, and how many."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.bytes = len(request.read())
        self.arrived = time.perf_counter()
        return httpx2.Response(200, json=REPLY)


def text_of(block: int, size: int) -> str:
    sentence = (
        f'Block {block} says "caf\u00e9" and goes on with words, numbers 12345 and a line end.\n'
    )
    return sentence * -(-size // len(sentence.encode()))


def build_seconds(client: anthropic.Anthropic, drop: Drop, tokens: int, blocks: int) -> float:
    marker = {"type": "ephemeral"}
    texts = [text_of(i, tokens * 4 // blocks) for i in range(blocks)]
    started = time.perf_counter()
    messages = [
        {"role": "user" if i % 2 else "assistant", "content": [{"type": "text", "text": text}]}
        for i, text in enumerate(texts[1:], 1)
    ]
    messages[-1]["content"][-1]["cache_control"] = marker
    client.messages.create(
        model="claude-sonnet-5-5",
        max_tokens=4096,
        system=[{"type": "text", "text": texts[0], "cache_control": marker}],
        messages=messages,
    )
    return drop.arrived - started


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("program", help="incipit-bench-sdk")
    arguments.add_argument("--json", action="store_true", help="print one JSON object")
    options = arguments.parse_args()

    drop = Drop()
    client = anthropic.Anthropic(
        api_key="any", base_url="http://drop.invalid", http_client=httpx2.Client(transport=drop)
    )
    rounds = []
    for _ in range(3):  # in turns, so that both see the same weather
        ours = json.loads(subprocess.run([options.program], check=True, capture_output=True).stdout)
        theirs = statistics.median(build_seconds(client, drop, 200_000, 400) for _ in range(9))
        rounds.append((ours, theirs * 1e3))
    ours = {key: statistics.median(r[0][key] for r in rounds) for key in rounds[0][0]}
    theirs = statistics.median(r[1] for r in rounds)
    ratios = sorted(r[1] / r[0]["build_ms"] for r in rounds)
    if options.json:
        print(json.dumps({**ours, "python_build_ms": theirs, "ratios": ratios}))
        return
    print(f"request of 200k tokens, 400 blocks ({ours['build_bytes'] / 1e6:.2f} MB), built, checked, serialised")
    print(f"  incipit {ours['build_ms']:8.2f} ms")
    print(f"  python  {theirs:8.2f} ms   ({drop.bytes / 1e6:.2f} MB, anthropic {anthropic.__version__})")
    print(f"  ratio   {ratios[1]:8.1f}      (of three runs: {ratios[0]:.1f} to {ratios[2]:.1f})")
    print(f"fingerprint of 50k tokens ({ours['fingerprint_bytes'] / 1e6:.2f} MB): {ours['fingerprint_us']:.0f} us")
    print(f"event stream: {ours['sse_mb_per_s']:.0f} MB/s into frames, "
          f"{ours['events_mb_per_s']:.0f} MB/s ({ours['events_per_s'] / 1e6:.2f} M/s) into typed events")
    print(f"request over loopback: {ours['client_us']:.0f} us, bare libcurl {ours['curl_us']:.0f} us, "
          f"overhead {ours['client_us'] - ours['curl_us']:.0f} us")


if __name__ == "__main__":
    main()
