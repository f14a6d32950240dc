"""The checks of the self-test, on evidence whose truth is known: each fails where the instrument would be wrong."""

import math
import shutil

import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.wording import per_cent
from dlperf_study.records.rank_log import read_rank_log
from dlperf_study.selftest import checks, known_truths
from dlperf_study.selftest.result import Status
from tests.evidence_factory import GRADIENT_BYTES
from tests.selftest.studies import link_dataset, pair_dataset, straggler_dataset


@pytest.mark.parametrize(
    ("cases", "share", "allowed"),
    [(1, 0.05, 1), (3, 0.05, 1), (5, 0.05, 2), (20, 0.05, 3), (20, 0.025, 2), (3, 0.025, 1)],
)
def test_a_correct_instrument_has_more_wrong_cases_in_at_most_2_per_cent_of_selftests(cases, share, allowed):
    assert checks.allowed_cases(cases, share) == allowed
    more = sum(
        math.comb(cases, wrong) * share**wrong * (1 - share) ** (cases - wrong)
        for wrong in range(allowed + 1, cases + 1)
    )
    assert more <= 0.02


@pytest.mark.parametrize(("runs", "allowed"), [(1, 0), (2, 0), (3, 1)])
def test_one_of_two_equal_ranks_may_be_named_in_one_run_of_three(runs, allowed):
    assert checks.allowed_stragglers(runs) == allowed


@pytest.mark.parametrize(("wrong", "status"), [(0, Status.PASSED), (1, Status.PASSED), (2, Status.FAILED)])
def test_the_same_program_is_hardly_ever_told_from_itself(wrong, status):
    datasets = [pair_dataset(number, replica=0.2 * (number <= wrong)) for number in range(1, 4)]
    result = checks.check_same_program(datasets)
    assert result.status is status
    assert result.seen.startswith(f"{wrong} of 3 distinguished")
    assert [comparison.significance for comparison in result.comparisons] == ["slower"] * wrong + ["equal"] * (
        3 - wrong
    )
    assert 0 < result.comparisons[2].equal_within < 0.05


def test_the_truth_of_a_slowdown_is_what_the_processes_waited():
    [comparison] = checks.check_slowdowns([pair_dataset(1, slowdown=0.25, waited=0.2505)]).comparisons
    assert comparison.true == pytest.approx(1 / 1.2505)
    assert comparison.measured == pytest.approx(0.8, rel=0.01)
    assert comparison.label == f"pairs_01, {per_cent(0.25)}"


@pytest.mark.parametrize(("wrong", "status"), [(0, Status.PASSED), (1, Status.PASSED), (2, Status.FAILED)])
def test_slowdowns_that_look_like_speedups_fail(wrong, status, snapshot):
    measured = [-0.2 if number <= wrong else 0.1 for number in range(1, 4)]
    datasets = [pair_dataset(number, slowdown=0.1, measured=measured[number - 1]) for number in range(1, 4)]
    result = checks.check_slowdowns(datasets)
    assert result.status is status
    assert result.seen == snapshot


def test_a_wrong_sign_by_chance_is_no_fault():
    """All three are measured as faster than they were, and their intervals have 1 inside."""
    datasets = [pair_dataset(number, 0.02, measured=-0.001, noise=0.05) for number in range(1, 4)]
    result = checks.check_slowdowns(datasets)
    assert all(comparison.low < 1 < comparison.high for comparison in result.comparisons)
    assert result.status is Status.PASSED
    assert result.seen.startswith("0 of 3 look like a speedup; ")


def test_slowdowns_that_are_called_slower_are_counted_by_size(snapshot):
    datasets = [pair_dataset(1, 0.1), pair_dataset(2, 0.02, measured=0.0), pair_dataset(3, 0.1, noise=0.3)]
    seen = checks.check_slowdowns(datasets).seen
    assert seen == snapshot


def test_the_half_width_is_that_of_the_intervals():
    [comparison] = (result := checks.check_slowdowns([pair_dataset(1, 0.1, noise=0.05)])).comparisons
    half_width = (comparison.high - comparison.low) / 2 / comparison.measured
    assert result.seen.endswith(f"median margin of the CIs: ± {per_cent(half_width, 1)}")


@pytest.mark.parametrize(("low", "high"), [(0.5, 2.0), (0.9995, 1.0005)], ids=["too wide", "too narrow"])
def test_intervals_of_a_wrong_width_fail_the_check(low, high, snapshot):
    datasets = [pair_dataset(number, slowdown=0.1, noise=0.01) for number in range(1, 7)]
    assert checks.check_intervals(datasets).status is Status.PASSED
    for dataset in datasets:
        rows = dataset.configurations
        rows["relative_throughput_low"] = rows["relative_throughput"] * low
        rows["relative_throughput_high"] = rows["relative_throughput"] * high
    result = checks.check_intervals(datasets)
    assert result.status is Status.FAILED
    assert result.seen == snapshot


def test_processes_that_waited_something_else_leave_no_truth(refused):
    with refused(RecordError):
        checks.check_slowdowns([pair_dataset(1, slowdown=0.1, waited=0.15)])


def test_a_reference_that_waited_leaves_no_truth(refused):
    dataset = pair_dataset(1)
    reference = dataset.configurations.loc[dataset.configurations["is_reference"], "configuration_id"].item()
    log = StudyPaths.of("selftest_pairs_01").configuration(reference).run(1).rank_log(0)
    log.write_text(log.read_text().replace('"waited_seconds": 0.0', '"waited_seconds": 0.1'))
    assert read_rank_log(log).end["injected"]["waited_seconds"] == 0.1
    with refused(RecordError):
        checks.check_slowdowns([dataset])


ALLOWED_SECONDS = 2 * GRADIENT_BYTES * 8 / 4e8


@pytest.mark.parametrize(
    ("factor", "status"), [(1.0, Status.PASSED), (1.09, Status.PASSED), (1.12, Status.FAILED), (0.88, Status.FAILED)]
)
def test_an_exchange_takes_what_the_link_allows(factor, status, snapshot):
    dataset = link_dataset(factor * ALLOWED_SECONDS)
    result = known_truths.check_link(dataset, bits_per_second=4e8)
    assert result.status is status
    communication, bandwidth = result.comparisons
    assert (communication.true, bandwidth.true) == (ALLOWED_SECONDS, 4e8)
    assert communication.measured == pytest.approx(factor * ALLOWED_SECONDS, rel=0.01)
    [row] = dataset.configurations.itertuples()
    assert communication.interval == (row.communication_seconds_low, row.communication_seconds_high)
    assert result.seen == snapshot
    assert (
        f"a transfer takes {communication.measured:.4g} s [{communication.low:.5g}, {communication.high:.5g}]"
        in result.seen
    )
    assert bandwidth.low < bandwidth.measured < bandwidth.high
    assert f"Mbit/s [{bandwidth.low / 1e6:.5g}, {bandwidth.high / 1e6:.5g}]" in result.seen


def test_one_run_over_a_link_has_no_interval():
    dataset = link_dataset(ALLOWED_SECONDS)
    rows = dataset.configurations
    rows[["communication_seconds_low", "communication_seconds_high"]] = float("nan")
    for run in (2, 3):
        shutil.rmtree(StudyPaths.of("selftest_link").configuration(rows["configuration_id"].item()).run(run).folder)
    result = known_truths.check_link(dataset, bits_per_second=4e8)
    assert [comparison.interval for comparison in result.comparisons] == [None, None]
    assert result.seen.count("(no interval)") == 2


def test_a_latency_is_no_bandwidth():
    """Time that no byte explains: the fit leaves it out, the communication of all gradients does not."""
    result = known_truths.check_link(link_dataset(1.12 * ALLOWED_SECONDS, 0.12 * ALLOWED_SECONDS), bits_per_second=4e8)
    _, bandwidth = result.comparisons
    assert bandwidth.measured == pytest.approx(4e8, rel=0.02)
    assert result.status is Status.FAILED


def test_too_few_sizes_fit_no_bandwidth(refused):
    dataset = link_dataset(ALLOWED_SECONDS)
    for log in StudyPaths.of("selftest_link").folder.rglob("rank-*.jsonl"):
        lines = log.read_text().replace('"windows": 9', '"windows": 5').splitlines(keepends=True)
        log.write_text("".join(line for line in lines if '"name": "communication_' not in line))
    with refused(RecordError):
        known_truths.check_link(dataset, bits_per_second=4e8)


@pytest.mark.parametrize(
    ("factor", "equal_factor", "status"),
    [(1.25, 1.0, Status.PASSED), (1.0, 1.0, Status.FAILED), (1.25, 1.25, Status.FAILED)],
)
def test_the_slowed_rank_and_no_other_is_named(factor, equal_factor, status):
    result = known_truths.check_straggler(straggler_dataset(factor, equal_factor))
    assert result.status is status


def test_a_run_that_is_missing_is_said(refused):
    dataset = pair_dataset(1)
    rows = dataset.configurations
    rows.loc[rows["injected_slowdown"] > 0, "runs_completed"] = 2
    with refused(RecordError):
        checks.check_slowdowns([dataset])
