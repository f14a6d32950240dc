"""The tutorial: its commands in its order, typed in an empty folder, with the script that it names."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dlperf_study.core.paths import OUTPUTS_VARIABLE
from tests.docs import DOCS, blocks
from tests.test_docs_commands import commands_of

PAGE = DOCS / "tutorial.md"
#: One short run of each configuration.
SHORT = "--repetitions 1 --warmup-steps 2 --measured-steps 6"
pytestmark = [pytest.mark.ci, pytest.mark.needs("torch"), pytest.mark.timeout(300)]


def type_in(folder: Path, command: str) -> str:
    """Type a command of the page, and return what it prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, OUTPUTS_VARIABLE: str(folder / "outputs")}
    ended = subprocess.run(shlex.split(command), cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, (command, ended.stdout, ended.stderr)
    return ended.stdout


def test_the_commands_of_the_tutorial_work_one_after_the_other(tmp_path):
    shutil.copy(DOCS / "examples" / "train_torch.py", tmp_path)
    commands = [command for command in commands_of(PAGE) if "train_torch" in command]
    measured = [command for command in commands if " measure " in command]
    assert len(measured) == 2
    for command in measured:
        printed = type_in(tmp_path, command.replace(" -- ", f" {SHORT} --wait -- "))
        assert "train_torch" in printed
        assert (tmp_path / "outputs" / "train_torch").exists() == ("--dry-run" not in command)
    study = tmp_path / "studies" / "train_torch.yaml"
    [factors] = blocks(PAGE, "yaml")
    edited = re.sub(r"(?ms)^factors:.*?(?=^baseline:)", factors, study.read_text())
    assert "width: 4096, " in edited
    study.write_text(edited.replace("width: 4096, ", ""))
    planned = type_in(tmp_path, "dlperf-study plan train_torch")
    assert "4 of 4 configurations" in planned
    assert "Done: 2 of 4" in planned
