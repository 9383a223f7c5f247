"""Time to the first token of the same marked prefix, cold and cached, over HTTP.

Starts a gateway of its own, so that nothing is cached before. Every length has a text of its own; it
is sent once cold, then several times warm, and the medians are printed. Uses nothing but the
standard library.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import statistics
import time
from pathlib import Path

from gateway_process import Gateway

TEXT = (Path(__file__).parent.parent / "reference" / "text.txt").read_text(encoding="utf-8")
LENGTHS = (4000, 8000, 12000, 24000)  # characters; a token is about four
WARM_RUNS = 5
NEW_TOKENS = 33


class Measured:
    """One streamed request: usage, seconds to the first text, seconds between tokens after it."""

    def __init__(self, gateway: Gateway, text: str):
        body = {
            "model": "claude-sonnet-4-6",
            "max_tokens": NEW_TOKENS,
            "temperature": 0,
            "stream": True,
            "system": [
                {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
            ],
            "messages": [{"role": "user", "content": "Go on with the text."}],
        }
        connection = http.client.HTTPConnection(gateway.host, gateway.port, timeout=600)
        started = time.perf_counter()
        connection.request(
            "POST",
            "/v1/messages",
            json.dumps(body),
            {"anthropic-version": "2023-06-01", "content-type": "application/json"},
        )
        answer = connection.getresponse()
        if answer.status != 200:
            raise SystemExit(f"the gateway answered {answer.status}: {answer.read().decode()}")
        first = last = 0.0
        for line in answer:
            if not line.startswith(b"data: "):
                continue
            event = json.loads(line[6:])
            if event["type"] == "message_start":
                self.usage = event["message"]["usage"]
            elif event["type"] == "content_block_delta":
                last = time.perf_counter() - started
                first = first or last
            elif event["type"] == "message_delta":
                self.output_tokens = event["usage"]["output_tokens"]
        connection.close()
        self.first_text = first or time.perf_counter() - started
        self.per_token = (last - first) / max(1, self.output_tokens - 1)


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, usage="./incipit bench [--model MODEL]")
    parser.add_argument("--gateway", help=argparse.SUPPRESS)
    parser.add_argument("--model", default="default")
    arguments = parser.parse_args()
    if arguments.gateway:
        os.environ["INCIPIT_GATEWAY"] = arguments.gateway

    print(f"model {arguments.model}, {processor()}, {os.cpu_count()} CPUs, {NEW_TOKENS} new tokens")
    print("prompt tokens   written      read   cold first text   warm first text   ratio   ms/token")
    with Gateway("--model", arguments.model) as gateway:
        Measured(gateway, "Warm up the processor and the page cache.")
        for length in LENGTHS:
            text = f"Text of {length} characters. " + TEXT[:length]
            cold = Measured(gateway, text)
            warm = [Measured(gateway, text) for _ in range(WARM_RUNS)]
            usage = cold.usage
            written = usage["cache_creation_input_tokens"]
            total = usage["input_tokens"] + written + usage["cache_read_input_tokens"]
            reads = {run.usage["cache_read_input_tokens"] for run in warm}
            if reads != {written}:
                raise SystemExit(f"{written} tokens were written, but {sorted(reads)} read")
            seconds = statistics.median(run.first_text for run in warm)
            per_token = statistics.median(run.per_token for run in warm)
            print(
                f"{total:13}   {written:7}   {written:7}   {cold.first_text * 1000:12.1f} ms   "
                f"{seconds * 1000:12.1f} ms   {cold.first_text / seconds:5.0f}   {per_token * 1000:8.1f}"
            )


if __name__ == "__main__":
    main()
