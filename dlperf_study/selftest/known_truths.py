"""Checks of known truths: sleeping steps, a limited link, a slowed rank."""

from collections.abc import Sequence

import pandas as pd

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.communication import communication_cost
from dlperf_study.metrics.computation import UNEVEN
from dlperf_study.metrics.statistics import Estimate
from dlperf_study.records.run import read_run
from dlperf_study.selftest import checks
from dlperf_study.selftest.result import CheckResult, Comparison

_COMMUNICATION = ("communication_seconds", "communication_seconds_low", "communication_seconds_high")


def check_steps(dataset: Dataset) -> CheckResult:
    """Check sleeping steps of equal ranks, and of a slower second rank."""
    comparisons = []
    for longer in sorted(dataset.configurations["longer"].unique()):
        row = checks.measured_row(dataset, dataset.configurations["longer"] == longer)
        seconds = (row["milliseconds"] + longer) / 1000
        samples = row["batch_per_device"] * row["world_size"]
        ranks = "with a slower rank" if longer else "with equal ranks"
        comparisons += [
            _known(row, "throughput", f"samples/s {ranks}", samples / seconds),
            _known(row, "step_p50_seconds", f"median step {ranks} (s)", seconds),
        ]
    observation = "; ".join(f"{each.label}: {each.measured:.5g}, true {each.true:.5g}" for each in comparisons)
    return checks.check_result(checks.STEPS, _are_near(comparisons, checks.STEP_TOLERANCE), observation, comparisons)


def _known(row: "pd.Series", column: str, label: str, true: float) -> Comparison:
    """Return the comparison of a column with its true value."""
    measured, low, high = (checks.number_or_none(row[name]) for name in (column, f"{column}_low", f"{column}_high"))
    if measured is None:
        raise RecordError(f"study {row['study']}: {row['configuration_id']} has no {column}")
    return Comparison(checks.STEPS, label, float(true), measured, low, high)


def _are_near(comparisons: Sequence[Comparison], tolerance: float) -> bool:
    """Return whether measured values are within a share of the true ones."""
    return all(abs(comparison.measured / comparison.true - 1) <= tolerance for comparison in comparisons)


def check_link(dataset: Dataset, bits_per_second: float) -> CheckResult:
    """Check an all-reduce over a loopback interface of known rate.

    In a ring all-reduce each of n ranks sends 2(n−1)/n of the bytes. All send through the same interface, so it carries
    2(n−1) times the bytes. Headers of less than 0.2 % are neglected.
    """
    row = checks.measured_row(dataset, dataset.configurations["devices_per_node"] == 2)
    carried_bits = 8 * 2 * (int(row["world_size"]) - 1)
    true_seconds = carried_bits * float(row["gradient_bytes"]) / bits_per_second
    seconds, low, high = map(checks.number_or_none, row[list(_COMMUNICATION)])
    if seconds is None:
        raise RecordError(f"study {row['study']}: no run has measured a transfer of all gradients")
    paths = StudyPaths.of(str(row["study"])).configuration(str(row["configuration_id"]))
    slopes = []
    for run in map(read_run, paths.runs()):
        cost = communication_cost(run)
        if cost is None:
            raise RecordError(f"study {row['study']}: a run has transfers of too few sizes to fit a bandwidth")
        slopes.append(cost.seconds_per_byte)
    slope = Estimate.from_values(slopes)
    interval = slope.interval()
    bounds: tuple[float | None, float | None] = (None, None)
    # A time that is not positive is no bound of a rate.
    if interval and interval.low > 0:
        bounds = carried_bits / interval.high, carried_bits / interval.low
    communication_time = Comparison(checks.LINK, "communication of all gradients (s)", true_seconds, seconds, low, high)
    fitted = carried_bits / slope.mean
    bandwidth = Comparison(checks.LINK, "fitted bandwidth (bit/s)", bits_per_second, fitted, *bounds)
    observation = (
        f"a transfer takes {_describe_value(communication_time, 1, 's')}, true {true_seconds:.4g} s; "
        f"fitted bandwidth {_describe_value(bandwidth, 1e6, 'Mbit/s')}, true {bits_per_second / 1e6:.4g} Mbit/s"
    )
    comparisons = [communication_time, bandwidth]
    return checks.check_result(checks.LINK, _are_near(comparisons, checks.LINK_TOLERANCE), observation, comparisons)


def check_straggler(dataset: Dataset) -> CheckResult:
    """Check that a slowed rank is the straggler in every run."""
    slowed = dataset.configurations["injected_slowdown"] > 0
    row, equal_row = checks.measured_row(dataset, slowed), checks.measured_row(dataset, ~slowed)
    named, named_wrongly = _runs_naming(dataset, row), _runs_naming(dataset, equal_row)
    runs, equal_runs = int(row["runs_completed"]), int(equal_row["runs_completed"])
    observation = (
        f"the slowed rank in {named} of {runs} runs; one of two equal ranks in {named_wrongly} of {equal_runs}"
    )
    is_passed = named == runs and named_wrongly <= checks.allowed_stragglers(equal_runs)
    return checks.check_result(checks.STRAGGLER, is_passed, observation, [])


def _describe_value(comparison: Comparison, size: float, unit: str) -> str:
    """Return a measured value in a unit, with its interval."""
    value = f"{comparison.measured / size:.4g} {unit}"
    if comparison.interval is None:
        return f"{value} (no interval)"
    low, high = comparison.interval
    return f"{value} [{low / size:.5g}, {high / size:.5g}]"


def _runs_naming(dataset: Dataset, row: "pd.Series") -> int:
    """Return how many runs name the slowed, or any, rank."""
    diagnostics = dataset.diagnostics
    naming = diagnostics[
        (diagnostics["subject"] == UNEVEN) & (diagnostics["configuration_id"] == row["configuration_id"])
    ]
    if row["slowed_rank"] >= 0:
        naming = naming[naming["message"].str.contains(rf"\brank {row['slowed_rank']} on ")]
    return int(naming["repetition"].nunique())
