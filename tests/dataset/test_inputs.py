"""A dataset is collected again when what it is made from has changed, and only then."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from dlperf_study.core.errors import Diagnostic
from dlperf_study.core.paths import REPORT_VARIABLE, StudyPaths
from dlperf_study.dataset import dataset, inputs
from dlperf_study.dataset.dataset import collect, up_to_date
from dlperf_study.dataset.inputs import is_dataset_current
from dlperf_study.study.plan import Plan
from tests.evidence_factory import Planned, change, configuration, write_run, write_study

ASKED = configuration(devices_per_node=2)


@pytest.fixture
def collected(paths: StudyPaths) -> StudyPaths:
    write_study(paths, [Planned(ASKED, runs=2)])
    collect(paths)
    return paths


def modified(paths: StudyPaths) -> list[int]:
    return [table.stat().st_mtime_ns for table in sorted(paths.dataset.glob("*.parquet"))]


def test_tables_of_the_same_evidence_are_read_as_they_are(collected: StudyPaths) -> None:
    before = modified(collected)
    assert len(up_to_date(collected).runs) == 2
    assert modified(collected) == before


def other_digit(log: Path) -> None:
    """Change a file and not its size."""
    content = log.read_text()
    log.write_text(content.replace("1", "2", 1))
    assert log.stat().st_size == len(content)


CHANGES: dict[str, Callable[[StudyPaths], object]] = {
    "a run more": lambda paths: write_run(paths, ASKED, 3),
    "another outcome": lambda paths: change(paths.configuration(ASKED.configuration_id).run(1), reason="x"),
    "another digit": lambda paths: other_digit(paths.configuration(ASKED.configuration_id).run(1).rank_log(1)),
    "a table less": lambda paths: (paths.dataset / "runs.parquet").unlink(),
    "a record of inputs that is no text": lambda paths: paths.dataset_inputs.write_bytes(b"\xff\xfe"),
    "no record of inputs": lambda paths: paths.dataset_inputs.unlink(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_after_a_change_they_are_collected_again(collected: StudyPaths, name: str) -> None:
    CHANGES[name](collected)
    assert not is_dataset_current(collected)
    assert len(up_to_date(collected).runs) == (3 if name == "a run more" else 2)
    assert is_dataset_current(collected)


def test_what_came_while_the_evidence_was_read_is_read_the_next_time(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study may be measured while its dataset is collected."""
    write_study(paths, [Planned(ASKED, runs=2)])
    judge = dataset.study_diagnostics.study_diagnostics

    def come_late(plan: Plan, runs: pd.DataFrame) -> list[Diagnostic]:
        write_run(paths, ASKED, 3)
        return judge(plan, runs)

    monkeypatch.setattr(dataset.study_diagnostics, "study_diagnostics", come_late)
    assert len(collect(paths).runs) == 2
    monkeypatch.undo()
    assert not is_dataset_current(paths)
    assert len(up_to_date(paths).runs) == 3


def test_so_they_are_by_another_version_of_the_package(
    collected: StudyPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "package").mkdir()
    monkeypatch.setattr(inputs, "PACKAGE_FOLDER", tmp_path / "package")
    (tmp_path / "package" / "module.py").touch()
    assert not is_dataset_current(collected)


def test_the_pages_of_one_report_have_the_same_numbers(collected: StudyPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(collected, ASKED, 3)
    monkeypatch.setenv(REPORT_VARIABLE, str(collected.report_unfinished))
    assert len(up_to_date(collected).runs) == 2
