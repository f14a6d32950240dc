"""Speedups over baselines, and throughputs relative to references."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.configuration_table import SIGNIFICANCES
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.series import by_series
from dlperf_study.findings import communication, number, reasons
from dlperf_study.findings.number import Number
from dlperf_study.findings.reasons import NoResult, Reason
from dlperf_study.metrics import comparison, run_status
from dlperf_study.study.grid import Denominator
from dlperf_study.study.study import COMPARISON
from dlperf_study.training.parts import same_alone

#: Of more comparisons only counts and the largest significant ratios are printed.
MAX_LINES, MAX_LARGEST = 4, 2
#: In this order comparisons and their counts are printed.
TEST_RESULTS = (
    comparison.FASTER,
    comparison.SLOWER,
    comparison.EQUAL,
    comparison.NO_SIGNIFICANT_DIFFERENCE,
    comparison.TOO_FEW_RUNS,
    comparison.BACKGROUND_LOAD,
)
#: The parts of a step that a difference may lie in; where it lies is unknown otherwise.
CAUSES = (comparison.COMPUTATION, comparison.INPUT, comparison.COMMUNICATION_ALONE, comparison.SEVERAL)


@dataclass(frozen=True)
class Comparison:
    """The ratio of one configuration's throughput to that of its baseline or reference.

    ``rounds_missing``: how many more rounds a test needs. ``disturbed``: which of the two have fewer than three runs
    without background load. ``needs_correction``: the CI excludes 1, and the test corrected for the number of
    comparisons finds no difference. ``is_doubtful``: an error is about the ratio.
    """

    subject: str
    baseline: str
    role: Denominator
    significance: str
    ratio: Number
    efficiency: Number | None = None
    exposed: Number | None = None
    cause: str | None = None
    equal_within: float | None = None
    rounds_missing: int = 0
    disturbed: tuple[str, ...] = ()
    needs_correction: bool = False
    is_doubtful: bool = False


@dataclass(frozen=True)
class NotCompared:
    """A configuration without a comparison."""

    subject: str
    baseline: str
    role: Denominator
    no_result: NoResult


@dataclass(frozen=True)
class ComparisonCounts:
    """The significance of many comparisons; ``implausible``: how many an error is about, which are in no other count.

    ``is_tested``: a significance test was made, corrected for their number.
    """

    role: Denominator
    total: int
    significances: tuple[tuple[str, int], ...]
    implausible: int
    is_tested: bool


@dataclass(frozen=True)
class NotComparedCounts:
    """The reasons of several configurations without a comparison, each after the role that lacks a result."""

    role: Denominator
    total: int
    missing: int
    reasons: tuple[tuple[Denominator | None, Reason, int], ...]


@dataclass(frozen=True)
class NothingCompared:
    """A study without any comparison; ``is_declared``: a configuration has another one as baseline or reference.

    ``can_add_section``: its study file could have the section on comparisons, and has not.
    """

    role: Denominator
    is_declared: bool
    can_add_section: bool = False


@dataclass(frozen=True)
class Throughput:
    """The throughput of one configuration; ``column``: in samples/s or tokens/s."""

    subject: str
    throughput: Number
    column: str


@dataclass(frozen=True)
class Measured:
    """How many configurations were measured, for a study without a question about them."""

    measured: int
    total: int


Compared = Comparison | NotCompared


def speedups(dataset: Dataset) -> list[Compared]:
    """Return the speedup at the largest measured and the largest planned device count of each series."""
    compared: list[Compared] = []
    measured = set(dataset.measured["configuration_id"])
    for configuration_ids in by_series(dataset):
        largest = [configuration_id for configuration_id in configuration_ids if configuration_id in measured][-1:]
        for configuration_id in dict.fromkeys((*largest, configuration_ids[-1])):
            row = dataset.configuration_rows[configuration_id]
            if not row.is_baseline:
                compared.append(_compared(dataset, row, "baseline"))
    return compared


def references(dataset: Dataset) -> list[Compared]:
    """Return the comparison of each configuration with its reference, in the order of the references."""
    compared: list[Compared] = []
    for row in referring_rows(dataset):
        if not same_program(row, dataset.configuration_rows[row.reference_id]):
            compared.append(_compared(dataset, row, "reference"))
    return compared


def referring_rows(dataset: Dataset) -> list[Any]:
    """Return the rows with a selected reference other than themselves, in the order of the references."""
    rows = dataset.configurations
    order = {configuration_id: position for position, configuration_id in enumerate(rows["configuration_id"])}
    selected = rows.loc[rows["is_reference"], "configuration_id"]
    referring = rows[~rows["is_reference"] & rows["reference_id"].isin(selected)]
    positions = referring["reference_id"].map(order).sort_values(kind="stable")
    configuration_ids = referring.loc[positions.index, "configuration_id"]
    return [dataset.configuration_rows[configuration_id] for configuration_id in configuration_ids]


def same_program(row: Any, reference: Any) -> bool:
    """Return whether two frameworks run one program on one device."""
    frameworks = {row.framework, reference.framework}
    if len(frameworks) == 1 or not row.world_size == reference.world_size == 1:
        return False
    return any(frameworks <= {*group} for group in same_alone())


def lines(compared: Sequence[Compared], dataset: Dataset, role: Denominator) -> Iterator[object]:
    """Yield each comparison, or counts and the largest of many."""
    if not compared:
        yield nothing_compared(dataset, role)
        return
    tested: list[Comparison] = []
    missing: list[NotCompared] = []
    for each in compared:
        if isinstance(each, Comparison):
            tested.append(each)
        else:
            missing.append(each)
    if len(tested) <= MAX_LINES:
        yield from tested
    else:
        yield counts(tested, role)
        yield from significant(tested)[:MAX_LARGEST]
    if len(missing) == 1:
        yield missing[0]
    elif missing:
        by_reason = Counter((each.no_result.role, each.no_result.reason) for each in missing)
        counted = []
        for (missing_role, reason), count in by_reason.most_common():
            counted.append((missing_role, reason, count))
        yield NotComparedCounts(role, len(compared), len(missing), tuple(counted))


def nothing_compared(dataset: Dataset, role: Denominator) -> NothingCompared:
    """Return why nothing is compared."""
    if role == "baseline":
        return NothingCompared(role, dataset.plan.has_speedups)
    is_declared = bool(dataset.configurations["reference_id"].notna().any())
    return NothingCompared(role, is_declared, dataset.plan.can_add_section(COMPARISON))


def significant(tested: Sequence[Comparison]) -> list[Comparison]:
    """Return the significant and plausible comparisons, the largest ratio first."""
    believed = [
        each for each in tested if each.significance in (comparison.FASTER, comparison.SLOWER) and not each.is_doubtful
    ]
    return sorted(believed, key=lambda each: -each.ratio.value)


def counts(tested: Sequence[Comparison], role: Denominator) -> ComparisonCounts:
    """Return how many comparisons have each result of the test."""
    by_significance = Counter(each.significance for each in tested if not each.is_doubtful)
    significances = tuple((each, by_significance[each]) for each in TEST_RESULTS if by_significance[each])
    is_tested = any(by_significance[each] for each in TEST_RESULTS[: TEST_RESULTS.index(comparison.TOO_FEW_RUNS)])
    return ComparisonCounts(role, len(tested), significances, sum(each.is_doubtful for each in tested), is_tested)


def throughputs(dataset: Dataset) -> list[Throughput]:
    """Return the throughput of each measured configuration."""
    column = dataset.throughput_column
    return [
        Throughput(row.configuration_id, number.from_column(row, column), column)
        for row in dataset.measured.itertuples()
    ]


def _compared(dataset: Dataset, row: Any, role: Denominator) -> Compared:
    baseline = dataset.configuration_rows[getattr(row, f"{role}_id")]
    result, column = getattr(row, SIGNIFICANCES[role]), comparison.RATIOS[role]
    if is_missing(result):
        no_result = reasons.without_messages(reasons.no_comparison(dataset, row, role))
        return NotCompared(row.configuration_id, baseline.configuration_id, role, no_result)
    ratio = number.from_column(row, column)
    efficiency = exposed = cause = None
    if role == "baseline":
        exposed = communication.exposed_communication_share(dataset, row.configuration_id)
        if row.world_size != baseline.world_size and not is_missing(row.efficiency):
            efficiency = number.from_column(row, "efficiency")
    elif result in (comparison.FASTER, comparison.SLOWER) and row.largest_difference in CAUSES:
        cause = row.largest_difference
    disturbed: tuple[str, ...] = ()
    if result == comparison.BACKGROUND_LOAD:
        names = run_status.disturbed_configurations((dataset.whole or dataset).runs)
        disturbed = tuple(each.configuration_id for each in (row, baseline) if each.configuration_id in names)
    return Comparison(
        row.configuration_id,
        baseline.configuration_id,
        role,
        result,
        ratio,
        efficiency,
        exposed,
        cause,
        equal_within=getattr(row, f"{column}_equal_within"),
        rounds_missing=int(getattr(row, f"{column}_rounds_missing")),
        disturbed=disturbed,
        needs_correction=result == comparison.NO_SIGNIFICANT_DIFFERENCE and (ratio.low > 1 or ratio.high < 1),
        is_doubtful=(row.configuration_id, column) in dataset.doubtful_numbers,
    )
