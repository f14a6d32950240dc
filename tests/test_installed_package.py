"""What a user does who has installed the wheel with pip: no checkout, no framework, a folder of their own."""

import json
import os
import re
import shutil
import tarfile
from dataclasses import replace
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from dlperf_study import __version__, open_study
from dlperf_study.core.code_identity import COMMON_ROOTS, code_digest
from dlperf_study.core.paths import PROJECT, StudyPaths
from dlperf_study.core.resources import PARAMS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.machines.cluster.software import MODULE
from dlperf_study.study.study import SECTIONS, source_names
from tests.command_line import CLUSTER as SHARED_CLUSTER
from tests.command_line import shared_machine
from tests.installation import Installation, install, required
from tests.logs.ingest.conftest import THROUGHPUT, elapse_lines
from tools import release

#: Cases of the logs, with their devices; each has three runs.
CASES = {"1n1g": 1, "1n8g": 8}
STUDY = (PARAMS / "studies" / "quickstart.yaml").read_text(encoding="utf-8")
CLUSTER = (PARAMS / "clusters" / "local.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    """The package in an environment without extras."""
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def ingested(installation: Installation):
    """The studies of two folders of logs, the first with its report; the second is a tenth slower."""
    for name, slowness in (("before", 1.0), ("after", 1.1)):
        write_logs(installation.workspace / name, slowness)
    for name, options in (("before", ()), ("after", ("--data-only",))):
        ended = installation.run("ingest", name, "--yes", *options)
        assert ended.returncode == 0, ended.stderr
    return {name: StudyPaths(installation.workspace / "outputs" / name) for name in ("before", "after")}


def write_logs(folder: Path, slowness: float) -> None:
    for case, devices in CASES.items():
        (folder / case).mkdir(parents=True)
        for repetition in (1, 2, 3):
            lines = "\n".join(elapse_lines(devices, round(128 * slowness), seed=devices * 10 + repetition))
            (folder / case / f"r50_b128_fp32_{repetition}.log").write_text(f"{lines}\n")


@pytest.fixture(autouse=True, scope="module")
def _the_package_stays_as_it_was_installed(installation):
    before = installation.files()
    yield
    assert installation.files() == before


def test_its_name_is_a_command_and_a_module(installation):
    version = f"dlperf_study {__version__}\n"
    assert installation.run("--version").stdout == version
    assert installation.run_module("dlperf_study", "--version").stdout == version
    assert installation.run("plan", "--help").stdout.startswith("usage: dlperf-study plan ")


def test_the_wheel_has_what_the_checkout_has(installation):
    package = installation.packages / "dlperf_study"
    for folder, pattern in ((PROJECT, "notebooks/*.ipynb"), (PROJECT, "params/*/*.*"), (PROJECT, "docs/*.md")):
        for file in folder.glob(pattern):
            assert (package / file.relative_to(folder)).read_bytes() == file.read_bytes()
    files = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}
    of_checkout = (path for path in (PROJECT / "dlperf_study").rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert {path.relative_to(PROJECT / "dlperf_study").as_posix() for path in of_checkout} <= files
    assert source_names()


def test_the_source_archive_has_what_the_wheel_is_built_from(installation):
    [archive] = installation.archives.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"README.md", "LICENSE", "setup.py", "docs/install.md", "params/studies/quickstart.yaml"} <= names


@pytest.mark.needs("twine")
def test_the_package_index_can_show_the_readme(installation):
    release.check_archives(installation.archives)


def test_the_installed_command_passes_the_smoke_test_of_a_release(installation, tmp_path):
    release.smoke_test(installation.environment, tmp_path)


def test_its_measuring_code_is_that_of_the_checkout(installation):
    """A node may have the wheel where the controller has the checkout."""
    ended = installation.run_module(MODULE, f"--code={','.join(COMMON_ROOTS)}")
    assert json.loads(ended.stdout)["code"] == code_digest(COMMON_ROOTS)


@pytest.mark.parametrize("module", ["dlperf_study.generated", "dlperf_study.execution.cache_key"])
def test_what_writes_into_a_checkout_refuses_to(installation, module):
    assert installation.run_module(module).returncode == 1


def test_no_framework_and_no_extra_is_installed(installation):
    [found] = installation.packages.glob("dlperf_study-*.dist-info")
    names = {package.name for package in required(Distribution.at(found), frozenset())}
    assert names.isdisjoint({"paddlepaddle", "torch", "tensorflow", "horovod", "kubernetes", "jupyterlab"})


def test_a_plan_names_the_extra_that_would_run_it(installation):
    ended = installation.run("plan", "quickstart")
    assert ended.returncode == 0, ended.stderr
    assert "pip install 'dlperf_study[paddle]'" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [(("make-data",), "data"), (("check-cluster", "kubernetes"), "kubernetes"), (("check-cluster", "local"), "paddle")],
)
def test_a_missing_extra_is_one_sentence_with_its_command(installation, arguments, extra):
    ended = installation.run(*arguments)
    assert ended.returncode == 1
    assert f"pip install 'dlperf_study[{extra}]'" in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_audit_examines_the_published_figures(installation):
    ended = installation.run("audit", "--published", "--exit-zero", "--json")
    assert ended.returncode == 0, ended.stderr
    assert '"error"' in ended.stdout


def test_logs_become_numbers_and_a_report(ingested):
    rows = Dataset.load(ingested["before"]).configurations.set_index("devices_per_node")
    for devices in CASES.values():
        assert rows.loc[devices, "runs_completed"] == 3
        assert rows.loc[devices, "throughput"] == pytest.approx(THROUGHPUT * devices, rel=0.02)
    report = ingested["before"].report
    assert {path.stem for path in report.glob("*.html")} >= {"index", "runs"}
    assert {path.stem for path in report.glob("*.html")} <= {"index", "runs", *SECTIONS}


def test_two_measurements_are_compared(installation, ingested):
    ended = installation.run("compare", "before", "after")
    assert ended.returncode == 0, ended.stderr
    changes = [float(change) for change in re.findall(r"throughput after / before ([\d.]+) \[", ended.stdout)]
    assert changes == pytest.approx([1 / 1.1] * len(CASES), rel=0.005)


def test_a_paper_is_written(installation, ingested):
    ended = installation.run("paper", "before")
    assert ended.returncode == 0, ended.stderr
    assert (ingested["before"].paper / "paper.tex").is_file()


def test_studies_and_clusters_of_the_workspace_are_found_by_name_from_below(installation):
    for folder, name, text in (("studies", "mine", STUDY), ("clusters", "here", CLUSTER)):
        (installation.workspace / folder).mkdir()
        (installation.workspace / folder / f"{name}.yaml").write_text(text)
    below = installation.workspace / "src" / "training"
    below.mkdir(parents=True)
    ended = replace(installation, workspace=below).run("plan", "mine", "--cluster", "here")
    shutil.rmtree(installation.workspace / "studies")
    assert ended.returncode == 0, ended.stderr
    assert not any(below.iterdir())


#: A training program of somebody else, without any framework.
PROGRAM = """\
import argparse
import time

from dlperf_study.record import Recorder

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, required=True)
parser.add_argument("--max-steps", type=int, required=True)
parser.add_argument("--width", type=int, default=1)
options = parser.parse_args()
recorder = Recorder()
for step in range(options.max_steps):
    time.sleep(0.001 * options.batch_size * options.width)
    recorder.step(loss=1 / (step + 1))
"""


def test_a_program_of_the_user_is_measured_without_a_framework(installation):
    (installation.workspace / "train.py").write_text(PROGRAM)
    command = "python train.py --batch-size {batch_per_device} --max-steps {steps} --width {width}"
    path = f"{installation.environment / 'bin'}:{os.environ['PATH']}"
    (installation.workspace / "shared.yaml").write_text(SHARED_CLUSTER)
    here = ("--cluster", "./shared.yaml")
    options = ("--sweep", "width=1,2", "--batch-per-device", "4", "--measured-steps", "60", "--repetitions", "3", *here)
    ended = installation.run("measure", *options, "--", *command.split(), PATH=path, **shared_machine())
    assert ended.returncode == 0, ended.stderr
    paths = StudyPaths(installation.workspace / "outputs" / "train")
    assert paths.report_page.exists()
    rows = Dataset.load(paths).configurations.set_index("width")
    # Rounds with background load, as of other tests, are repeated.
    assert list(rows["runs_completed"]) in ([3, 3], [4, 4], [5, 5], [6, 6])
    assert open_study(paths.folder).columns["width"].label == "width"
    assert rows.loc[1, "throughput"] == pytest.approx(1000, rel=0.3)
    assert rows.loc[2, "speedup"] == pytest.approx(0.5, rel=0.3)
    assert rows.loc[2, "speedup_low"] < rows.loc[2, "speedup"] < rows.loc[2, "speedup_high"]
    assert "nothing to do" in installation.run("run", "train", *here, **shared_machine()).stdout


def test_a_study_of_a_program_is_proposed(installation):
    (installation.workspace / "train.py").write_text(PROGRAM)
    ended = installation.run("init", "mine")
    assert ended.returncode == 0, ended.stderr
    study = (installation.workspace / "studies" / "mine.yaml").read_text()
    assert "train.py --batch-size={batch_per_device} --max-steps={steps}" in study
    assert installation.run("plan", "mine").returncode == 0
