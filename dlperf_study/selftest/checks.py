"""The checks of the self-test: each takes what its studies measured, through the code that makes every report."""

import math
from collections.abc import Sequence
from itertools import repeat

import numpy as np
import pandas as pd

from dlperf_study.core.errors import EvidenceError
from dlperf_study.core.paths import SELFTEST, StudyPaths
from dlperf_study.core.wording import per_cent
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.evidence.run import read_run
from dlperf_study.metrics.comparison import FASTER, SLOWER
from dlperf_study.metrics.statistics import CONFIDENCE, t_quantile
from dlperf_study.selftest.power import (
    NARROW_BY_CHANCE,
    SEEN,
    distance_score,
    largest_score,
    passing_probability,
    seen_intervals,
    seen_share,
)
from dlperf_study.selftest.result import CheckResult, Comparison, Status

#: The names of the checks, in the order of their page.
SAME, SLOWDOWNS, INTERVALS, STEPS = "same program", "slowdowns", "intervals", "steps"
LINK, STRAGGLER = "link", "straggler"
#: An interval of 95 % misses the truth in 1 of 20 cases, so a correct instrument may be wrong in some.
ALLOWED_SHARE, FEWEST_FOR_A_MISS = 0.1, 3
#: How far the planted wait may be from what was requested, as a share of the step, and what was measured of steps and
#: exchanges from their truth. A process that is interrupted at the end of a wait waits longer; what it waited is in its
#: log, and is the truth.
WAIT_TOLERANCE, STEP_TOLERANCE, LINK_TOLERANCE = 0.01, 0.01, 0.10
#: How wide intervals may be: an endless one holds every truth. A noisy machine with two cores needs half of it.
WIDEST_MEDIAN = 0.15


def allowed_misses(cases: int) -> int:
    """Return how many of several cases may be wrong: two of 20; of fewer than three, none."""
    return math.ceil(ALLOWED_SHARE * cases) if cases >= FEWEST_FOR_A_MISS else 0


_ROUNDED_UP = (
    f"rounded up: {allowed_misses(FEWEST_FOR_A_MISS)} of {FEWEST_FOR_A_MISS}, {allowed_misses(20)} of 20; "
    f"of fewer than {FEWEST_FOR_A_MISS} none"
)
#: What each check requires.
REQUIREMENTS = {
    SAME: f"One configuration under two names: at most one pair in ten ({_ROUNDED_UP}) is told apart by a verdict",
    SLOWDOWNS: (
        "Slowdowns of known size: at most one in ten has the wrong sign, at most one in ten has the true ratio outside "
        f"its interval ({_ROUNDED_UP}), none is called faster, and half of the intervals reach at most "
        f"{per_cent(WIDEST_MEDIAN)} of the ratio to each side"
    ),
    INTERVALS: (
        "The distances of the measured ratios from the true ones, in units of their intervals, are no larger than "
        f"those of right intervals are in {per_cent(1 - NARROW_BY_CHANCE, 1)} of self-tests"
    ),
    STEPS: (
        "Steps that sleep for a known time: throughput and time of a step are what follows from it, and with a slower "
        f"second rank what follows from that one, within {per_cent(STEP_TOLERANCE)}"
    ),
    LINK: (
        "Over a link of known rate an exchange takes what the link allows, and the bandwidth fitted to exchanges of "
        f"several sizes is its rate, within {per_cent(LINK_TOLERANCE)}"
    ),
    STRAGGLER: (
        "A slowed rank is named as the straggler in every run, and one of two equal ranks in at most one run in ten "
        f"({_ROUNDED_UP})"
    ),
}


def check_same_program(datasets: Sequence[Dataset]) -> CheckResult:
    """Check that one configuration under two names is hardly ever called faster or slower than itself."""
    comparisons = [_comparison(dataset, SAME, 0.0) for dataset in datasets]
    distinguished = _labels_of(comparisons, FASTER, SLOWER)
    cases, allowed = len(comparisons), allowed_misses(len(comparisons))
    seen, tenth = seen_share(cases, allowed), passing_probability(cases, allowed, 0.1)
    observation = (
        f"{len(distinguished)} of {cases} told apart{_listed(distinguished)}. With so many pairs an instrument that is "
        f"wrong in {per_cent(seen)} of its verdicts fails in {per_cent(SEEN)} of self-tests, one that is wrong in "
        f"{per_cent(0.1)} fails in {per_cent(1 - tenth)}"
    )
    return check_result(SAME, len(distinguished) <= allowed, observation, comparisons)


def check_slowdowns(datasets: Sequence[Dataset]) -> CheckResult:
    """Check slowdowns of known size: the sign of each ratio, whether its interval holds the truth, and how wide it is.

    How many are called slower is counted by size, and not required: four rounds on a noisy machine find few.
    """
    cases = len(datasets)
    required = cases - allowed_misses(cases)
    slowdowns = []
    for dataset in datasets:
        [slowdown] = {float(value) for value in dataset.configurations["planted_slowdown"] if value > 0}
        slowdowns.append(slowdown)
    comparisons = list(map(_comparison, datasets, repeat(SLOWDOWNS), slowdowns))
    right_sign = sum(comparison.measured < 1 for comparison in comparisons)
    holding = sum(comparison.holds_truth for comparison in comparisons)
    called_faster = _labels_of(comparisons, FASTER)
    half_width = float(np.median(list(map(_half_width, comparisons))))
    observation = (
        f"right sign: {right_sign} of {cases}; truth inside the interval: {holding} of {cases}; called slower: "
        f"{_called_slower(slowdowns, comparisons)}; called faster: {len(called_faster)}{_listed(called_faster)}; "
        f"median half-width of the intervals: {per_cent(half_width, 1)}"
    )
    is_passed = min(right_sign, holding) >= required and not called_faster and half_width <= WIDEST_MEDIAN
    return check_result(SLOWDOWNS, is_passed, observation, comparisons)


def check_intervals(datasets: Sequence[Dataset]) -> CheckResult:
    """Check that intervals are not too narrow: how far the ratios of all pairs are from their truth, in their units."""
    rounds, distances = set(), []
    for dataset in datasets:
        [slowdown] = {float(value) for value in dataset.configurations["planted_slowdown"] if value > 0}
        rounds |= set(dataset.configurations["runs_completed"].astype(int))
        distances += [_distance(_comparison(dataset, INTERVALS, planted)) for planted in (0.0, slowdown)]
    if len(rounds) != 1:
        raise EvidenceError(f"the pairs have different numbers of rounds: {', '.join(map(str, sorted(rounds)))}")
    [common] = rounds
    score = distance_score(np.array(distances) * t_quantile((1 + CONFIDENCE) / 2, common - 1), common - 1)
    limit = largest_score(len(datasets), common)
    half, most = (seen_intervals(len(datasets), common, width) for width in (0.5, 0.8))
    observation = (
        f"the score of the distances is {score:.2f}, and at most {limit:.2f} passes. With so many pairs intervals of "
        f"half the right width fail in {per_cent(half)} of self-tests, those of four fifths in {per_cent(most)}"
    )
    return check_result(INTERVALS, bool(score <= limit), observation, [])


def _distance(comparison: Comparison) -> float:
    """Return how far a ratio is from its truth, in halves of its interval, by logarithms."""
    if comparison.interval is None:
        raise EvidenceError(f"{comparison.label} has no interval")
    low, high = map(math.log, comparison.interval)
    return 2 * (math.log(comparison.measured) - math.log(comparison.true)) / (high - low)


def _labels_of(comparisons: Sequence[Comparison], *verdicts: str) -> list[str]:
    """Return the labels of the comparisons that have one of these verdicts."""
    return [comparison.label for comparison in comparisons if comparison.verdict in verdicts]


def _called_slower(slowdowns: Sequence[float], comparisons: Sequence[Comparison]) -> str:
    """Return how many slowdowns of each size are called slower, the largest first: ``10 %: 2 of 7, 5 %: 1 of 7``."""
    is_slower = [comparison.verdict == SLOWER for comparison in comparisons]
    cases_by_size = pd.DataFrame({"slowdown": slowdowns, "is_slower": is_slower}).groupby("slowdown")["is_slower"]
    counts = cases_by_size.agg(["sum", "size"]).sort_index(ascending=False)
    return ", ".join(f"{per_cent(size)}: {called} of {cases}" for size, called, cases in counts.itertuples())


def _half_width(comparison: Comparison) -> float:
    """Return half the width of an interval as a share of the measured value; endless without an interval."""
    if comparison.interval is None:
        return math.inf
    low, high = comparison.interval
    return (high - low) / 2 / comparison.measured


def number_or_none(value: float) -> float | None:
    """Return a number of a table, None where it has none."""
    return None if pd.isna(value) else float(value)


def check_result(name: str, is_passed: bool, seen: str, comparisons: Sequence[Comparison]) -> CheckResult:
    """Return the result of a check that was done."""
    status = Status.PASSED if is_passed else Status.FAILED
    return CheckResult(name, REQUIREMENTS[name], status, seen, tuple(comparisons))


def _comparison(dataset: Dataset, kind: str, planted_slowdown: float) -> Comparison:
    """Return the comparison of the replica that has this slowdown with its reference.

    Raises EvidenceError without an interval and a verdict: then nothing can be said.
    """
    rows = dataset.configurations
    row = measured_row(dataset, (rows["replica"] == 1) & (rows["planted_slowdown"] == planted_slowdown))
    study = dataset.plan.study
    values = row[["relative_throughput", "relative_throughput_low", "relative_throughput_high"]].astype(float)
    if values.isna().any() or pd.isna(row["verdict"]):
        raise EvidenceError(f"study {study}: {row['identity']} has no verdict; the report of that study says why")
    reference = measured_row(dataset, rows["is_reference"].astype(bool))
    true_ratio = (1 + _planted_share(reference)) / (1 + _planted_share(row))
    name = study.removeprefix(f"{SELFTEST}_")
    label = name if kind == SAME else f"{name}, {per_cent(planted_slowdown)}"
    measured, low, high = map(float, values)
    equal_within = number_or_none(row["relative_throughput_equal_within"])
    return Comparison(kind, label, true_ratio, measured, low, high, str(row["verdict"]), equal_within)


def _planted_share(row: "pd.Series") -> float:
    """Return how long the ranks of a configuration waited on purpose, as a share of their own steps, over its runs.

    Raises EvidenceError when that is not what was requested: then the truth is not known.
    """
    paths = StudyPaths.of(str(row["study"])).configuration(str(row["identity"]))
    shares = []
    for run in map(read_run, paths.runs()):
        for log in run.ranks:
            planted = log.end.get("planted")
            if planted is None:
                raise EvidenceError(f"study {row['study']}: the log of rank {log.rank} has no planted wait")
            shares.append(planted["waited_seconds"] / planted["step_seconds"])
    share = float(np.mean(shares))
    if not abs(share - row["planted_slowdown"]) <= WAIT_TOLERANCE:
        requested = f"{per_cent(row['planted_slowdown'], 2)} of the step were to be added"
        raise EvidenceError(f"study {row['study']}: {requested}, and the processes added {per_cent(share, 2)}")
    return share


def measured_row(dataset: Dataset, selected: "pd.Series") -> "pd.Series":
    """Return the only selected configuration; raises EvidenceError unless all its planned runs completed."""
    [(_, row)] = dataset.configurations[selected].iterrows()
    completed, planned = int(row["runs_completed"]), int(row["runs_planned"])
    if completed < planned or not planned:
        raise EvidenceError(f"study {dataset.plan.study}: {completed} of {planned} runs of {row['identity']} completed")
    return row


def _listed(labels: Sequence[str]) -> str:
    return f" ({', '.join(labels)})" if labels else ""
