"""CIs contain the true value, and significance tests are right, as often as docs/statistics.md says."""

import os
from itertools import product

import numpy as np
import pytest

from dlperf_study.metrics.statistics import rounds_needed
from tests.simulations import coverage, positive_means, sessions, slowest_rank, stopping_rule

#: How many studies each case simulates; 0: a few, and a few cases.
SIMULATED = int(os.environ.get("SIMULATED", "0"))
SIZES = coverage.SIZES if SIMULATED else coverage.SIZES[:1]
TARGETS = list(product(stopping_rule.SIZES, stopping_rule.LIMITS, stopping_rule.TARGETS))
STEPS = [(correlation, 0.0) for correlation in slowest_rank.CORRELATIONS] + [(0.0, slowest_rank.STALL_SHARE)]
MACHINES = list(product(slowest_rank.RANKS, (0.0, slowest_rank.SLOWDOWN), STEPS, slowest_rank.ROUNDS))
if not SIMULATED:
    TARGETS, MACHINES = TARGETS[3::17], [MACHINES[1], MACHINES[14]]


def judge(line: str, is_within: bool) -> None:
    print(line)
    assert is_within, line


@pytest.mark.parametrize("configurations", SIZES)
@pytest.mark.parametrize("noise", coverage.NOISES)
def test_ratios_and_significance(noise, configurations):
    for rounds in (rounds_needed(configurations - 1), 6):
        judge(*coverage.row_of(noise, configurations, rounds, SIMULATED or 10))


@pytest.mark.matrix
def test_a_simulated_study_is_what_its_evidence_would_be():
    noise = coverage.NOISES["linear fall of 3 %"]
    coverage.check_evidence(coverage.simulated(noise, 6, 4, np.random.default_rng(0)))


def test_subsets_of_published_runs():
    for line, share in coverage.published_rows():
        judge(line, share >= coverage.SMALLEST_COVERAGE)


@pytest.mark.parametrize(("configurations", "limits", "target"), TARGETS)
def test_target_ci(configurations, limits, target):
    row = stopping_rule.Row(configurations, *limits, target * stopping_rule.SPREAD)
    judge(*row.line(SIMULATED or 20))


def test_times_whose_spread_is_large():
    configurations = 50 * SIMULATED or 200
    for line, gain in positive_means.rows(configurations):
        judge(line, gain >= -positive_means.chance(configurations))


@pytest.mark.matrix
@pytest.mark.parametrize(("ranks", "slowdown", "steps", "rounds"), MACHINES)
def test_what_depends_on_the_slowest_rank(ranks, slowdown, steps, rounds):
    judge(*slowest_rank.row_of(slowest_rank.Machine(ranks, slowdown, *steps), rounds, SIMULATED or 10))


@pytest.mark.matrix
def test_no_straggler_among_equal_ranks():
    for line, is_within in slowest_rank.straggler_lines(SIMULATED or 20):
        judge(line, is_within)


@pytest.mark.matrix
def test_sessions_without_a_change():
    studies = SIMULATED or 2
    spreads = sessions.SESSION_SPREADS if SIMULATED else sessions.SESSION_SPREADS[1:2]
    rows = list(sessions.rows_of(studies, spreads))
    assert len(rows) == len(spreads) * len(sessions.EARLIER_SESSIONS)
    # With fewer than five earlier sessions there is no outcome.
    assert {share for line, share in rows if line.split(" | ")[1] == "4"} == {0.0}
    for line, share in rows:
        judge(line, share <= coverage.false_limit(studies))
