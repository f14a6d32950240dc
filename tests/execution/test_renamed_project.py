"""A project folder is renamed, or used with a second environment of the same versions: its runs still count."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dlperf_study.core.paths import OUTPUTS_VARIABLE, PROJECT

STUDY = """\
title: Renamed
about: Made for tests.
sections: [scaling]
scaling: weak
constants: {framework: paddle_collective, strategy: all_reduce, model: mobilenet_v2, image_size: 32, classes: 10}
factors: {devices_per_node: [1]}
baseline: {devices_per_node: 1}
measurement: {repetitions: 2}
"""
PROGRAM_STUDY = """\
title: Renamed
about: Made for tests.
sections: [scaling]
scaling: weak
program: {name: trained, command: "{python} train.py --batch {batch_per_device}"}
constants: {devices_per_node: 1}
factors: {batch_per_device: [4]}
baseline: {batch_per_device: 4}
measurement: {warmup_steps: 1, measured_steps: 2, repetitions: 2}
"""
#: Writes the runs that a plan requests, without training.
MEASURE = """
from dlperf_study.core.paths import StudyPaths
from dlperf_study.execution.planning import make_plan
from dlperf_study.execution.repetitions import requested_runs
from tests.evidence_factory import change, write_run

plan, cluster = make_plan("renamed", "local", quick=False)
for entry in plan.runnable:
    for run in requested_runs(entry.configuration, cluster):
        written = write_run(StudyPaths.of(plan.study), entry.configuration, run.repetition)
        change(written, cache_key=run.cache_key, cache_key_parts=run.parts, code_modules=run.code.modules)
"""


def environment(folder: Path) -> Path:
    """Return the Python of a new environment that has the packages of this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    places = [path for path in sys.path if path.endswith("site-packages")]
    packages.joinpath("same.pth").write_text("\n".join(places))
    return folder / "bin" / "python"


def checkout(folder: Path, study: str) -> Path:
    """Return a copy of the project with a study of its own."""
    for name in ("dlperf_study", "params"):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tests").mkdir()
    for name in ("__init__.py", "evidence_factory.py"):
        shutil.copy(PROJECT / "tests" / name, folder / "tests" / name)
    (folder / "studies").mkdir()
    (folder / "studies" / "renamed.yaml").write_text(study)
    (folder / "studies" / "train.py").write_text("import torch\n")
    return folder


def run(python: Path, folder: Path, *arguments: str) -> str:
    """Run a Python in a project folder; return what it printed."""
    variables = {name: value for name, value in os.environ.items() if name != OUTPUTS_VARIABLE}
    variables["PYTHONPATH"] = str(folder)
    done = subprocess.run([python, *arguments], cwd=folder, env=variables, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def runs_done(python: Path, folder: Path) -> list[int]:
    plan = json.loads(run(python, folder, "-m", "dlperf_study", "plan", "renamed", "--json"))
    assert plan["not_counted"] == []
    return [configuration["done"] for configuration in plan["configurations"]]


@pytest.mark.matrix
@pytest.mark.parametrize("study", [STUDY, PROGRAM_STUDY], ids=["framework", "program"])
def test_runs_count_in_a_renamed_project_folder_and_with_a_second_environment(study, tmp_path):
    project, python = checkout(tmp_path / "project", study), environment(tmp_path / "first")
    run(python, project, "-c", MEASURE)
    assert runs_done(python, project) == [2]
    renamed = project.rename(tmp_path / "renamed")
    assert runs_done(python, renamed) == [2]
    assert runs_done(environment(tmp_path / "second"), renamed) == [2]
