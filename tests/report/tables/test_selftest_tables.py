"""What every report says of the self-test, and the tables of its own page."""

from dataclasses import replace

import pandas as pd
import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import tables
from dlperf_study.report.figures import page_figures
from dlperf_study.report.tables import selftest_tables
from dlperf_study.selftest.evaluation import analysis_code
from dlperf_study.selftest.result import Status, add_result, results_file
from tests.evidence_factory import CODE, Planned, configuration
from tests.report.conftest import write_titled
from tests.report.tables.cells import facts
from tests.selftest.test_result import CHECK, FAILED, RESULT, SKIPPED

PASSED = replace(RESULT, code=CODE, analysis_code=analysis_code())
QUICK_LATER = replace(PASSED, ended="2026-03-03T10:00:00+00:00", quick=True)
NEVER, ONE_OF_ONE, TWO_OF_TWO = "never passed on host-a", "(1 of 1 check, skipped: link)", "(2 of 2 checks, quick mode)"
FIRST_OF_MARCH, THIRD_OF_MARCH = (f"last passed on host-a on 0{day} March 2026, 10:00 UTC" for day in (1, 3))
#: What a report says of these results: it begins with the first, and has all others in it.
NOTES = {
    "none": ((), (NEVER,)),
    "failed": ((FAILED,), (NEVER, "02 March 2026", "slowdowns: failed")),
    "another machine": ((replace(PASSED, machine=replace(PASSED.machine, cores=2)),), (NEVER,)),
    "passed": ((PASSED,), (FIRST_OF_MARCH, ONE_OF_ONE)),
    "failed since": ((PASSED, FAILED, QUICK_LATER), (FIRST_OF_MARCH, "since then", "02 March 2026")),
    "quick mode failed": ((replace(FAILED, quick=True),), (NEVER, "slowdowns: failed, quick mode")),
    "passed later": ((FAILED, replace(QUICK_LATER, quick=False)), (THIRD_OF_MARCH, ONE_OF_ONE)),
    "other code": ((replace(PASSED, code="0ld", checks=(CHECK, CHECK), quick=True),), (FIRST_OF_MARCH, TWO_OF_TWO)),
    "other analysis": ((replace(PASSED, analysis_code="0ld"),), (FIRST_OF_MARCH, ONE_OF_ONE)),
}


@pytest.fixture
def dataset(paths: StudyPaths) -> Dataset:
    return write_titled(paths, [Planned(configuration())])


def note_of(dataset: Dataset) -> str:
    """Return what the first page says of the self-test."""
    return facts(tables.about(dataset))["Self-test"]


@pytest.mark.parametrize("name", NOTES)
def test_every_report_says_when_the_selftest_last_passed(dataset, name, snapshot):
    results, (start, *parts) = NOTES[name]
    for result in results:
        add_result(result)
    note = note_of(dataset)
    assert note.startswith(start)
    assert [part for part in parts if part not in note] == []
    assert note == snapshot


def test_why_it_is_unknown_whether_the_selftest_passed(dataset, snapshot):
    add_result(PASSED)
    unknown = replace(dataset, runs=dataset.runs.assign(cores=pd.array([pd.NA] * len(dataset.runs), dtype="Int64")))
    assert note_of(unknown) == snapshot
    results_file().write_text("{")
    assert note_of(dataset).startswith(f"unknown: {results_file()}: is not JSON")


def test_ingested_logs_were_not_measured_by_this_instrument(dataset):
    ingested = replace(dataset, plan=dataset.plan.changed(ingested_from="logs"))
    assert selftest_tables.selftest_note(ingested) == ""
    assert "Self-test" not in facts(tables.about(ingested))


def test_the_page_has_every_check_ratio_and_reason():
    result = replace(RESULT, checks=(CHECK, replace(CHECK, name="link", status=Status.FAILED), SKIPPED))
    assert selftest_tables.checks(result).column("Result") == ["passed", "failed", "skipped"]
    assert selftest_tables.comparisons(result).column("Truth inside") == ["yes", "yes"]
    assert selftest_tables.comparisons(result).column("True ratio") == ["0.9520", "0.9520"]
    assert selftest_tables.not_passed(result).column("Result") == ["failed", "skipped"]
    assert selftest_tables.not_passed(replace(RESULT, checks=(CHECK,))).rows == ()
    assert "code c0dec0dec0de, analysis code not" in selftest_tables.checks(RESULT).caption
    assert f"analysis code {analysis_code()[:12]}." in selftest_tables.checks(PASSED).caption


def test_a_result_without_intervals_or_ratios_is_not_among_the_ratios():
    equal = replace(CHECK.comparisons[0], significance="equal", equal_within=0.0257)
    compared = replace(CHECK, comparisons=(equal, replace(equal, equal_within=None)))
    significances = selftest_tables.comparisons(replace(RESULT, checks=(compared,))).column("Significance")
    assert significances == ["equal within 2.6\u202f%", "equal"]
    bandwidth = replace(CHECK.comparisons[0], label="fitted bandwidth (bit/s)", significance="")
    for check in (replace(CHECK, comparisons=(bandwidth,)), SKIPPED):
        result = replace(RESULT, checks=(check,))
        assert selftest_tables.comparisons(result).rows == ()
        assert page_figures.ratios(result).drawing is None


def test_a_panel_for_each_check_has_its_ratios_with_intervals():
    """An interval that misses the truth has another colour."""
    without = replace(CHECK.comparisons[0], label="no interval", low=None, high=None)
    result = replace(RESULT, checks=(replace(CHECK, comparisons=(*CHECK.comparisons, without)),))
    [axes] = page_figures.ratios(result).drawing.axes
    assert axes.get_title(loc="left") == "slowdowns"
    assert [label.get_text() for label in axes.get_yticklabels()] == [CHECK.comparisons[0].label]
    assert [list(line.get_xdata()) for line in axes.lines] == [[0.93, 0.97], [0.95], [0.952]]
    assert selftest_tables.comparisons(result).column("Study") == [CHECK.comparisons[0].label]
    missing = replace(CHECK, comparisons=(replace(CHECK.comparisons[0], true=0.5),))
    [axes] = page_figures.ratios(replace(RESULT, checks=(missing,))).drawing.axes
    assert {line.get_color() for line in axes.lines[:2]} == {page_figures.WRONG}
