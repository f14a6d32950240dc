"""The plan of a study as text for the command line: what runs, against what, for how long, and what can't run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from types import MappingProxyType

from dlperf_study.core import terminal, wording
from dlperf_study.study import batch_search, grid
from dlperf_study.study.configuration import GLOBAL_BATCH, PARAMETERS
from dlperf_study.study.job import SEQUENTIAL
from dlperf_study.study.plan import Entry, Plan, varying

#: A longer list is shortened to so many of its first and of its last rows.
LONGEST_LIST, ENDS = 200, 10
#: Of more configurations that can't run, most for the same reasons, these are counted.
MOST_UNSUPPORTED = 12
NO_SEARCH: Mapping[str, batch_search.BatchSearch] = MappingProxyType({})
#: Whose devices train: a study made for GPUs may be planned where there are none.
_DEVICES = {"cpu": "the CPUs of ", "gpu": "the GPUs of "}
NOTHING_UNMEASURED: Mapping[str, int] = MappingProxyType({})
#: What a configuration has no value of where its baseline or reference can't run.
_COMPARED: dict[grid.Denominator, str] = {"baseline": "speedup", "reference": "comparison"}


@dataclass(frozen=True)
class EarlierRuns:
    """What earlier runs show of a plan, by identity.

    ``run_seconds``: the mean seconds of a run here. ``done``: how many of the planned runs are completed.
    ``not_fitting``: why a configuration does not fit in memory. ``not_counted``: which runs of the study do not count
    for this plan, and why, a sentence each.
    """

    run_seconds: Mapping[str, float] = field(default_factory=dict)
    done: Mapping[str, int] = field(default_factory=dict)
    not_fitting: Mapping[str, str] = field(default_factory=dict)
    not_counted: Sequence[str] = ()

    def select_fitting(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the entries that are not known to exceed the memory."""
        return [entry for entry in entries if entry.configuration_id not in self.not_fitting]


NO_EARLIER_RUNS = EarlierRuns()


def describe(
    plan: Plan,
    earlier_runs: EarlierRuns = NO_EARLIER_RUNS,
    searches: Mapping[str, batch_search.BatchSearch] = NO_SEARCH,
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
        parts[0] += f"\nNot counted above: {names} runs, which give no numbers."
    parts.extend(f"Note: {sentence}." for sentence in (*plan.notes, *earlier_runs.not_counted))
    if plan.runnable:
        parts.append(_runnable(plan, earlier_runs, complete))
    if earlier_runs.not_fitting:
        table = _numbered_table(plan, "reason", earlier_runs.not_fitting, complete)
        parts.append(f"Out of memory, not run again:\n{table}")
    if searches:
        bounds_by_identity = {configuration_id: bounds.description for configuration_id, bounds in searches.items()}
        table = _numbered_table(plan, "batch", bounds_by_identity, complete)
        parts.append(f"Largest batch per device, up to {plan.largest_batch}:\n{table}")
    if plan.unsupported:
        parts.append(f"Not supported here:\n{_unsupported(plan, complete)}")
    return "\n\n".join(parts)


def describe_reuse(plan: Plan, earlier_runs: EarlierRuns) -> str:
    """Return how many runs a study has, and how long the rest take."""
    fitting = earlier_runs.select_fitting(plan.runnable)
    planned = sum(entry.configuration.repetitions for entry in fitting)
    count = sum(earlier_runs.done.values())
    if count == planned:
        return f"Done: all of {wording.counted(planned, 'run')}."
    sentence = f"Done: {count} of {wording.counted(planned, 'run')}. To do: {wording.counted(planned - count, 'run')}"
    if not earlier_runs.run_seconds:
        return f"{sentence}."
    # A configuration without a run is taken to last as long as the others.
    mean = fmean(earlier_runs.run_seconds.values())
    seconds = 0.0
    for entry in fitting:
        configuration_id = entry.configuration.configuration_id
        runs_left = entry.configuration.repetitions - earlier_runs.done.get(configuration_id, 0)
        seconds += runs_left * earlier_runs.run_seconds.get(configuration_id, mean)
    return f"{sentence}, about {wording.duration(seconds)} by the finished runs."


def _head(plan: Plan, earlier_runs: EarlierRuns) -> str:
    runnable = plan.runnable
    fitting = earlier_runs.select_fitting(runnable)
    runs = sum(entry.configuration.repetitions for entry in fitting)
    lines = [
        plan.title,
        f"Study {plan.study} on {_DEVICES.get(plan.device, '')}cluster {plan.cluster}, {plan.scaling} scaling: "
        f"{len(runnable)} of {len(plan.entries)} configurations can run here, in {wording.counted(runs, 'run')}.",
    ]
    if unpublished := sum(entry.is_unpublished for entry in plan.entries):
        of_source = len(plan.entries) - unpublished
        lines.append(f"{of_source} of the {len(plan.entries)} are in the published tables, {unpublished} are not.")
    if fitting:
        is_begun = any(earlier_runs.done.values())
        lines.append(describe_reuse(plan, earlier_runs) if is_begun else _time(fitting, earlier_runs.run_seconds))
        if plan.target_ci is not None:
            looks = " or ".join(map(str, plan.rounds.looks))
            target = f"as soon as all CIs are within ± {100 * plan.target_ci:g} %"
            if plan.time_budget_minutes is not None:
                target += f"; time budget {plan.time_budget_minutes:g} min"
            lines.append(f"Measuring ends after {looks} rounds, {target}.")
        if plan.order == SEQUENTIAL:
            lines.append("Runs are measured in sequential order: ratios get no CI and no test.")
    return "\n".join(lines)


def _runnable(plan: Plan, earlier_runs: EarlierRuns, complete: bool) -> str:
    """Return a row for each configuration that can run.

    A factor that has one value in all of them is named once, below. Where any of the runs is done, a row says how many
    of its own are.
    """
    kinds = [kind for kind in grid.DENOMINATORS if plan.declares(kind)]
    entries, row_numbers = plan.runnable, _row_numbers(plan)
    factors = varying(entries, plan.factors) or plan.factors
    headings = ["#", *factors, GLOBAL_BATCH.name, *kinds]
    is_whole = complete or len(entries) <= LONGEST_LIST
    listed = entries if is_whole else (*entries[:ENDS], *entries[-ENDS:])
    is_begun = any(earlier_runs.done.values())
    if is_begun:
        headings.append("done")
    rows = []
    for entry in listed:
        configuration_id, repetitions = entry.configuration.configuration_id, entry.configuration.repetitions
        global_batch = str(entry.configuration.global_batch or "–")
        denominators = [_denominator(entry, kind, row_numbers) for kind in kinds]
        row = [str(row_numbers[configuration_id]), *_values(entry, factors), global_batch, *denominators]
        if is_begun:
            fits = configuration_id not in earlier_runs.not_fitting
            row.append(f"{earlier_runs.done.get(configuration_id, 0)} of {repetitions}" if fits else "")
        rows.append(row)
    notes = []
    if common := [name for name in plan.factors if name not in factors]:
        values = map(" ".join, zip(common, _values(entries[0], common), strict=True))
        notes.append(f"The same in all: {', '.join(values)}.")
    if not is_whole:
        rows.insert(ENDS, ["…"] * len(headings))
        notes.append(f"{len(entries) - 2 * ENDS} configurations are not listed; `plan --all` lists them.")
        for kind in kinds:
            if count := sum(entry.denominator(kind) not in row_numbers for entry in entries):
                configurations = wording.counted(count, "configuration")
                notes.append(f"{configurations}: no {_COMPARED[kind]}, because the {kind} is not supported here.")
    return "\n".join([terminal.text_table(headings, rows), *notes])


def _row_numbers(plan: Plan) -> dict[str | None, int]:
    """Return the place of each runnable configuration, by identity."""
    row_numbers: dict[str | None, int] = {}
    for row_number, entry in enumerate(plan.entries, start=1):
        if entry.unsupported is None:
            row_numbers[entry.configuration.configuration_id] = row_number
    return row_numbers


def _values(entry: Entry, factors: Sequence[str]) -> tuple[str, ...]:
    values = []
    for name in factors:
        value, parameter = entry.configuration.parameter_value(name), PARAMETERS.get(name)
        if parameter and parameter.is_named_default(value):
            values.append(parameter.default_name)
        else:
            values.append(wording.value_text(value))
    return tuple(values)


def _denominator(entry: Entry, kind: grid.Denominator, row_numbers: Mapping[str | None, int]) -> str:
    """Return the number of a baseline or reference."""
    configuration_id = entry.denominator(kind)
    if configuration_id == entry.configuration.configuration_id:
        return "itself"
    if configuration_id in row_numbers:
        return f"#{row_numbers[configuration_id]}"
    return f"no {_COMPARED[kind]} ({kind} not supported here)"


def _unsupported(plan: Plan, complete: bool) -> str:
    """Return a row for each unsupported configuration, or each reason."""
    entries = plan.unsupported
    if complete or len(entries) <= MOST_UNSUPPORTED:
        rows = [(*_values(entry, plan.factors), str(entry.unsupported)) for entry in entries]
        return terminal.text_table((*plan.factors, "reason"), rows)
    counts = Counter(reason for entry in entries for reason in wording.single_reasons(str(entry.unsupported)))
    listed = counts.most_common(2 * ENDS)
    rows = [(str(count), reason) for reason, count in listed]
    if len(counts) > len(listed):
        rows.append(("…", f"{len(counts) - len(listed)} other reasons"))
    several = "; some have several reasons" if counts.total() > len(entries) else ""
    table = terminal.text_table(("configurations", "reason"), rows)
    return f"{table}\n`plan --all` lists the {len(entries)} configurations{several}."


def _numbered_table(plan: Plan, heading: str, reasons: Mapping[str, str], complete: bool) -> str:
    row_numbers = _row_numbers(plan)
    rows = [(str(row_numbers[configuration_id]), reason) for configuration_id, reason in reasons.items()]
    if complete or len(rows) <= LONGEST_LIST:
        return terminal.text_table(("#", heading), rows)
    table = terminal.text_table(("#", heading), rows[:LONGEST_LIST])
    return f"{table}\n`plan --all` lists the {len(rows)} configurations."


def _time(entries: Sequence[Entry], run_seconds: Mapping[str, float]) -> str:
    """Return how long the runs take, as far as earlier ones tell."""
    timed = [entry.configuration for entry in entries if entry.configuration.configuration_id in run_seconds]
    seconds = sum(run_seconds[configuration.configuration_id] * configuration.repetitions for configuration in timed)
    if len(timed) == len(entries):
        return f"Duration: about {wording.duration(seconds)}, by earlier runs here."
    if timed:
        number = wording.counted(len(entries), "configuration")
        return (
            f"Duration: about {wording.duration(seconds)} for {len(timed)} of {number}, by earlier runs here; "
            "unknown for the others."
        )
    configurations = [entry.configuration for entry in entries]
    least = sum(each.measured_seconds * each.repetitions for each in configurations)
    most = sum(each.timeout_seconds * each.repetitions for each in configurations)
    limits = {each.timeout_seconds for each in configurations}
    bounds = ""
    if least:
        bounds = f"at least {wording.duration(least)} for their measured steps, "
    bounds += f"at most {wording.duration(most)} by their timeouts"
    if len(limits) == 1:
        bounds += f" of {wording.duration(max(limits))} each"
    return (
        f"Duration: unknown, because no run was measured here before; {bounds}. "
        "The time left is printed after the first run."
    )
