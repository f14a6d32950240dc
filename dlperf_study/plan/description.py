"""The plan of a study as text for the command line: what runs, against what, for how long, and what can't run."""

from collections.abc import Mapping, Sequence

from dlperf_study.plan.plan import Entry, Plan
from dlperf_study.study.configuration import GLOBAL_BATCH
from dlperf_study.study.grid import DENOMINATORS, Denominator
from dlperf_study.terminal import text_table
from dlperf_study.wording import counted, duration, level

#: What a configuration has no value of where its baseline or reference can't run.
_COMPARED: dict[Denominator, str] = {"baseline": "speedup", "reference": "comparison"}


def describe(plan: Plan, run_seconds: Mapping[str, float]) -> str:
    """Return the plan as text.

    ``run_seconds``: the mean seconds of an earlier run here, by the identity of its configuration.
    """
    runs = sum(entry.configuration.repeats for entry in plan.runnable)
    parts = [
        f"{plan.title}\n"
        f"Study {plan.study} on cluster {plan.cluster}, {plan.scaling} scaling: "
        f"{len(plan.runnable)} of {len(plan.entries)} configurations can run here, in {runs} runs."
    ]
    if plan.why_not_gpu:
        parts.append(f"Note: {plan.why_not_gpu}.")
    if plan.runnable:
        parts[0] += f"\n{_time(plan.runnable, run_seconds)}"
        if plan.precision is not None:
            parts[0] += f"\n{_further_runs(plan)}"
        parts.append(_table(plan))
    if plan.unsupported:
        rows = [(*_levels(plan, entry), str(entry.unsupported)) for entry in plan.unsupported]
        parts.append("Can't run here:\n" + text_table((*plan.factors, "reason"), rows))
    return "\n\n".join(parts)


def _table(plan: Plan) -> str:
    """Return a row for each configuration that can run: its levels, its global batch, and what it is compared with."""
    kinds = [kind for kind in DENOMINATORS if any(entry.denominator(kind) for entry in plan.entries)]
    rows = []
    for position, entry in enumerate(plan.entries, start=1):
        if entry.unsupported is None:
            denominators = [_denominator(plan, entry, kind) for kind in kinds]
            rows.append((str(position), *_levels(plan, entry), str(entry.configuration.global_batch), *denominators))
    return text_table(("#", *plan.factors, GLOBAL_BATCH.name, *kinds), rows)


def _levels(plan: Plan, entry: Entry) -> tuple[str, ...]:
    return tuple(level(getattr(entry.configuration, name)) for name in plan.factors)


def _denominator(plan: Plan, entry: Entry, kind: Denominator) -> str:
    """Return the row of a baseline or reference, or that it can't run."""
    identity = entry.denominator(kind)
    if identity == entry.configuration.identity:
        return "itself"
    for position, candidate in enumerate(plan.entries, start=1):
        if candidate.configuration.identity == identity and candidate.unsupported is None:
            return f"#{position}"
    return f"can't run here: no {_COMPARED[kind]}"


def _time(entries: Sequence[Entry], run_seconds: Mapping[str, float]) -> str:
    """Return how long the runs take, as far as earlier ones tell."""
    known = [entry.configuration for entry in entries if entry.configuration.identity in run_seconds]
    seconds = sum(run_seconds[configuration.identity] * configuration.repeats for configuration in known)
    if len(known) == len(entries):
        return f"All runs take about {duration(seconds)}, as long as earlier ones took here."
    if known:
        return (
            f"The runs of {len(known)} of the {counted(len(entries), 'configuration')} take about {duration(seconds)}, "
            "as long as earlier ones took here; how long the others take is unknown."
        )
    limits = [entry.configuration.timeout_seconds * entry.configuration.repeats for entry in entries]
    return (
        "How long the runs take is unknown, because none was measured here before; "
        f"with their timeouts, at most {duration(sum(limits))}."
    )


def _further_runs(plan: Plan) -> str:
    """Return what the precision may add."""
    budget = f", within {plan.time_budget_minutes:g} min" if plan.time_budget_minutes is not None else ""
    return (
        f"Rounds are added for intervals wider than ± {100 * (plan.precision or 0):g} %, "
        f"up to {plan.max_repeats} in all{budget}."
    )
