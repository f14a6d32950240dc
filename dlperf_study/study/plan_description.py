"""The plan of a study as text for the command line: what runs, against what, for how long, and what can't run."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from types import MappingProxyType

from dlperf_study.core.terminal import text_table
from dlperf_study.core.wording import counted, duration, level, single_reasons
from dlperf_study.study.batch_search import BatchSearch
from dlperf_study.study.configuration import GLOBAL_BATCH, PARAMETERS, Configuration
from dlperf_study.study.grid import DENOMINATORS, Denominator
from dlperf_study.study.job import BLOCKS
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.plan import Entry, Plan, varying

#: A longer list is shortened to so many of its first and of its last rows.
LONGEST_LIST, ENDS = 200, 10
#: Of more configurations that can't run, most for the same reasons, these are counted.
MOST_UNSUPPORTED = 12
NO_SEARCH: Mapping[str, BatchSearch] = MappingProxyType({})
#: Whose devices train: a study made for GPUs may be planned where there are none.
_DEVICES = {"cpu": "the CPUs of ", "gpu": "the GPUs of "}
NOTHING_UNMEASURED: Mapping[str, int] = MappingProxyType({})
#: What a configuration has no value of where its baseline or reference can't run.
_COMPARED: dict[Denominator, str] = {"baseline": "speedup", "reference": "comparison"}


@dataclass(frozen=True)
class EarlierRuns:
    """What earlier runs show of a plan, by the identity of a configuration.

    ``run_seconds``: the mean seconds of a run here. ``done``: how many of the planned runs are completed.
    ``not_fitting``: why a configuration does not fit in memory. ``not_counted``: which runs of the study do not count
    for this plan, and why, a sentence each.
    """

    run_seconds: Mapping[str, float] = field(default_factory=dict)
    done: Mapping[str, int] = field(default_factory=dict)
    not_fitting: Mapping[str, str] = field(default_factory=dict)
    not_counted: Sequence[str] = ()


NO_EARLIER_RUNS = EarlierRuns()


def describe(
    plan: Plan,
    earlier_runs: EarlierRuns = NO_EARLIER_RUNS,
    searches: Mapping[str, BatchSearch] = NO_SEARCH,
    unmeasured: Mapping[str, int] = NOTHING_UNMEASURED,
    complete: bool = False,
) -> str:
    """Return the plan as text.

    ``searches``: what is known of the largest batches, by identity. ``unmeasured``: how many runs no number comes from,
    by what they are for.
    ``complete``: list every configuration. Without it, of more than LONGEST_LIST only the first and the last are
    listed, and of more than MOST_UNSUPPORTED that can't run how many there are for each reason.
    """
    parts = [_head(plan, earlier_runs)]
    if unmeasured:
        names = " and ".join(f"{count} {purpose}" for purpose, count in unmeasured.items())
        parts[0] += f"\nNot in these runs, nor in their time: {names}, which give no number."
    parts.extend(f"Note: {sentence}." for sentence in (*plan.notes, *earlier_runs.not_counted))
    if plan.runnable:
        parts.append(_runnable(plan, earlier_runs, complete))
    if earlier_runs.not_fitting:
        table = _numbered_table(plan, "reason", earlier_runs.not_fitting, complete)
        parts.append(f"Does not fit in memory, and is not run again:\n{table}")
    if searches:
        bounds_by_identity = {identity: bounds.description for identity, bounds in searches.items()}
        table = _numbered_table(plan, "batch", bounds_by_identity, complete)
        parts.append(f"Largest batch per device, up to {plan.largest_batch}:\n{table}")
    if plan.unsupported:
        parts.append(f"Can't run here:\n{_unsupported(plan, complete)}")
    return "\n\n".join(parts)


def describe_reuse(plan: Plan, earlier_runs: EarlierRuns) -> str:
    """Return how many of its runs a study has already, how many are to do, and how long these take."""
    fitting = [entry for entry in plan.runnable if entry.configuration.identity not in earlier_runs.not_fitting]
    planned = sum(entry.configuration.repeats for entry in fitting)
    count = sum(earlier_runs.done.values())
    if count == planned:
        return f"All {counted(planned, 'run')} are done." + (" Nothing is to do." if plan.precision is None else "")
    left = counted(planned - count, "run")
    return f"Done: {count} of {counted(planned, 'run')}. To do: {left}{_time_left(fitting, earlier_runs)}."


def _time_left(entries: Sequence[Entry], earlier_runs: EarlierRuns) -> str:
    """Return how long the runs that are to do take; those of a configuration without one as long as those of others."""
    if not earlier_runs.run_seconds:
        return ""
    mean = fmean(earlier_runs.run_seconds.values())
    seconds = 0.0
    for entry in entries:
        identity = entry.configuration.identity
        left = entry.configuration.repeats - earlier_runs.done.get(identity, 0)
        seconds += left * earlier_runs.run_seconds.get(identity, mean)
    return f", about {duration(seconds)} if they take as long as those that are done"


def _head(plan: Plan, earlier_runs: EarlierRuns) -> str:
    runnable = plan.runnable
    fitting = [entry for entry in runnable if entry.configuration.identity not in earlier_runs.not_fitting]
    runs = sum(entry.configuration.repeats for entry in fitting)
    lines = [
        plan.title,
        f"Study {plan.study} on {_DEVICES.get(plan.device, '')}cluster {plan.cluster}, {plan.scaling} scaling: "
        f"{len(runnable)} of {len(plan.entries)} configurations can run here, in {runs} runs.",
    ]
    if extras := sum(entry.is_extra for entry in plan.entries):
        of_source = len(plan.entries) - extras
        lines.append(
            f"Of the {len(plan.entries)}, {of_source} are in the published tables; {counted(extras, 'extra')} are not."
        )
    if fitting:
        is_begun = any(earlier_runs.done.values())
        lines.append(describe_reuse(plan, earlier_runs) if is_begun else _time(fitting, earlier_runs.run_seconds))
        if plan.precision is not None:
            lines.append(_further_runs(plan))
        if plan.order == BLOCKS:
            lines.append("Runs are measured in blocks: ratios have neither an interval nor a verdict.")
    return "\n".join(lines)


def _runnable(plan: Plan, earlier_runs: EarlierRuns, complete: bool) -> str:
    """Return a row for each configuration that can run: its levels, its global batch, and what it is compared with.

    A factor that has one level in all of them is named once, below. Where any of the runs is done, a row says how many
    of its own are.
    """
    kinds = [kind for kind in DENOMINATORS if plan.declares(kind)]
    entries, row_numbers = plan.runnable, _row_numbers(plan)
    factors = varying(entries, plan.factors) or plan.factors
    headings = ["#", *factors, GLOBAL_BATCH.name, *kinds]
    is_whole = complete or len(entries) <= LONGEST_LIST
    listed = entries if is_whole else (*entries[:ENDS], *entries[-ENDS:])
    rows = [_row(entry, factors, kinds, row_numbers) for entry in listed]
    if any(earlier_runs.done.values()):
        headings.append("done")
        rows = [(*row, _done_of(entry, earlier_runs)) for row, entry in zip(rows, listed, strict=True)]
    notes = [*_common_levels(entries[0], [name for name in plan.factors if name not in factors])]
    if not is_whole:
        rows.insert(ENDS, ("…",) * len(headings))
        notes.append(f"{len(entries) - 2 * ENDS} configurations are not listed; plan with --all lists them.")
        notes += _missing_ratios(entries, kinds, row_numbers)
    return "\n".join([text_table(headings, rows), *notes])


def _common_levels(entry: Entry, factors: Sequence[str]) -> Iterator[str]:
    """Yield the levels that all configurations that can run share with this one, if there are any."""
    if factors:
        levels = map(" ".join, zip(factors, _levels(entry, factors), strict=True))
        yield f"The same in all: {', '.join(levels)}."


def _done_of(entry: Entry, earlier_runs: EarlierRuns) -> str:
    """Return how many runs of a configuration are done; nothing of one that does not fit in memory."""
    identity, repeats = entry.configuration.identity, entry.configuration.repeats
    return "" if identity in earlier_runs.not_fitting else f"{earlier_runs.done.get(identity, 0)} of {repeats}"


def _row_numbers(plan: Plan) -> dict[str | None, int]:
    """Return the number of each configuration that can run, its place in the plan, by identity."""
    row_numbers: dict[str | None, int] = {}
    for row_number, entry in enumerate(plan.entries, start=1):
        if entry.unsupported is None:
            row_numbers[entry.configuration.identity] = row_number
    return row_numbers


def _row(
    entry: Entry, factors: Sequence[str], kinds: Sequence[Denominator], row_numbers: Mapping[str | None, int]
) -> tuple[str, ...]:
    configuration = entry.configuration
    denominators = [_denominator(entry, kind, row_numbers) for kind in kinds]
    row_number = str(row_numbers[configuration.identity])
    return (row_number, *_levels(entry, factors), str(configuration.global_batch or "–"), *denominators)


def _levels(entry: Entry, factors: Sequence[str]) -> tuple[str, ...]:
    return tuple(_level(name, entry.configuration.value_of(name)) for name in factors)


def _level(name: str, value: Scalar) -> str:
    parameter = PARAMETERS.get(name)
    return parameter.default_name if parameter and parameter.is_named_default(value) else level(value)


def _denominator(entry: Entry, kind: Denominator, row_numbers: Mapping[str | None, int]) -> str:
    """Return the number of a baseline or reference, or that it can't run."""
    identity = entry.denominator(kind)
    if identity == entry.configuration.identity:
        return "itself"
    return f"#{row_numbers[identity]}" if identity in row_numbers else f"can't run here: no {_COMPARED[kind]}"


def _missing_ratios(
    entries: Sequence[Entry], kinds: Sequence[Denominator], row_numbers: Mapping[str | None, int]
) -> Iterator[str]:
    """Yield how many configurations will have no ratio, which a list that is not complete does not show."""
    for kind in kinds:
        count = sum(entry.denominator(kind) not in row_numbers for entry in entries)
        if count:
            yield f"{counted(count, 'configuration')}: no {_COMPARED[kind]}, because the {kind} can't run here."


def _unsupported(plan: Plan, complete: bool) -> str:
    """Return a row for each configuration that can't run, or for each single reason how many have it."""
    entries = plan.unsupported
    if complete or len(entries) <= MOST_UNSUPPORTED:
        rows = [(*_levels(entry, plan.factors), str(entry.unsupported)) for entry in entries]
        return text_table((*plan.factors, "reason"), rows)
    counts = Counter(reason for entry in entries for reason in single_reasons(str(entry.unsupported)))
    listed = counts.most_common(2 * ENDS)
    rows = [(str(count), reason) for reason, count in listed]
    if len(counts) > len(listed):
        rows.append(("…", f"{len(counts) - len(listed)} other reasons"))
    several = "; some have several reasons" if counts.total() > len(entries) else ""
    table = text_table(("configurations", "reason"), rows)
    return f"{table}\nplan with --all lists the {len(entries)} configurations{several}."


def _numbered_table(plan: Plan, heading: str, reasons: Mapping[str, str], complete: bool) -> str:
    """Return a table of reasons by identity, with the number of each configuration in the list of the plan."""
    row_numbers = _row_numbers(plan)
    rows = [(str(row_numbers[identity]), reason) for identity, reason in reasons.items()]
    shown = rows if complete else rows[:LONGEST_LIST]
    table = text_table(("#", heading), shown)
    return table if len(shown) == len(rows) else f"{table}\nplan with --all lists the {len(rows)} configurations."


def _time(entries: Sequence[Entry], run_seconds: Mapping[str, float]) -> str:
    """Return how long the runs take, as far as earlier ones tell."""
    timed = [entry.configuration for entry in entries if entry.configuration.identity in run_seconds]
    seconds = sum(run_seconds[configuration.identity] * configuration.repeats for configuration in timed)
    if len(timed) == len(entries):
        return f"All runs take about {duration(seconds)}, as long as earlier ones took here."
    if timed:
        return (
            f"The runs of {len(timed)} of the {counted(len(entries), 'configuration')} take about {duration(seconds)}, "
            "as long as earlier ones took here; how long the others take is unknown."
        )
    return _unknown_time([entry.configuration for entry in entries])


def _unknown_time(configurations: Sequence[Configuration]) -> str:
    """Return between which times runs take that nothing was measured of, and when it will be known."""
    least = sum(each.measured_seconds * each.repeats for each in configurations)
    most = sum(each.timeout_seconds * each.repeats for each in configurations)
    limits = {each.timeout_seconds for each in configurations}
    each_limit = f" of {duration(max(limits))} each" if len(limits) == 1 else ""
    bounds = f"at least {duration(least)} for their measured steps, " if least else ""
    bounds += f"at most {duration(most)} by their timeouts{each_limit}"
    return (
        f"How long the runs take is unknown, because none was measured here before: {bounds}. "
        "From its first run on, the study says how much time is left."
    )


def _further_runs(plan: Plan) -> str:
    """Return when the intervals are compared with the target precision."""
    budget = f", within {plan.time_budget_minutes:g} min" if plan.time_budget_minutes is not None else ""
    return (
        f"Measuring ends after {' or '.join(map(str, plan.rounds.looks))} rounds, as soon as all intervals are within "
        f"± {100 * (plan.precision or 0):g} %{budget}."
    )
