"""The file of results: what is written is read, and the last one that passed is found, on its own machine only."""

import json
from dataclasses import replace

import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.selftest.result import (
    CheckResult,
    Comparison,
    Machine,
    SelftestResult,
    Status,
    add_result,
    last_not_passed,
    last_passed,
    last_result,
    read_results,
    results_file,
)

MACHINE = Machine("host-a", "Constructed CPU", 64)
COMPARISON = Comparison("slowdowns", "selftest_pairs_01, 5%", 0.952, 0.95, 0.93, 0.97, "slower")
CHECK = CheckResult("slowdowns", "what is required", Status.PASSED, "what was seen", (COMPARISON,))
SKIPPED = CheckResult("link", "what is required", Status.SKIPPED, "only root can shape a link")
RESULT = SelftestResult("2026-03-01T10:00:00+00:00", MACHINE, "c0de" * 16, False, (CHECK, SKIPPED))
FAILED = replace(RESULT, ended="2026-03-02T10:00:00+00:00", checks=(replace(CHECK, status=Status.FAILED),))


def test_what_is_written_is_read(refused):
    assert read_results() == []
    with refused(RecordError):
        last_result()
    add_result(RESULT)
    add_result(FAILED)
    assert read_results() == [RESULT, FAILED]
    assert last_result() == FAILED


def test_a_result_of_a_version_without_analysis_code_and_equality_is_read():
    add_result(RESULT)
    file = json.loads(results_file().read_text())
    del file["results"][0]["analysis_code"], file["results"][0]["checks"][0]["comparisons"][0]["equal_within"]
    results_file().write_text(json.dumps(file))
    assert read_results() == [RESULT]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 99}', '{"format": 1, "results": [{"ended": "x"}]}'])
def test_a_damaged_file_is_said_and_not_overwritten(content):
    results_file().parent.mkdir()
    results_file().write_text(content)
    with pytest.raises(RecordError, match=r"results\.json"):
        add_result(RESULT)
    assert results_file().read_text() == content


@pytest.mark.parametrize(
    ("statuses", "passed"),
    [
        ((Status.PASSED, Status.PASSED), True),
        ((Status.PASSED, Status.SKIPPED), True),
        ((Status.PASSED, Status.FAILED), False),
        ((Status.PASSED, Status.UNDECIDED), False),
        ((Status.SKIPPED, Status.SKIPPED), False),
    ],
)
def test_a_selftest_passes_if_every_check_does_that_was_done(statuses, passed):
    checks = tuple(replace(CHECK, status=status) for status in statuses)
    assert replace(RESULT, checks=checks).passed == passed


def test_the_last_one_that_passed_is_that_of_the_machine():
    later = replace(RESULT, ended="2026-03-03T10:00:00+00:00")
    quick = replace(RESULT, ended="2026-03-04T10:00:00+00:00", quick=True)
    elsewhere = replace(RESULT, ended="2026-03-05T10:00:00+00:00", machine=replace(MACHINE, cores=32))
    assert last_passed([RESULT, later, FAILED, elsewhere], MACHINE) == later
    assert last_passed([quick, RESULT], MACHINE) == RESULT
    assert last_passed([quick], MACHINE) == quick
    assert last_passed([FAILED, elsewhere], MACHINE) is None


def test_a_failure_counts_until_the_next_pass():
    later = replace(RESULT, ended="2026-03-03T10:00:00+00:00")
    elsewhere = replace(FAILED, ended="2026-03-05T10:00:00+00:00", machine=replace(MACHINE, cores=32))
    assert last_not_passed([RESULT, FAILED, elsewhere], MACHINE, after=RESULT) == FAILED
    assert last_not_passed([RESULT, FAILED, later], MACHINE, after=later) is None
    assert last_not_passed([FAILED], MACHINE, after=None) == FAILED
    assert last_not_passed([RESULT, elsewhere], MACHINE, after=RESULT) is None


@pytest.mark.parametrize(("low", "high", "holds"), [(0.9, 1.0, True), (0.96, 1.0, False), (None, None, False)])
def test_an_interval_holds_the_truth_or_not(low, high, holds):
    assert replace(COMPARISON, low=low, high=high).holds_truth == holds
