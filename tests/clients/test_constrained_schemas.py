"""What is written under random schemas, judged by a validator that is not ours."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from gateway_process import ROOT
from jsonschema import Draft202012Validator

COUNT = 1500


def program() -> Path:
    default = ROOT / "build" / "release" / "tests" / "incipit-constrained-samples"
    path = Path(os.environ.get("INCIPIT_CONSTRAINED_SAMPLES") or default)
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; `./incipit test` builds it")
    return path


@pytest.mark.parametrize("seed", [1, 2])
def test_every_reply_is_json_and_valid_for_its_schema(seed: int):
    command = [str(program()), str(COUNT), str(seed)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Not splitlines: strings may hold U+2028.
    samples = [json.loads(line) for line in output.strip("\n").split("\n")]
    assert len(samples) == COUNT
    for sample in samples:
        schema = sample["schema"]
        Draft202012Validator.check_schema(schema)
        validator = Draft202012Validator(
            schema, format_checker=Draft202012Validator.FORMAT_CHECKER
        )
        errors = [error.message for error in validator.iter_errors(json.loads(sample["text"]))]
        assert not errors, (schema, sample["text"])


def test_the_format_checkers_are_there():
    """Without its optional packages the validator passes formats over."""
    checkers = Draft202012Validator.FORMAT_CHECKER.checkers
    formats = "date-time time date duration email hostname uri ipv4 ipv6 uuid".split()
    assert not set(formats) - set(checkers)
    for name in formats:
        validator = Draft202012Validator(
            {"format": name}, format_checker=Draft202012Validator.FORMAT_CHECKER
        )
        assert not validator.is_valid("no such thing \x00"), name
