"""A configuration that fails in every round is not started in all of them."""

from collections.abc import Callable, Sequence

import pytest

from dlperf_study.execution.controller import run_study
from dlperf_study.execution.measurement import MeasurementSummary
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.study_result import StudyResult
from dlperf_study.records.run_record import RequestedRun
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.plan import Plan
from tests.execution.constructed import measure_here, perform_one

CODE_1, CODE_2 = "failed: node-0 exited with code 1: no module", "failed: node-0 was ended by signal SIGKILL"
#: Measures a plan in which the configuration of batch 8 ends like this in each of its executions: why it failed, or "".
Measure = Callable[[Sequence[str]], tuple[StudyResult, list[int], list[str]]]


@pytest.fixture
def measure(plan: Plan, constructed_runs: None, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Return the result, the repetitions of the failing configuration that were started, and what was printed."""
    endings: list[str] = []
    started: list[int] = []

    def perform_or_fail(configuration: Configuration, runs: Sequence[RequestedRun]) -> MeasurementSummary:
        if configuration.batch_per_device == 8:
            started.append(runs[0].repetition)
            if failure := endings.pop(0):
                return MeasurementSummary(f"run {runs[0].repetition} {failure}", 0, is_failure=True)
        return perform_one(configuration, runs, monkeypatch)

    measure_here(perform_or_fail, monkeypatch)

    def run(failures: Sequence[str]) -> tuple[StudyResult, list[int], list[str]]:
        endings[:], started[:] = failures, []
        printed: list[str] = []
        return run_study(plan, load_cluster(plan.cluster), printed.append), started, printed

    return run


def test_a_configuration_that_failed_twice_for_the_same_reason_is_left_out_until_the_next_call(measure):
    result, started, printed = measure([CODE_1, CODE_1])
    assert (started, result.measured, len(result.failures)) == ([1, 2], 6, 2)
    [left_out] = [line for line in printed if "not started" in line]
    assert left_out.endswith("run 3 not started: failed twice for the same reason; the same command tries again")
    result, started, _ = measure(["", "", ""])
    assert (started, result.measured, result.failures) == ([1, 2, 3], 3, [])


@pytest.mark.parametrize(
    ("endings", "keeps_failing"),
    [
        ([CODE_1], False),
        ([CODE_1, CODE_1], True),
        ([CODE_1, CODE_2, CODE_1], False),
        ([CODE_1, "", CODE_1], False),
        ([CODE_2, CODE_1, CODE_1], True),
        (["failed: port 20123 is taken", "failed: port 31234 is taken"], True),
    ],
)
def test_a_run_that_completes_or_another_reason_ends_a_series_of_failures(endings, keeps_failing):
    result = StudyResult()
    for repetition, failure in enumerate(endings, 1):
        message = f"run {repetition} {failure or 'completed'}"
        result.add("one", MeasurementSummary(message, int(not failure), is_failure=bool(failure)))
    assert (result.keeps_failing("one"), result.keeps_failing("another")) == (keeps_failing, False)
    assert len(result.failures) == len(endings) - result.measured
