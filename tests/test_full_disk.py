"""Every command that writes, on a disk that is full or becomes so: the file is named, and none is half-written."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dlperf_study.__main__ import main
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.core.writing import full_disk
from dlperf_study.dataset import tables
from dlperf_study.dataset.dataset import collect
from dlperf_study.metrics.columns import DATASET_TABLES
from tests.command_line import STUDY, workplace
from tests.evidence_factory import example_study
from tests.logs.ingest.conftest import folder, small_archive, write_log
from tests.small_disk import fill, mounted_disk

__all__ = ["folder", "small_archive", "write_log"]


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An outputs folder on a disk of 2 MB."""
    with mounted_disk(tmp_path / "disk", "2m") as disk:
        monkeypatch.setenv(OUTPUTS_VARIABLE, str(disk))
        yield disk


def fails_because_the_disk_is_full(arguments: list[str], file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with one line that names a file, and says that the disk is full."""
    assert main(arguments) == 1
    errors = capsys.readouterr().err
    assert re.fullmatch(f"error: {file}: .*No space left on device; .*: the disk is full, .* kB are free\n", errors), (
        errors
    )


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file that contains something, but locks."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.suffix != ".lock")
    return {str(file): file.read_bytes() for file in files if file.stat().st_size}


def test_a_study_that_starts(outputs, tmp_path, capsys):
    place = workplace(tmp_path)
    fill(outputs / "filler")
    before = contents(outputs)
    arguments = ["run", str(place.study_file), "--cluster", str(place.cluster_file)]
    fails_because_the_disk_is_full(arguments, str(outputs / "tiny" / "plan.json"), capsys)
    assert contents(outputs) == before


def test_a_selftest_that_starts(outputs, capsys):
    fill(outputs / "filler")
    before = contents(outputs)
    fails_because_the_disk_is_full(["selftest", "--quick"], str(outputs / "selftest" / "controller.lock"), capsys)
    assert contents(outputs) == before


@pytest.mark.usefixtures("small_archive")
@pytest.mark.parametrize("pages", [0, 1, 2, 4, 8])
def test_an_ingestion(outputs, folder, pages, capsys):
    main(["ingest", str(folder), "--data-only"])
    main(["ingest", str(folder), "--data-only", "--yes"])
    capsys.readouterr()
    before = contents(outputs / "logs" / "dataset")
    fill(outputs / "filler", pages)
    fails_because_the_disk_is_full(["ingest", str(folder), "--data-only"], f"{outputs}/logs/.*", capsys)
    assert contents(outputs / "logs" / "dataset").keys() == before.keys()
    for table in DATASET_TABLES:
        tables.read(table, outputs / "logs" / "dataset")
    (outputs / "filler").unlink()
    assert main(["ingest", str(folder), "--data-only"]) == 0


@pytest.fixture
def example(outputs: Path, tmp_path: Path) -> str:
    """The file of a study whose evidence and dataset are on the small disk."""
    paths = StudyPaths.of("example")
    example_study(paths)
    collect(paths)
    study_file = tmp_path / "example.yaml"
    study_file.write_text(STUDY)
    return str(study_file)


@pytest.mark.parametrize("pages", [0, 1, 2, 4])
def test_a_dataset(outputs, example, pages, capsys):
    dataset = StudyPaths.of("example").dataset
    before = contents(dataset)
    fill(outputs / "filler", pages)
    fails_because_the_disk_is_full(["report", "--data-only", example], f"{dataset}/.*", capsys)
    assert contents(dataset) == before


@pytest.mark.parametrize("pages", [8, 25])
def test_a_report(outputs, example, pages, capsys):
    """At first the kernels have no space for their tables, then papermill none for the notebook."""
    fill(outputs / "filler", pages)
    assert main(["report", example]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("error: ")
    # Which file finds no space first, and how much is left then, is not the same every time.
    assert re.search(r"the disk is full, \d+ kB are free", errors)
    assert "Traceback" not in errors
    assert not StudyPaths.of("example").report.exists()


@pytest.mark.parametrize("arguments", [["plan", "quickstart"], ["audit", "--published"]])
def test_a_command_that_only_prints(arguments, snapshot):
    command = [sys.executable, "-m", "dlperf_study", *arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, snapshot)


def test_a_file_system_that_states_no_size_is_not_called_full():
    assert full_disk(Path("/proc/nowhere")) == ""
