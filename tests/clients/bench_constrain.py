"""What a schema costs: decode rates of the same request with and without one, in turns.

Starts a gateway of its own. The rates are those that the gateway puts into its `incipit-cache`
header, which count decode steps alone; the first pair warms up and does not count.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import statistics

from gateway_process import Gateway

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "rows": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
                "required": ["name", "count"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["title", "rows"],
    "additionalProperties": False,
}


def rate(gateway: Gateway, tokens: int, schema: bool) -> float:
    """Decoded tokens per second; generation is repeated until it is long enough to tell."""
    body = {
        "model": "claude-sonnet-4-6",
        "max_tokens": tokens,
        "temperature": 1,
        "messages": [{"role": "user", "content": "List the rivers of Europe, with lengths."}],
    }
    if schema:
        body["output_config"] = {"format": {"type": "json_schema", "schema": SCHEMA}}
    while True:
        connection = http.client.HTTPConnection(gateway.host, gateway.port, timeout=600)
        headers = {"anthropic-version": "2023-06-01", "content-type": "application/json"}
        connection.request("POST", "/v1/messages", json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            raise SystemExit(f"the gateway answered {answer.status}: {text}")
        if json.loads(text)["usage"]["output_tokens"] >= tokens // 2:
            found = re.search(r"tokens-per-second=([\d.]+)", answer.headers["incipit-cache"])
            return float(found.group(1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    free, held = [], []
    with Gateway("--model", options.model) as gateway:
        for _ in range(options.pairs + 1):
            free.append(rate(gateway, options.tokens, schema=False))
            held.append(rate(gateway, options.tokens, schema=True))
    ratios = sorted(h / f for h, f in zip(held[1:], free[1:]))
    print(f"free text   {statistics.median(free[1:]):7.1f} tokens/s")
    print(f"by a schema {statistics.median(held[1:]):7.1f} tokens/s")
    print(f"ratio, median of {options.pairs} pairs: {statistics.median(ratios):.3f}", end="")
    print(f" ({ratios[0]:.3f} to {ratios[-1]:.3f})")


if __name__ == "__main__":
    main()
