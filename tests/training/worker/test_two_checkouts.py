"""Two checkouts and one Python: who runs other benchmark code than the controller is refused at once."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dlperf_study.core.code_identity import (
    COMMON_ROOTS,
    CONTROLLER_CODE_VARIABLE,
    PACKAGE_FOLDER,
    describe_controller_code,
)
from dlperf_study.training.frameworks._base import CONFIGURATION_VARIABLE, RUN_VARIABLE
from tests.training.frameworks.launching import configuration

#: Of a configuration that trains VGG-16.
ROOTS = (*COMMON_ROOTS, "dlperf_study.training.models.vgg16")


@pytest.fixture
def second_checkout(tmp_path: Path) -> Path:
    """A copy of the package."""
    folder = tmp_path / "second"
    shutil.copytree(PACKAGE_FOLDER, folder / "dlperf_study", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def worker(
    folder: Path, run: Path, program: str = "-m dlperf_study.training.worker"
) -> "subprocess.CompletedProcess[str]":
    """Start a worker in a checkout, for a controller that runs the code of this one."""
    run.mkdir()
    # An unknown framework is the first that a worker would complain about after the check.
    (run / "configuration.json").write_text(json.dumps(configuration(framework="none_such").as_dict()))
    environment = {
        CONFIGURATION_VARIABLE: str(run / "configuration.json"),
        RUN_VARIABLE: str(run),
        CONTROLLER_CODE_VARIABLE: describe_controller_code(ROOTS),
    }
    command = [sys.executable, *program.split(" ", 1)]
    return subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)


def test_a_copy_is_the_same_code_whatever_else_and_whatever_comments_are_in_it(second_checkout, tmp_path):
    (second_checkout / "dlperf_study" / "training" / "models" / "resnet50.py").unlink()
    file = second_checkout / "dlperf_study" / "training" / "models" / "vgg16.py"
    file.write_text(file.read_text() + "\n# A comment.\n")
    done = worker(second_checkout, tmp_path / "run")
    assert "framework is 'none_such'" in done.stderr
    assert "other benchmark code" not in done.stderr


def test_a_worker_of_other_code_fails_and_names_both_folders(second_checkout, tmp_path):
    file = second_checkout / "dlperf_study" / "training" / "models" / "vgg16.py"
    file.write_text(file.read_text() + "\nCHANGED = 1\n")
    done = worker(second_checkout, tmp_path / "run")
    assert done.returncode == 1
    message = done.stderr.splitlines()[-1]
    assert message.startswith(
        f"dlperf_study.core.errors.RunError: other benchmark code: the controller runs the code in {PACKAGE_FOLDER}, "
        f"this process the code in {second_checkout / 'dlperf_study'}"
    )
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["configuration.json"]


def test_a_kernel_of_other_code_fails_before_it_starts_anything(second_checkout, tmp_path):
    file = second_checkout / "dlperf_study" / "training" / "worker" / "windows.py"
    file.write_text(file.read_text() + "\nCHANGED = 1\n")
    program = (
        "-c from dlperf_study.execution.repetitions import ConfigurationRuns; "
        "from tests.training.frameworks.launching import configuration; ConfigurationRuns(configuration())"
    )
    shutil.copytree(Path(__file__).parents[1] / "frameworks", second_checkout / "tests" / "training" / "frameworks")
    done = worker(second_checkout, tmp_path / "run", program)
    assert "RunError: other benchmark code" in done.stderr.splitlines()[-1]
    assert str(second_checkout / "dlperf_study") in done.stderr.splitlines()[-1]
