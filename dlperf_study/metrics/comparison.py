"""Comparison of configurations with baselines, and the parts that explain it."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

import pandas as pd

from dlperf_study.core.errors import BaselineError, Diagnostic, Severity
from dlperf_study.metrics.metric import C, Metric, Shown, no_ratio_to, text, whole_number
from dlperf_study.metrics.statistics import (
    MINIMUM_RUNS,
    Estimate,
    NoInterval,
    Sample,
    equal_within,
    log_ratio,
    rounds_needed,
    significant,
)
from dlperf_study.study.grid import Denominator
from dlperf_study.study.plan import Entry, Plan
from dlperf_study.study.study import COMPARISON as COMPARISON_PAGE

#: A value of the completed runs of each configuration in which it is known, by identity.
Samples = Mapping[str, Sample]
Throughputs = Samples
RATIOS: dict[Denominator, str] = {"baseline": "speedup", "reference": "relative_throughput"}
FASTER, SLOWER, EQUAL, NO_SIGNIFICANT_DIFFERENCE = "faster", "slower", "equal", "no significant difference"
TOO_FEW_RUNS, BACKGROUND_LOAD = "too few runs", "background load"
#: The widest range that is called equal, where a study asks for no precision of its own.
WIDEST_EQUALITY = 0.05
COMPUTATION, INPUT, COMMUNICATION_ALONE, SEVERAL, UNCLEAR = (
    "computation",
    "input",
    "communication",
    "several parts",
    "undecided",
)
#: The parts of a step that add up to it, by their column of the runs, and what is compared: the step of all runs, and
#: that of the runs that measured its parts, with these.
NAMES_OF_PARTS = {
    "compute_seconds": COMPUTATION,
    "input_seconds": INPUT,
    "exposed_communication_seconds": COMMUNICATION_ALONE,
}
PARTS = ("step_seconds", "broken_down_step_seconds", *NAMES_OF_PARTS)


@dataclass(frozen=True)
class Significance:
    """Outcome of a comparison; ``equal_within``: the equivalence margin, or None."""

    word: str | None
    equal_within: float | None
    rounds_missing: int = 0


def throughput_ratio(entry: Entry, role: Denominator, throughputs: Throughputs) -> Estimate:
    """Return the logarithm of throughput / baseline or reference throughput."""
    configuration_id, denominator_id = entry.configuration.configuration_id, str(entry.denominator(role))
    if denominator_id not in throughputs:
        raise BaselineError(f"no run of its declared {role} {denominator_id} completed")
    if configuration_id == denominator_id:
        return compare_with_itself(throughputs[configuration_id].values.size)
    return log_ratio(throughputs[configuration_id], throughputs[denominator_id])


def compare_with_itself(runs: int) -> Estimate:
    """Return the difference of a configuration from itself: zero."""
    if runs < MINIMUM_RUNS:
        return Estimate(0.0, None, runs - 1, runs, reason=NoInterval.FEW_VALUES)
    return Estimate(0.0, 0.0, runs - 1, runs)


def widest_equality(plan: Plan) -> float:
    """Return the widest margin of equality: the target, or 5 %."""
    return plan.target_ci or WIDEST_EQUALITY


def significances(
    log_ratios: Mapping[str, Estimate], widest: float = WIDEST_EQUALITY, disturbed: Collection[str] = ()
) -> dict[str, Significance]:
    """Return the significance of several comparisons, corrected together, by name.

    *Faster* or *slower* if the ratio differs from 1; with a probability of 95 % none of these is wrong. Else *equal*,
    if the two are shown to differ by at most ``widest`` (Bonferroni), or *no significant difference*. *Background load*
    if the ratio is of ``disturbed`` runs, and *too few runs* if the number of comparisons needs more.
    """
    tested = {name: estimate for name, estimate in log_ratios.items() if name not in disturbed}
    differing = dict(zip(tested, significant(list(tested.values())), strict=True))
    comparisons = max(1, sum(estimate.error is not None for estimate in tested.values()))
    fewest = rounds_needed(comparisons)
    significance_of = {}
    for name, estimate in log_ratios.items():
        bound = equal_within(estimate)
        if bound is None:
            significance_of[name] = Significance(None, None)
        elif name in disturbed:
            significance_of[name] = Significance(BACKGROUND_LOAD, bound)
        elif estimate.rounds < fewest:
            significance_of[name] = Significance(TOO_FEW_RUNS, bound, fewest - int(estimate.rounds))
        elif differing[name]:
            significance_of[name] = Significance(FASTER if estimate.mean > 0 else SLOWER, bound)
        else:
            is_equal = (equal_within(estimate, comparisons) or math.inf) <= widest
            significance_of[name] = Significance(EQUAL if is_equal else NO_SIGNIFICANT_DIFFERENCE, bound)
    return significance_of


def step_samples(runs: pd.DataFrame, rounds: pd.Series | None, looks: int = 1) -> dict[str, dict[str, Sample]]:
    """Return seconds of completed runs by part, and differences of parts."""
    seconds = {part: runs[part] for part in PARTS}
    for part, shorter_part in permutations(NAMES_OF_PARTS, 2):
        seconds[excess(part, shorter_part)] = runs[part] - runs[shorter_part]
    return {part: collect_samples(values, runs["configuration_id"], rounds, looks) for part, values in seconds.items()}


def excess(part: str, shorter_part: str) -> str:
    """Return the name of the difference of two parts in ``step_samples``."""
    return f"{part} - {shorter_part}"


def differences(parts: Mapping[str, Samples], configuration_id: str, reference_id: str) -> dict[str, Estimate]:
    """Return the extra seconds per step over the reference, by part.

    Negative is faster. ``parts``: from ``step_samples``. Without a part that either side has not measured.
    """
    estimates: dict[str, Estimate] = {}
    for part, samples in parts.items():
        if configuration_id in samples and reference_id in samples:
            estimates[part] = samples[configuration_id].minus(samples[reference_id])
    return estimates


def assign_rounds(runs: pd.DataFrame, plan: Plan) -> pd.Series | None:
    """Return the round of each run by index; missing outside rounds."""
    if plan.ingested_from:
        return None
    return runs["round"].astype("Float64").astype("float64")


def collect_samples(
    values: pd.Series, configuration_ids: pd.Series, rounds: pd.Series | None, looks: int = 1
) -> dict[str, Sample]:
    """Return the known values and rounds of runs, by configuration.

    All by the index of the runs. Without ``rounds`` the runs are independent. ``looks``: see ``Estimate``.
    """
    measured_values = values.dropna()
    floats = measured_values.to_numpy(float)
    round_numbers = None if rounds is None else rounds.loc[measured_values.index].to_numpy(float)
    samples: dict[str, Sample] = {}
    identities_of_values = configuration_ids.loc[measured_values.index]
    for configuration_id, positions in identities_of_values.groupby(identities_of_values).indices.items():
        rounds_of_values = None if round_numbers is None else round_numbers[positions]
        samples[str(configuration_id)] = Sample(floats[positions], rounds_of_values, looks=looks)
    return samples


def explaining_part(decided: str | None, parts: Mapping[str, Estimate], uneven: bool = False) -> str | None:
    """Return the part of a step that explains a significant difference.

    A part explains it if the interval of its own difference excludes 0 in the same direction; it is the largest part if
    the intervals of its excesses over the others say so too. None without a significant difference or without
    intervals. ``parts``: the differences of all that ``step_samples`` has. ``uneven``: a rank of either side computed
    much slower than the others, so computation can't explain the difference.
    """
    of_computation = parts.get(excess("compute_seconds", "exposed_communication_seconds"))
    if decided not in (FASTER, SLOWER) or of_computation is None or of_computation.error is None:
        return None
    if not parts.keys() >= NAMES_OF_PARTS.keys():
        return None
    if uneven:
        return UNCLEAR
    direction = 1 if decided == SLOWER else -1
    explaining = [part for part in NAMES_OF_PARTS if _sign(parts[part]) == direction]
    for part in explaining:
        excesses = []
        for shorter_part in NAMES_OF_PARTS:
            if shorter_part != part:
                excesses.append(parts[excess(part, shorter_part)])
        if all(_sign(difference) == direction for difference in excesses):
            return NAMES_OF_PARTS[part]
    return SEVERAL if len(explaining) > 1 else UNCLEAR


def _sign(difference: Estimate) -> int:
    """Return the sign of a significant difference, else 0."""
    interval = difference.interval()
    if interval is None:
        return 0
    return (interval.low > 0) - (interval.high < 0)


def network_diagnostics(configurations: pd.DataFrame) -> Iterator[Diagnostic]:
    """Yield an error for another number of parameters than the reference's."""
    is_sharded = (configurations["classifier"] == "sharded") & (configurations["world_size"] > 1)
    parameters = configurations[~is_sharded].set_index("configuration_id")["parameters"].dropna().to_dict()
    compared = configurations[["configuration_id", "reference_id"]].dropna()
    for configuration_id, reference_id in compared.itertuples(index=False):
        if configuration_id not in parameters or reference_id not in parameters:
            continue
        count, reference_count = parameters[configuration_id], parameters[reference_id]
        if count != reference_count:
            message = f"rank 0 trains {count:,} parameters and its reference {reference_count:,}"
            message += ": not the same model"
            yield Diagnostic("relative_throughput", message, Severity.ERROR, configuration_id)


def denominator_metric(role: Denominator, throughput: str, pages: tuple[str, ...] = ()) -> Metric:
    """Return the metric of a baseline's or reference's throughput; ``throughput``: its column."""
    definition, unit = f"{throughput} of the declared {role}", "samples/s"
    if throughput == "token_throughput":
        definition, unit = f"{definition}, if ratios count tokens", "tokens/s"
    return Metric(
        f"{role}_{throughput}",
        f"{role.capitalize()} {throughput.replace('_', ' ')}",
        definition,
        C,
        unit=unit,
        interval=f"of the {role}",
        missing=(no_ratio_to(role),),
        shown=Shown.DENOMINATOR,
        pages=pages,
    )


def ratio_metric(
    name: str, label: str, definition: str, role: Denominator, pages: tuple[str, ...], unit: str = ""
) -> Metric:
    """Return the metric of a ratio to the baseline or reference."""
    return Metric(
        name,
        label,
        definition,
        C,
        unit=unit,
        interval="of the ratio",
        missing=(no_ratio_to(role),),
        compared_with=role,
        of_itself="1",
        neutral=1.0,
        pages=pages,
    )


def outcome_metrics(role: Denominator, ratio: str, label: str, significance: str) -> tuple[Metric, Metric, Metric]:
    """Return the metrics of the significance of a comparison, its margin and missing rounds."""
    definition = (
        f"faster or slower: significantly different from the declared {role} (Holm-corrected); equal: differs by at "
        "most the target CI (5 % without a target); no significant difference: neither; too few runs: for this many "
        "comparisons; background load: fewer than three undisturbed runs"
    )
    margin = f"x: the 95 % CI of the ratio to the declared {role} is within 1/(1+x) and 1+x"
    rounds = "further rounds needed for faster, slower or equal"
    return (
        text(significance, f"Against {role}", definition, C, compared_with=role, shown=Shown.SIGNIFICANCE),
        Metric(f"{ratio}_equal_within", f"{label}, equal within", margin, C),
        whole_number(f"{ratio}_rounds_missing", f"{label}, rounds missing", rounds, C),
    )


def _difference(part: str, label: str, meaning: str) -> Metric:
    """Return the metric of the extra time over the reference."""
    return Metric(
        f"{part}_difference_seconds",
        f"{label}, difference",
        f"{meaning} minus the declared reference's, mean over common rounds",
        C,
        unit="s",
        interval="of the difference",
        missing=(lambda gap: gap.difference_obstacle(needs_significance=False),),
        compared_with="reference",
        of_itself="0",
        neutral=0.0,
        part_of="step_seconds",
    )


DIFFERENCES = (
    _difference("step", "Step", "step"),
    _difference("broken_down_step", "Step in parts", "step of the runs with a breakdown"),
    _difference("compute", "Computation", "computation"),
    _difference("input", "Data-loading stall", "data-loading stall"),
    _difference("exposed_communication", "Exposed", "exposed communication"),
)

METRICS = (
    denominator_metric("reference", "throughput"),
    ratio_metric(
        "relative_throughput",
        "Relative throughput",
        "throughput / throughput of the declared reference",
        "reference",
        pages=(COMPARISON_PAGE,),
        unit="×",
    ),
    *outcome_metrics("reference", "relative_throughput", "Relative throughput", "significance"),
    *DIFFERENCES,
    text(
        "largest_difference",
        "Main cause",
        "main cause of a significant difference: computation, input, communication, several parts or undecided",
        C,
        missing=(lambda gap: gap.difference_obstacle(needs_significance=True),),
        compared_with="reference",
        shown=Shown.PLAIN,
    ),
)
