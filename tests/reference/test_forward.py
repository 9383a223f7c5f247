"""Our forward pass against the numpy reference: the same file, the same tokens."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from forward_reference import ReferenceModel
from tokens import tokenize

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def model_path(file_name: str) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("INCIPIT_MODELS") or Path(cache) / "incipit" / "models")
    path = folder / file_name
    if not path.exists():
        pytest.fail(f"{path} is missing; `./incipit test` downloads it")
    return path


def logits_program() -> Path:
    default = ROOT / "build" / "release" / "tests" / "incipit-logits"
    path = Path(os.environ.get("INCIPIT_LOGITS") or default)
    if not path.exists():
        pytest.fail(f"{path} is missing; build it with `cmake --build --preset release`")
    return path


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted


# Gemma's 6,000 tokens reach far beyond its sliding window of 512. Two tokens of nearly equal
# probability change places at the slightest rounding, so a share of agreement means little for few
# positions.
@pytest.mark.parametrize(
    ("file_name", "length", "positions"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 3000, 1500),
        ("gemma-3-270m-q4_k_m.gguf", 6000, 750),
    ],
)
def test_logits_agree_with_the_reference_on_real_text(file_name, length, positions, tmp_path):
    path, program = model_path(file_name), logits_program()
    reference = ReferenceModel(path)
    text = (HERE / "text.txt").read_text(encoding="utf-8")
    ids = np.array(tokenize(reference.weights.reader, text)[:length], dtype=np.int32)
    assert len(ids) == length, f"text.txt has only {len(ids)} tokens for this model"
    rows = np.linspace(1, length - 1, positions).astype(np.int32)

    started = time.monotonic()
    ids.tofile(tmp_path / "tokens.bin")
    rows.tofile(tmp_path / "rows.bin")
    command = [program, path, *(tmp_path / n for n in ("tokens.bin", "rows.bin", "out.f32"))]
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    ours_seconds = time.monotonic() - started

    started = time.monotonic()
    hidden = reference.hidden_states(ids)[rows]
    vocabulary = len(reference.embedding)
    ours = np.memmap(tmp_path / "out.f32", dtype=np.float32, mode="r").reshape(-1, vocabulary)
    assert len(ours) == positions

    agreements, divergence, worst = 0, 0.0, 0.0
    for start in range(0, positions, 50):  # bounds memory: a row of Gemma is 1 MB
        part = slice(start, start + 50)
        expected = log_softmax(reference.logits(hidden[part]))
        actual = log_softmax(ours[part])
        agreements += int((expected.argmax(axis=-1) == actual.argmax(axis=-1)).sum())
        each = np.einsum("ij,ij->i", np.exp(expected), expected - actual, dtype=np.float64)
        divergence += float(each.sum())
        worst = max(worst, float(each.max()))

    print(
        f"{file_name}: top-1 {agreements}/{positions}, mean KL {divergence / positions:.2e}, "
        f"worst KL {worst:.2e}; ours {ours_seconds:.1f} s, reference "
        f"{time.monotonic() - started:.1f} s"
    )
    assert agreements >= 0.99 * positions
    assert divergence / positions <= 1e-3
