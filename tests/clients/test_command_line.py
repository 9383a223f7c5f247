"""The program's flags, its first words and its last: exit codes and sentences."""

from __future__ import annotations

import socket
import subprocess

import pytest
from conftest import DEFAULT_FILE, client_of, need_model
from gateway_process import models_folder, program

MODEL = "claude-sonnet-4-6"


def run(*arguments, timeout: float = 30) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(program()), *map(str, arguments)], capture_output=True, text=True, timeout=timeout
    )


def refusal(*arguments) -> str:
    """The one sentence of a program that refuses to start."""
    result = run(*arguments)
    assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
    assert "listening" not in result.stdout
    assert len(result.stderr.strip().splitlines()) <= 3, result.stderr
    return result.stderr


def test_help_fits_a_screen_of_24_lines_of_80():
    for arguments in (["--help"], ["serve", "--help"]):
        result = run(*arguments)
        assert result.returncode == 0
        lines = result.stdout.splitlines()
        assert len(lines) <= 24
        assert max(map(len, lines)) <= 80
    for flag in ("model", "host", "port", "backend", "threads", "context", "kv-memory",
                 "max-queue", "virtual-clock", "log", "config"):
        assert f"--{flag}" in result.stdout


def test_an_unknown_flag_is_named():
    assert "--colour" in refusal("serve", "--colour", "red")


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--port", "70000"),
        ("--port", "http"),
        ("--context", "-5"),
        ("--kv-memory", "lots"),
        ("--backend", "abacus"),
        ("--threads", "none"),
    ],
)
def test_a_value_that_makes_no_sense_is_named_with_its_flag(flag, value):
    sentence = refusal("serve", "--model", "tiny", flag, value)
    assert flag.lstrip("-") in sentence
    assert value in sentence


def test_a_model_that_is_not_there_is_named(tmp_path):
    assert "nothing-here.gguf" in refusal("serve", "--model", tmp_path / "nothing-here.gguf")


def test_a_truncated_model_file_is_refused_with_its_name_and_offset(tmp_path):
    need_model(DEFAULT_FILE)
    whole = models_folder() / DEFAULT_FILE
    broken = tmp_path / "truncated.gguf"
    for size in (0, 3, 20, 5000, 3_000_000, whole.stat().st_size - 1):
        with whole.open("rb") as source:
            broken.write_bytes(source.read(size))
        sentence = refusal("serve", "--model", broken)
        assert "truncated.gguf" in sentence


def test_a_file_that_is_no_model_is_refused(tmp_path):
    file = tmp_path / "letter.gguf"
    file.write_text("Dear Sir or Madam,\n" * 100)
    assert "letter.gguf" in refusal("serve", "--model", file)


def test_a_port_in_use_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        sentence = refusal("serve", "--model", "tiny", "--port", port)
    assert str(port) in sentence
    assert "in use" in sentence


def test_a_config_file_gives_the_same_settings_and_flags_win(gateway_factory, tmp_path):
    config = tmp_path / "incipit.toml"
    config.write_text('model = "tiny"\nport = 1\nvirtual-clock = true\n')
    gateway = gateway_factory("--config", config, "--port", "0")
    assert gateway.port != 1
    status, _, body = gateway.request("POST", "/incipit/clock", {"advance_seconds": 1})
    assert status == 200, body


def test_a_config_file_with_an_unknown_name_is_refused(tmp_path):
    config = tmp_path / "incipit.toml"
    config.write_text('model = "tiny"\ncolour = "red"\n')
    sentence = refusal("serve", "--config", config)
    assert "colour" in sentence and "incipit.toml" in sentence


def test_without_virtual_clock_there_is_no_clock_to_move(tiny):
    status, _, _ = tiny.request("POST", "/incipit/clock", {"advance_seconds": 1})
    assert status == 404


def test_a_shorter_context_is_kept(gateway_factory):
    gateway = gateway_factory("--model", "tiny", "--context", "512")
    body = {"model": MODEL, "max_tokens": 1, "messages": [{"role": "user", "content": "x" * 600}]}
    status, _, text = gateway.request("POST", "/v1/messages", body)
    assert status == 400 and "> 512 maximum" in text


def test_every_request_leaves_one_line_in_the_log_file(gateway_factory, tmp_path):
    log = tmp_path / "requests.log"
    gateway = gateway_factory("--model", "tiny", "--log", log)
    with client_of(gateway) as client:
        client.messages.create(
            model=MODEL, max_tokens=2, messages=[{"role": "user", "content": "Hi"}]
        )
    gateway.request("GET", "/v1/nothing")
    gateway.stop()
    lines = log.read_text().splitlines()
    assert len(lines) == 2
    assert '"read":0' in lines[0] and '"prompt_tokens":' in lines[0] and '"ttft_ms":' in lines[0]
    assert '"status":404' in lines[1]
