"""A plan as text, for the command line."""

from dlperf_study.plan.plan import Entry, Plan
from dlperf_study.study.grid import DENOMINATORS, Denominator
from dlperf_study.terminal import text_table

#: What there is none of without the partner.
RATIOS: dict[Denominator, str] = {"baseline": "speedup", "reference": "comparison"}


def describe(plan: Plan) -> str:
    """Return the plan as text: what will run and against what, then what can't run here and why."""
    parts = [_summary(plan)]
    if plan.runnable:
        parts.append(text_table(("#", *plan.factors, ""), [_row(plan, entry) for entry in plan.runnable]))
    if plan.unsupported:
        rows = [(*_levels(plan, entry), str(entry.unsupported)) for entry in plan.unsupported]
        parts.append("Can't run here:\n" + text_table((*plan.factors, "reason"), rows))
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
    """Return what an entry is to others, and which of its own partners can't run here."""
    runnable = {other.configuration.identity for other in plan.runnable}
    return "; ".join(filter(None, (_mark_of(entry, role, runnable) for role in DENOMINATORS)))


def _mark_of(entry: Entry, role: Denominator, runnable: set[str]) -> str:
    partner = entry.denominator(role)
    if partner == entry.configuration.identity:
        return role
    return "" if partner is None or partner in runnable else f"no {RATIOS[role]}: its {role} can't run here"


def _levels(plan: Plan, entry: Entry) -> tuple[str, ...]:
    return tuple(str(getattr(entry.configuration, name)) for name in plan.factors)
