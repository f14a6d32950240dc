"""Checks of the self-test, with the code that makes every report."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import repeat

import numpy as np
import pandas as pd

from dlperf_study.core.arrays import Floats
from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import SELFTEST, StudyPaths
from dlperf_study.core.wording import per_cent
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.comparison import FASTER, SLOWER
from dlperf_study.metrics.statistics import CONFIDENCE, t_quantile
from dlperf_study.records.run import read_run
from dlperf_study.selftest.result import CheckResult, Comparison, Status

SAME, SLOWDOWNS, INTERVALS, STEPS = "same program", "slowdowns", "intervals", "steps"
LINK, STRAGGLER = "link", "straggler"
#: A count of wrong cases fails a correct instrument at most so often.
MAX_FALSE_FAILURES = 0.02
#: How often a correct instrument tells a program from itself, and how often the interval of a slowdown is above 1.
FALSE_DIFFERENCE, WRONG_SIGN = 1 - CONFIDENCE, (1 - CONFIDENCE) / 2
#: How far the injected wait may be from what was requested, as a share of the step, and what was measured of steps and
#: transfers from their truth. A process that is interrupted at the end of a wait waits longer; what it waited is in its
#: log, and is the truth.
WAIT_TOLERANCE, STEP_TOLERANCE, LINK_TOLERANCE = 0.01, 0.01, 0.10
#: How often the distances of correct intervals are outside the limits of their score: half of it on each side.
OUTSIDE_BY_CHANCE = 0.025
SIMULATED_SCORES = 8_000


@cache
def allowed_cases(cases: int, share: float) -> int:
    """Return how many wrong cases a correct instrument may have."""
    probability = 1.0
    for allowed in range(cases + 1):
        probability -= math.comb(cases, allowed) * share**allowed * (1 - share) ** (cases - allowed)
        if probability <= MAX_FALSE_FAILURES:
            return allowed
    return cases


def allowed_stragglers(runs: int) -> int:
    """Return in how many runs an equal rank may be the straggler."""
    return runs // 3


REQUIREMENTS = {
    SAME: (
        "One configuration under two names is called faster or slower than itself in at most "
        f"{allowed_cases(20, FALSE_DIFFERENCE)} of 20 pairs ({allowed_cases(3, FALSE_DIFFERENCE)} of 3)"
    ),
    SLOWDOWNS: (
        f"An injected slowdown looks like a speedup in at most {allowed_cases(20, WRONG_SIGN)} of 20 pairs "
        f"({allowed_cases(3, WRONG_SIGN)} of 3): its 95 % CI is above 1, or it is called faster"
    ),
    INTERVALS: (
        "The errors of all ratios, in units of their 95 % CIs, are as large as they are with CIs of the right width in "
        f"{per_cent(1 - OUTSIDE_BY_CHANCE, 1)} of self-tests"
    ),
    STEPS: (
        "Steps that sleep for a known time, with equal ranks and with a slower one: throughput and median step are "
        f"within {per_cent(STEP_TOLERANCE)} of the known values"
    ),
    LINK: (
        "An all-reduce over an interface of known bandwidth: its time and the fitted bandwidth are within "
        f"{per_cent(LINK_TOLERANCE)} of the known values"
    ),
    STRAGGLER: (
        "The slowed rank is named as the straggler in every run, and one of two equal ranks in at most one run of three"
    ),
}


def check_same_program(datasets: Sequence[Dataset]) -> CheckResult:
    """Check that a configuration rarely differs from itself."""
    return judge_same_program(list(map(_comparison, datasets, repeat(SAME), repeat(0.0))))


def judge_same_program(comparisons: Sequence[Comparison]) -> CheckResult:
    """Return whether few enough pairs of one program are distinguished."""
    distinguished = [comparison.label for comparison in comparisons if comparison.significance in (FASTER, SLOWER)]
    is_passed = len(distinguished) <= allowed_cases(len(comparisons), FALSE_DIFFERENCE)
    observation = f"{len(distinguished)} of {len(comparisons)} distinguished{_listed(distinguished)}"
    return check_result(SAME, is_passed, observation, comparisons)


def check_slowdowns(datasets: Sequence[Dataset]) -> CheckResult:
    """Check that injected slowdowns do not look like speedups."""
    slowdowns = list(map(slowdown_of_pair, datasets))
    return judge_slowdowns(list(map(_comparison, datasets, repeat(SLOWDOWNS), slowdowns)), slowdowns)


def judge_slowdowns(comparisons: Sequence[Comparison], slowdowns: Sequence[float]) -> CheckResult:
    """Return whether few slowdowns look like a speedup, with counts."""
    cases = len(comparisons)
    wrong = []
    for each in comparisons:
        if each.significance == FASTER or (each.interval and each.interval[0] > 1):
            wrong.append(each.label)
    holding = sum(comparison.holds_truth for comparison in comparisons)
    # By the size of the slowdown, the largest first: ``10 %: 2 of 7, 5 %: 1 of 7``.
    is_slower = [comparison.significance == SLOWER for comparison in comparisons]
    by_size = pd.DataFrame({"slowdown": slowdowns, "is_slower": is_slower}).groupby("slowdown")["is_slower"]
    counts = by_size.agg(["sum", "size"]).sort_index(ascending=False)
    slower = ", ".join(f"{per_cent(size)}: {called} of {pairs}" for size, called, pairs in counts.itertuples())
    observation = (
        f"{len(wrong)} of {cases} look like a speedup{_listed(wrong)}; called slower: "
        f"{slower}; true ratio inside the CI: {holding} of {cases}; "
        f"median margin of the CIs: ± {per_cent(median_half_width(comparisons), 1)}"
    )
    return check_result(SLOWDOWNS, len(wrong) <= allowed_cases(cases, WRONG_SIGN), observation, comparisons)


def check_intervals(datasets: Sequence[Dataset]) -> CheckResult:
    """Check that intervals are as wide as the errors of ratios."""
    comparisons = []
    for dataset in datasets:
        comparisons.append(_comparison(dataset, INTERVALS, 0.0))
        comparisons.append(_comparison(dataset, INTERVALS, slowdown_of_pair(dataset)))
    result = judge_intervals(comparisons, common_rounds(datasets))
    # The checks before it show these ratios.
    return replace(result, comparisons=())


def judge_intervals(comparisons: Sequence[Comparison], rounds: int) -> CheckResult:
    """Return whether the errors of ratios fit their intervals."""
    # By logarithms, in halves of the intervals.
    distances_in_half_widths = []
    for comparison in comparisons:
        if comparison.interval is None:
            raise RecordError(f"{comparison.label} has no interval")
        low, high = map(math.log, comparison.interval)
        distances_in_half_widths.append(2 * (math.log(comparison.measured) - math.log(comparison.true)) / (high - low))
    distances = np.array(distances_in_half_widths) * t_quantile((1 + CONFIDENCE) / 2, rounds - 1)
    score = float(distance_score(distances, rounds - 1))
    low, high = score_limits(len(comparisons) // 2, rounds)
    observation = f"the score of the errors is {score:.2f}; between {low:.2f} and {high:.2f} passes"
    return check_result(INTERVALS, low <= score <= high, observation, comparisons)


def distance_score(distances: Floats, freedom: int) -> Floats:
    """Return a score of distances [..., comparisons] in standard errors.

    It is the mean of log(1 + t² / freedom), which distinguishes scales of Student's t distribution and is robust
    against single large distances.
    """
    return np.asarray(np.log1p(distances**2 / freedom).mean(axis=-1))


@cache
def score_limits(pairs: int, rounds: int) -> tuple[float, float]:
    """Return the scores between which correct intervals are in 97.5 %."""
    runs = np.random.default_rng(0).standard_normal((SIMULATED_SCORES, pairs, 3, rounds))
    differences = runs[:, :, 1:] - runs[:, :, :1]
    errors = differences.std(axis=-1, ddof=1) / np.sqrt(rounds)
    distances = differences.mean(axis=-1) / errors
    scores = distance_score(distances.reshape(SIMULATED_SCORES, -1), rounds - 1)
    low, high = np.quantile(scores, (OUTSIDE_BY_CHANCE / 2, 1 - OUTSIDE_BY_CHANCE / 2))
    return float(low), float(high)


def common_rounds(datasets: Sequence[Dataset]) -> int:
    """Return the rounds of all pairs; raises RecordError if they differ."""
    rounds: set[int] = set()
    for dataset in datasets:
        rounds |= {*map(int, dataset.configurations["runs_completed"])}
    if len(rounds) != 1:
        raise RecordError(f"the pairs have different numbers of rounds: {', '.join(map(str, sorted(rounds)))}")
    return rounds.pop()


def slowdown_of_pair(dataset: Dataset) -> float:
    """Return the injected slowdown of a pair."""
    [slowdown] = {float(value) for value in dataset.configurations["injected_slowdown"] if value > 0}
    return slowdown


def median_half_width(comparisons: Sequence[Comparison]) -> float:
    """Return the median half-width of intervals, relative to the value."""
    half_widths = []
    for comparison in comparisons:
        if comparison.interval:
            low, high = comparison.interval
            half_widths.append((high - low) / 2 / comparison.measured)
    return float(np.median(half_widths))


def number_or_none(value: float) -> float | None:
    """Return a number of a table, None where it has none."""
    return None if pd.isna(value) else float(value)


def check_result(name: str, is_passed: bool, seen: str, comparisons: Sequence[Comparison]) -> CheckResult:
    """Return the result of a check that was done."""
    status = Status.PASSED if is_passed else Status.FAILED
    return CheckResult(name, REQUIREMENTS[name], status, seen, tuple(comparisons))


def _comparison(dataset: Dataset, kind: str, injected_slowdown: float) -> Comparison:
    """Return the comparison of a slowed replica with its reference."""
    rows = dataset.configurations
    row = measured_row(dataset, (rows["replica"] == 1) & (rows["injected_slowdown"] == injected_slowdown))
    study = dataset.plan.study
    values = row[["relative_throughput", "relative_throughput_low", "relative_throughput_high"]].astype(float)
    if values.isna().any() or pd.isna(row["significance"]):
        raise RecordError(f"study {study}: {row['configuration_id']} has no significance; see the report of that study")
    reference = measured_row(dataset, rows["is_reference"].astype(bool))
    true_ratio = (1 + _injected_share(reference)) / (1 + _injected_share(row))
    name = study.removeprefix(f"{SELFTEST}_")
    label = name if kind == SAME else f"{name}, {per_cent(injected_slowdown)}"
    measured, low, high = map(float, values)
    equal_within = number_or_none(row["relative_throughput_equal_within"])
    return Comparison(kind, label, true_ratio, measured, low, high, str(row["significance"]), equal_within)


def _injected_share(row: "pd.Series") -> float:
    """Return the injected wait as a share of the ranks' own steps."""
    paths = StudyPaths.of(str(row["study"])).configuration(str(row["configuration_id"]))
    shares = []
    for run in map(read_run, paths.runs()):
        for log in run.ranks:
            injected = log.end.get("injected")
            if injected is None:
                raise RecordError(f"study {row['study']}: the log of rank {log.rank} has no injected wait")
            shares.append(injected["waited_seconds"] / injected["step_seconds"])
    share = float(np.mean(shares))
    if not abs(share - row["injected_slowdown"]) <= WAIT_TOLERANCE:
        requested = f"{per_cent(row['injected_slowdown'], 2)} of the step were to be added"
        raise RecordError(f"study {row['study']}: {requested}, and the processes added {per_cent(share, 2)}")
    return share


def measured_row(dataset: Dataset, selected: "pd.Series") -> "pd.Series":
    """Return the selected configuration; raises RecordError unless complete."""
    [(_, row)] = dataset.configurations[selected].iterrows()
    completed, planned = int(row["runs_completed"]), int(row["runs_planned"])
    if completed < planned or not planned:
        raise RecordError(
            f"study {dataset.plan.study}: {completed} of {planned} runs of {row['configuration_id']} completed"
        )
    return row


def _listed(labels: Sequence[str]) -> str:
    return f" ({', '.join(labels)})" if labels else ""
