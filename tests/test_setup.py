"""Setting up: what is missing is said in one message. The set-up that succeeds is how these tests got here."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dlperf_study.paths import PROJECT

TOOLS = ("sh", "df", "awk", "tail", "rm", "touch", "env")


def set_up(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    for file in ("requirements.lock", "pyproject.toml"):
        shutil.copy(PROJECT / file, folder)
    command = ["sh", str(PROJECT / "tools" / "setup.sh")]
    return subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)


def path_with(folder: Path, *names: str) -> str:
    """Return a PATH on which only these commands are found."""
    folder.mkdir()
    for name in names:
        found = shutil.which(name)
        assert found, name
        (folder / name).symlink_to(found)
    return str(folder)


def test_no_python_is_said(tmp_path: Path) -> None:
    done = set_up(tmp_path, PATH=path_with(tmp_path / "bin", *TOOLS), PYTHON_FOR_SETUP="")
    assert done.returncode == 1
    assert "no Python 3.11 or 3.12 found" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "df").write_text("#!/bin/sh\nprintf 'Filesystem 1M Used Available\\nx 100 99 1 99%% /\\n'\n")
    (tools / "df").chmod(0o755)
    done = set_up(tmp_path, PATH=f"{tools}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "1 MB free on this disk" in done.stderr


@pytest.mark.timeout(120)
def test_no_network_is_said_and_nothing_counts_as_set_up(tmp_path: Path) -> None:
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_FIND_LINKS": "", "PIP_RETRIES": "0"}
    done = set_up(tmp_path, PIP_CONFIG_FILE=os.devnull, PIP_EXTRA_INDEX_URL="", **nowhere)
    assert done.returncode == 1
    assert "pip could not install the packages; is there a network?" in done.stderr
    assert not (tmp_path / ".venv" / ".ready").exists()
