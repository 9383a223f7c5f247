"""The programs in examples/ run, and show what their first lines promise."""

from __future__ import annotations

import os
import subprocess
import sys

from gateway_process import ROOT


def test_a_cached_chat_reads_in_each_turn_what_the_turn_before_wrote(default_model):
    result = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "cached_chat.py")],
        env={**os.environ, "ANTHROPIC_BASE_URL": default_model.base_url},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    turns = [[int(number) for number in line.split()[:3]] for line in result.stdout.splitlines()[1:]]
    assert len(turns) == 3
    reads, writes, plain = zip(*turns)
    assert reads[0] == 0 and writes[0] > 2000
    # What a turn leaves in the cache is all that it read and wrote.
    assert list(reads[1:]) == [read + written for read, written, _ in turns[:-1]]
    assert all(0 < written < 200 for written in writes[1:])
    assert plain == (0, 0, 0)
