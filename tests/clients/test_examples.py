"""The programs in examples/ run, and show what their first lines promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from gateway_process import ROOT, program
from stub_api import StubApi


def run(command: list[str], base_url: str = "", **environment: str) -> str:
    """What the program prints; fails when it fails."""
    result = subprocess.run(
        command,
        env={**os.environ, "ANTHROPIC_BASE_URL": base_url, "ANTHROPIC_API_KEY": "any", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def example(name: str) -> str:
    return str(program().parent.parent / "examples" / f"example_{name}")


@pytest.fixture
def stub():
    with StubApi() as server:
        yield server


@pytest.mark.parametrize(
    "command",
    [[sys.executable, str(ROOT / "examples" / "cached_chat.py")], [example("cached_chat")]],
    ids=["python", "c++"],
)
def test_a_cached_chat_reads_in_each_turn_what_the_turn_before_wrote(default_model, command):
    lines = run(command, default_model.base_url).splitlines()
    turns = [[int(number) for number in line.split()[:3]] for line in lines[1:4]]
    assert len(turns) == 3
    reads, writes, plain = zip(*turns)
    assert reads[0] == 0 and writes[0] > 2000
    # What a turn leaves in the cache is all that it read and wrote.
    assert list(reads[1:]) == [read + written for read, written, _ in turns[:-1]]
    assert all(0 < written < 200 for written in writes[1:])
    assert plain == (0, 0, 0)


def test_the_quickstart_reads_for_its_second_question_what_the_first_one_wrote(default_model):
    output = run([example("quickstart"), str(ROOT / "LICENSE")], default_model.base_url)
    usage = [[int(n) for n in found] for found in re.findall(r"(\d+) read, (\d+) written, (\d+) plain", output)]
    (read, written, plain), (read_again, written_again, _) = usage
    assert read == 0 and written > 1024 and 0 < plain < 100
    assert (read_again, written_again) == (written, 0)
    assert output.count("; $0.0") == 2


def test_the_tool_loop_ends_with_an_answer(default_model):
    output = run([example("tool_loop")], default_model.base_url)
    assert re.search(r"^[1-4] requests, \d+ tokens read from the cache$", output, re.MULTILINE)


def test_counting_before_sending_then_warms_the_cache(default_model):
    output = run([example("count_before_send")], default_model.base_url)
    counted = int(re.search(r"^(\d+) tokens, 1024 are needed$", output, re.MULTILINE)[1])
    written = int(re.search(r"^(\d+) written for an hour, \$0\.0", output, re.MULTILINE)[1])
    assert "one hour pays after 2 reads" in output
    assert 1024 < written < counted < written + 60  # the question is behind the marker


def test_a_miss_is_explained_by_the_byte():
    output = run([example("explain_miss")])
    assert output.startswith("system_changed at system.0.text, byte ")
    assert "09:15" in output and "09:16" in output


def test_time_to_live_in_a_unit_test(gateway_factory):
    gateway = gateway_factory("--model", "tiny", "--virtual-clock")
    assert "1 passed | 0 failed" in run([example("ttl_in_a_test")], gateway.base_url)


def test_an_openai_chat_streams_and_says_what_was_cached(stub):
    output = run([example("openai_chat")], OPENAI_BASE_URL=stub.base_url + "/v1", OPENAI_API_KEY="any")
    assert output.startswith("Sognefjord\n2000 of 2600 tokens cached")
    [(method, path, body)] = stub.requests
    assert (method, path, body["stream"]) == ("POST", "/v1/chat/completions", True)
    assert body["prompt_cache_key"] == "fjords"


def test_structured_output_is_a_value(stub):
    assert run([example("structured_output")], stub.base_url) == "Blank login page (high)\n  login\n  bug\n"
    [(_, _, body)] = stub.requests
    schema = body["output_config"]["format"]["schema"]
    assert schema["properties"]["priority"] == {"type": "string", "enum": ["low", "high"]}
    assert schema["required"] == ["title", "priority", "labels"]


def test_a_batch_is_waited_for_and_read(tiny):
    output = run([example("batch")], tiny.base_url)
    assert re.findall(r"^(Oslo|Bergen|Tromso): ", output, re.MULTILINE) == ["Oslo", "Bergen", "Tromso"]
