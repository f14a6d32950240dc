"""The checks of the self-test: each takes what its studies measured, through the code that makes every report."""

import math
from collections.abc import Sequence
from itertools import repeat

import numpy as np
import pandas as pd

from dlperf_study.analysis.communication import exchange_cost
from dlperf_study.analysis.comparison import FASTER, SLOWER
from dlperf_study.analysis.statistics import Estimate, Interval
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.run_diagnostics import UNEVEN
from dlperf_study.errors import EvidenceError
from dlperf_study.evidence.run import read_run
from dlperf_study.paths import SELFTEST, StudyPaths
from dlperf_study.selftest.result import CheckResult, Comparison, Status

#: The names of the checks, in the order of their page.
SAME, SLOWDOWNS, LINK, STRAGGLER = "same program", "slowdowns", "link", "straggler"
#: An interval of 95 % misses the truth in 1 of 20 cases, so a correct instrument may be wrong in some.
ALLOWED_SHARE, FEWEST_FOR_A_MISS = 0.1, 3
#: How far the planted wait may be from what was requested, as a share of the step, and the exchange from its truth.
#: A process that is interrupted at the end of a wait waits longer; what it waited is in its log, and is the truth.
WAIT_TOLERANCE, LINK_TOLERANCE = 0.01, 0.10
#: The time of an exchange of all gradients and its interval, in the table of configurations.
_EXCHANGE = ("exchange_seconds", "exchange_seconds_low", "exchange_seconds_high")
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
        f"{WIDEST_MEDIAN:.0%} of the ratio to each side"
    ),
    LINK: (
        "Over a link of known rate an exchange takes what the link allows, and the bandwidth fitted to exchanges of "
        f"several sizes is its rate, within {LINK_TOLERANCE:.0%}"
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
    observation = f"{len(distinguished)} of {len(comparisons)} told apart{_listed(distinguished)}"
    return _check_result(SAME, len(distinguished) <= allowed_misses(len(datasets)), observation, comparisons)


def check_slowdowns(datasets: Sequence[Dataset]) -> CheckResult:
    """Check slowdowns of known size: the sign of each ratio, whether its interval holds the truth, and how wide it is.

    How many are called slower is counted by size, and not required: three rounds on a noisy machine find few.
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
        f"median half-width of the intervals: {half_width:.1%}"
    )
    is_passed = min(right_sign, holding) >= required and not called_faster and half_width <= WIDEST_MEDIAN
    return _check_result(SLOWDOWNS, is_passed, observation, comparisons)


def check_link(dataset: Dataset, bits_per_second: float) -> CheckResult:
    """Check an exchange over a loopback interface that lets a known number of bits pass per second.

    In a ring all-reduce each of n ranks sends 2(n−1)/n of the bytes. All send through the same interface, so it
    carries 2(n−1) times the bytes. Its packets of 64 KiB have headers of less than 0.2 %, which are neglected.
    """
    row = _measured_row(dataset, dataset.configurations["devices_per_node"] == 2)
    carried_bits = 8 * 2 * (int(row["world_size"]) - 1)
    true_seconds = carried_bits * float(row["gradient_bytes"]) / bits_per_second
    seconds, low, high = map(_number_or_none, row[list(_EXCHANGE)])
    if seconds is None:
        raise EvidenceError(f"study {row['study']}: no run has measured an exchange of all gradients")
    slope = _seconds_per_byte(row)
    bounds = _bounds_of_rate(carried_bits, slope.interval())
    exchange = Comparison(LINK, "exchange of all gradients (s)", true_seconds, seconds, low, high)
    fitted = carried_bits / slope.mean
    bandwidth = Comparison(LINK, "fitted bandwidth (bit/s)", bits_per_second, fitted, *bounds)
    observation = (
        f"an exchange takes {_with_bounds(exchange, 1, 's')} and the link allows {true_seconds:.4g} s; the fitted "
        f"bandwidth is {_with_bounds(bandwidth, 1e6, 'Mbit/s')} and that of the link {bits_per_second / 1e6:.4g}"
    )
    comparisons = [exchange, bandwidth]
    is_passed = all(abs(comparison.measured / comparison.true - 1) <= LINK_TOLERANCE for comparison in comparisons)
    return _check_result(LINK, is_passed, observation, comparisons)


def check_straggler(dataset: Dataset) -> CheckResult:
    """Check that a slowed rank is named as the straggler in every run, and hardly ever one of two equal ranks."""
    slowed = dataset.configurations["planted_slowdown"] > 0
    row, equal_row = _measured_row(dataset, slowed), _measured_row(dataset, ~slowed)
    named, named_wrongly = _runs_naming(dataset, row), _runs_naming(dataset, equal_row)
    runs, equal_runs = int(row["runs_completed"]), int(equal_row["runs_completed"])
    observation = (
        f"the slowed rank in {named} of {runs} runs; one of two equal ranks in {named_wrongly} of {equal_runs}"
    )
    is_passed = named == runs and named_wrongly <= allowed_misses(equal_runs)
    return _check_result(STRAGGLER, is_passed, observation, [])


def _labels_of(comparisons: Sequence[Comparison], *verdicts: str) -> list[str]:
    """Return the labels of the comparisons that have one of these verdicts."""
    return [comparison.label for comparison in comparisons if comparison.verdict in verdicts]


def _called_slower(slowdowns: Sequence[float], comparisons: Sequence[Comparison]) -> str:
    """Return how many slowdowns of each size are called slower, the largest first: ``10%: 2 of 7, 5%: 1 of 7``."""
    is_slower = [comparison.verdict == SLOWER for comparison in comparisons]
    cases_by_size = pd.DataFrame({"slowdown": slowdowns, "is_slower": is_slower}).groupby("slowdown")["is_slower"]
    counts = cases_by_size.agg(["sum", "size"]).sort_index(ascending=False)
    return ", ".join(f"{size:.0%}: {called} of {cases}" for size, called, cases in counts.itertuples())


def _half_width(comparison: Comparison) -> float:
    """Return half the width of an interval as a share of the measured value; endless without an interval."""
    if comparison.interval is None:
        return math.inf
    low, high = comparison.interval
    return (high - low) / 2 / comparison.measured


def _number_or_none(value: float) -> float | None:
    return None if pd.isna(value) else float(value)


def _bounds_of_rate(amount: float, seconds: Interval | None) -> tuple[float | None, float | None]:
    """Return the bounds of ``amount`` per second from those of the seconds; None where one is not a positive time."""
    if seconds is None or seconds.low <= 0:
        return None, None
    return amount / seconds.high, amount / seconds.low


def _with_bounds(comparison: Comparison, size: float, unit: str) -> str:
    """Return a measured value in a unit of this size, and its interval if it has one."""
    value = f"{comparison.measured / size:.4g} {unit}"
    if comparison.interval is None:
        return f"{value} (no interval)"
    low, high = comparison.interval
    return f"{value} [{low / size:.5g}, {high / size:.5g}]"


def _seconds_per_byte(row: "pd.Series") -> Estimate:
    """Return the slope of the exchange time over its size, over the runs of a configuration."""
    paths = StudyPaths.of(str(row["study"])).configuration(str(row["identity"]))
    slopes = []
    for run in map(read_run, paths.runs()):
        cost = exchange_cost(run)
        if cost is None:
            raise EvidenceError(f"study {row['study']}: a run has exchanges of too few sizes to fit a bandwidth")
        slopes.append(cost.seconds_per_byte)
    return Estimate.of(slopes)


def _check_result(name: str, is_passed: bool, seen: str, comparisons: Sequence[Comparison]) -> CheckResult:
    status = Status.PASSED if is_passed else Status.FAILED
    return CheckResult(name, REQUIREMENTS[name], status, seen, tuple(comparisons))


def _comparison(dataset: Dataset, kind: str, planted_slowdown: float) -> Comparison:
    """Return the comparison of the replica that has this slowdown with its reference.

    Raises EvidenceError without an interval and a verdict: then nothing can be said.
    """
    rows = dataset.configurations
    row = _measured_row(dataset, (rows["replica"] == 1) & (rows["planted_slowdown"] == planted_slowdown))
    study = dataset.plan.study
    values = row[["relative_throughput", "relative_throughput_low", "relative_throughput_high"]].astype(float)
    if values.isna().any() or pd.isna(row["verdict"]):
        raise EvidenceError(f"study {study}: {row['identity']} has no verdict; the report of that study says why")
    reference = _measured_row(dataset, rows["is_reference"].astype(bool))
    true_ratio = (1 + _planted_share(reference)) / (1 + _planted_share(row))
    name = study.removeprefix(f"{SELFTEST}_")
    label = name if kind == SAME else f"{name}, {planted_slowdown:.0%}"
    measured, low, high = map(float, values)
    equal_within = _number_or_none(row["relative_throughput_equal_within"])
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
        requested = f"{row['planted_slowdown']:.2%} of the step were to be added"
        raise EvidenceError(f"study {row['study']}: {requested}, and the processes added {share:.2%}")
    return share


def _measured_row(dataset: Dataset, selected: "pd.Series") -> "pd.Series":
    """Return the only selected configuration; raises EvidenceError unless all its planned runs completed."""
    [(_, row)] = dataset.configurations[selected].iterrows()
    completed, planned = int(row["runs_completed"]), int(row["runs_planned"])
    if completed < planned or not planned:
        raise EvidenceError(f"study {dataset.plan.study}: {completed} of {planned} runs of {row['identity']} completed")
    return row


def _runs_naming(dataset: Dataset, row: "pd.Series") -> int:
    """Return in how many runs of a configuration the slowed rank is named; where none is slowed, any rank."""
    diagnostics = dataset.diagnostics
    naming = diagnostics[(diagnostics["subject"] == UNEVEN) & (diagnostics["identity"] == row["identity"])]
    if row["slowed_rank"] >= 0:
        naming = naming[naming["message"].str.contains(rf"\brank {row['slowed_rank']} on ")]
    return int(naming["repetition"].nunique())


def _listed(labels: Sequence[str]) -> str:
    return f" ({', '.join(labels)})" if labels else ""
