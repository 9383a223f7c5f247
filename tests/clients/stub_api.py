"""Canned replies in the shape of the hosted APIs, for examples of what the gateway does not serve yet.

The bodies are those of the API's documentation and captures; the server checks that what it is sent
names what the example is about.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USAGE = {"input_tokens": 80, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
         "output_tokens": 8}  # fmt: skip


def message(text: str) -> dict:
    return {"model": "claude-sonnet-5-5", "id": "msg_1", "type": "message", "role": "assistant",
            "content": [{"type": "text", "text": text}], "container": None,
            "stop_reason": "end_turn", "stop_sequence": None, "stop_details": None,
            "usage": USAGE, "diagnostics": None}  # fmt: skip


def chat_chunks() -> bytes:
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1790000000, "model": "m"}
    deltas = [{"role": "assistant", "content": "", "refusal": None}, {"content": "Sogne"},
              {"content": "fjord"}, {}]  # fmt: skip
    parts = [
        {**chunk, "choices": [{"index": 0, "delta": delta, "logprobs": None,
                               "finish_reason": None if delta else "stop"}], "usage": None}
        for delta in deltas
    ]  # fmt: skip
    parts.append({**chunk, "choices": [], "usage": {
        "prompt_tokens": 2600, "completion_tokens": 3, "total_tokens": 2603,
        "prompt_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 400}}})  # fmt: skip
    lines = [f"data: {json.dumps(part)}\n\n" for part in parts] + ["data: [DONE]\n\n"]
    return "".join(lines).encode()


class StubApi(ThreadingHTTPServer):
    """Use as a context manager; `requests` are (method, path, parsed body) in order."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, str, dict]] = []
        self.base_url = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def answer(self, method: str, path: str) -> tuple[str, bytes] | None:
        """(content type, body)"""
        whole = "application/json"
        match method, path:
            case "POST", "/v1/messages":
                ticket = {"title": "Blank login page", "priority": "high", "labels": ["login", "bug"]}
                return whole, json.dumps(message(json.dumps(ticket))).encode()
            case "POST", "/v1/chat/completions":
                return "text/event-stream", chat_chunks()
        return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StubApi

    def respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.requests.append((self.command, self.path, json.loads(body) if body else {}))
        kind, answer = self.server.answer(self.command, self.path) or ("", b"")
        self.send_response(200 if kind else 404)
        self.send_header("content-type", kind or "application/json")
        self.send_header("content-length", str(len(answer)))
        self.send_header("request-id", "req_1")
        self.end_headers()
        self.wfile.write(answer)

    do_POST = respond

    def log_message(self, *_) -> None:
        pass
