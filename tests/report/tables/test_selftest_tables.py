"""What every report says of the self-test, and the tables of its own page."""

from dataclasses import replace

import pandas as pd
import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.paths import StudyPaths
from dlperf_study.report import tables
from dlperf_study.report.figures import selftest_figures
from dlperf_study.report.tables import selftest_tables
from dlperf_study.selftest.analysis_code import analysis_code
from dlperf_study.selftest.result import SelftestResult, Status, add_result, results_file
from tests.evidence_factory import CODE, Planned, configuration
from tests.report.conftest import write_titled
from tests.selftest.test_result import CHECK, FAILED, RESULT, SKIPPED

PASSED = replace(RESULT, code=CODE, analysis_code=analysis_code())
NEVER = "never passed on host-a before this report was built; `make selftest` runs it, then `make report` says so here"
LAST_PASSED = "last passed on host-a on 01 March 2026, 10:00 UTC"
SAME_CODE = "with this measuring code and this analysis code"
QUICK_LATER = replace(PASSED, ended="2026-03-03T10:00:00+00:00", quick=True)
FAILED_SINCE = "not passed on 02 March 2026, 10:00 UTC (slowdowns: failed)"


@pytest.fixture
def dataset(paths: StudyPaths) -> Dataset:
    return write_titled(paths, [Planned(configuration())])


def said(dataset: Dataset) -> str:
    """Return what the first page says."""
    [note] = [row[1].text for row in tables.about(dataset).rows if row[0].text == "Self-test"]
    return note


@pytest.mark.parametrize(
    ("results", "note"),
    [
        ((), NEVER),
        ((FAILED,), NEVER.replace(" built;", f" built; {FAILED_SINCE};")),
        ((replace(PASSED, machine=replace(PASSED.machine, cores=2)),), NEVER),
        ((PASSED,), f"{LAST_PASSED} (1 of 1 check, skipped: link), {SAME_CODE}"),
        (
            (PASSED, FAILED, QUICK_LATER),
            f"{LAST_PASSED} (1 of 1 check, skipped: link), {SAME_CODE}; since then {FAILED_SINCE}",
        ),
        (
            (replace(FAILED, quick=True),),
            NEVER.replace(" built;", f" built; {FAILED_SINCE.replace('failed', 'failed, short form')};"),
        ),
        (
            (FAILED, replace(QUICK_LATER, quick=False)),
            f"{LAST_PASSED.replace('01', '03')} (1 of 1 check, skipped: link), {SAME_CODE}",
        ),
        (
            (replace(PASSED, code="0ld", checks=(CHECK, CHECK), quick=True),),
            f"{LAST_PASSED} (2 of 2 checks, short form), with other measuring code and this analysis code",
        ),
        (
            (replace(PASSED, analysis_code="0ld"),),
            f"{LAST_PASSED} (1 of 1 check, skipped: link), with this measuring code and other analysis code",
        ),
    ],
)
def test_every_report_says_when_the_selftest_last_passed(
    dataset: Dataset, results: tuple[SelftestResult, ...], note: str
) -> None:
    for result in results:
        add_result(result)
    assert said(dataset) == note


def test_runs_that_do_not_say_how_many_cores_they_had_are_of_no_known_machine(dataset: Dataset) -> None:
    add_result(PASSED)
    unknown = replace(dataset, runs=dataset.runs.assign(cores=pd.array([pd.NA] * len(dataset.runs), dtype="Int64")))
    assert said(unknown) == "unknown on host-a: its runs do not say how many cores it has"


def test_a_damaged_file_is_said(dataset: Dataset) -> None:
    results_file().parent.mkdir()
    results_file().write_text("{")
    assert said(dataset).startswith(f"unknown: {results_file()}: is not JSON")


def test_ingested_logs_were_not_measured_by_this_instrument(dataset: Dataset) -> None:
    ingested = replace(dataset, plan=replace(dataset.plan, ingested_from="logs"))
    assert selftest_tables.selftest_note(ingested) == ""
    assert [row for row in tables.about(ingested).rows if row[0].text == "Self-test"] == []


def test_the_page_has_every_check_ratio_and_reason() -> None:
    result = replace(RESULT, checks=(CHECK, replace(CHECK, name="link", status=Status.FAILED), SKIPPED))
    assert selftest_tables.checks(result).column("Result") == ["passed", "failed", "skipped"]
    assert selftest_tables.comparisons(result).column("Truth inside") == ["yes", "yes"]
    assert selftest_tables.comparisons(result).column("True ratio") == ["0.9520", "0.9520"]
    assert selftest_tables.not_passed(result).column("Result") == ["failed", "skipped"]
    assert selftest_tables.not_passed(replace(RESULT, checks=(CHECK,))).rows == ()


def test_equality_has_its_share_and_a_result_that_did_not_keep_it_has_none() -> None:
    equal = replace(CHECK.comparisons[0], verdict="equal", equal_within=0.0257)
    compared = replace(CHECK, comparisons=(equal, replace(equal, equal_within=None)))
    verdicts = selftest_tables.comparisons(replace(RESULT, checks=(compared,))).column("Verdict")
    assert verdicts == ["equal within 2.6\u202f%", "equal"]


def test_an_interval_that_is_of_no_ratio_is_not_among_the_ratios() -> None:
    bandwidth = replace(CHECK.comparisons[0], label="fitted bandwidth (bit/s)", verdict="")
    result = replace(RESULT, checks=(replace(CHECK, comparisons=(bandwidth,)),))
    assert selftest_tables.comparisons(result).rows == ()
    assert selftest_figures.ratios(result).drawing is None


def test_the_page_names_the_code_that_was_tested() -> None:
    assert "measuring code c0dec0dec0de, analysis code not recorded." in selftest_tables.checks(RESULT).caption
    assert f"analysis code {analysis_code()[:12]}." in selftest_tables.checks(PASSED).caption


def test_a_panel_for_each_check_with_ratios_and_none_without() -> None:
    drawing = selftest_figures.ratios(RESULT).drawing
    assert drawing is not None
    [axes] = drawing.axes
    assert axes.get_title(loc="left") == "slowdowns"
    bar, measured, true = (list(line.get_xdata()) for line in axes.lines)
    assert (bar, measured, true) == ([0.93, 0.97], [0.95], [0.952])
    assert selftest_figures.ratios(replace(RESULT, checks=(SKIPPED,))).drawing is None


def test_a_comparison_without_an_interval_is_neither_drawn_nor_in_the_table() -> None:
    without = replace(CHECK.comparisons[0], label="no interval", low=None, high=None)
    result = replace(RESULT, checks=(replace(CHECK, comparisons=(*CHECK.comparisons, without)),))
    drawing = selftest_figures.ratios(result).drawing
    assert drawing is not None
    [axes] = drawing.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [CHECK.comparisons[0].label]
    assert len(axes.lines) == 3
    assert selftest_tables.comparisons(result).column("Study") == [CHECK.comparisons[0].label]


def test_an_interval_that_misses_the_truth_has_another_colour() -> None:
    missing = replace(CHECK.comparisons[0], true=0.5)
    drawing = selftest_figures.ratios(replace(RESULT, checks=(replace(CHECK, comparisons=(missing,)),))).drawing
    assert drawing is not None
    assert {line.get_color() for line in drawing.axes[0].lines[:2]} == {selftest_figures.WRONG}
