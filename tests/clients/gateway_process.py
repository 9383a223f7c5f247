"""A gateway under test: starts the program, waits until it listens, stops it."""

from __future__ import annotations

import http.client
import json
import os
import queue
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
READY_SECONDS = 60


def program() -> Path:
    default = ROOT / "build" / "release" / "gateway" / "incipit-gateway"
    path = Path(os.environ.get("INCIPIT_GATEWAY") or default)
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; `./incipit test` builds it")
    return path


def models_folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("INCIPIT_MODELS") or cache / "incipit" / "models")


class Gateway:
    """Started with `arguments` on a free port unless they name one. Use as a context manager."""

    def __init__(self, *arguments: str):
        words = [str(word) for word in arguments]
        if "--port" not in words:
            words += ["--port", "0"]
        self.process = subprocess.Popen(
            [str(program()), "serve", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "INCIPIT_MODELS": str(models_folder())},
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._stdout: list[str] = []
        self._stderr: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in [
                (self.process.stdout, self._stdout),
                (self.process.stderr, self._stderr),
            ]
        ]
        for reader in self._readers:
            reader.start()
        self.base_url = self._wait_until_ready()
        self.host, port = self.base_url.removeprefix("http://").rsplit(":", 1)
        self.port = int(port)

    def _read(self, stream, into: list[str]) -> None:
        for line in stream:
            into.append(line)
            self._lines.put(line)
        if stream is self.process.stdout:
            self._lines.put(None)

    def _wait_until_ready(self) -> str:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self.process.kill()
                raise AssertionError(f"not ready after {READY_SECONDS} s: {self.stderr}") from None
            if line is None:
                code = self.process.wait()
                raise AssertionError(f"ended with code {code} before it listened: {self.stderr}")
            found = re.search(r"listening on (http://\S+:\d+)", line)
            if found:
                return found[1]

    @property
    def stdout(self) -> str:
        return "".join(self._stdout)

    @property
    def stderr(self) -> str:
        """Everything so far; complete once the process has been waited for."""
        if self.process.poll() is not None:
            for reader in self._readers:
                reader.join(timeout=5)
        return "".join(self._stderr)

    def request(self, method: str, path: str, body=None, headers=None, timeout: float = 60):
        """One raw exchange: (status, headers in lower case, body as text)."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            sent = {"anthropic-version": "2023-06-01", **(headers or {})}
            if isinstance(body, dict):
                body = json.dumps(body)
                sent.setdefault("content-type", "application/json")
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, text
        finally:
            connection.close()

    def metrics(self) -> dict[str, float]:
        """`GET /metrics` as a table, names with their labels."""
        status, _, text = self.request("GET", "/metrics")
        assert status == 200, text
        rows = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in rows}

    def wait_for(self, condition, seconds: float = 10) -> dict[str, float]:
        """Polls the metrics until `condition(metrics)` holds; fails when it does not in time."""
        deadline = time.monotonic() + seconds
        while True:
            metrics = self.metrics()
            if condition(metrics):
                return metrics
            assert time.monotonic() < deadline, f"not within {seconds} s: {metrics}"
            time.sleep(0.005)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_) -> None:
        self.stop()
