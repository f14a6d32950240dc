"""A plan as text, for the command line. Standard library only."""

from collections.abc import Sequence

from dlperf_study.study.plan import Entry, Plan


def describe(plan: Plan) -> str:
    """Return the plan as text: what will run and against which baseline, then what can't run here and why."""
    parts = [_summary(plan)]
    if plan.runnable:
        parts.append(_table(("#", *plan.factors, ""), [_row(plan, entry) for entry in plan.runnable]))
    if plan.unsupported:
        rows = [(*_levels(plan, entry), str(entry.unsupported)) for entry in plan.unsupported]
        parts.append("Can't run here:\n" + _table((*plan.factors, "reason"), rows))
    return "\n\n".join(parts)


def _summary(plan: Plan) -> str:
    runs = sum(entry.configuration.repeats for entry in plan.runnable)
    return (
        f"{plan.title}\n"
        f"Study {plan.study} on cluster {plan.cluster}, {plan.scaling} scaling: "
        f"{len(plan.runnable)} of {len(plan.entries)} configurations can run here, in {runs} runs."
    )


def _row(plan: Plan, entry: Entry) -> tuple[str, ...]:
    return (str(plan.entries.index(entry) + 1), *_levels(plan, entry), _mark(plan, entry))


def _mark(plan: Plan, entry: Entry) -> str:
    if entry.is_baseline:
        return "baseline"
    runnable = {other.configuration.identity for other in plan.runnable}
    return "" if entry.baseline_identity in runnable else "no speedup: its baseline can't run here"


def _levels(plan: Plan, entry: Entry) -> tuple[str, ...]:
    return tuple(str(getattr(entry.configuration, name)) for name in plan.factors)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under a head, in columns as wide as their widest cell."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)
