"""How precise a study became, next to what it asks for, and which configurations ended measuring by that."""

from dlperf_study.dataset.configuration_table import ended_measuring, throughputs_of
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.dataset.wanted_precision import Precision, too_wide, widest


@kept_with_dataset
def reached_precisions(dataset: Dataset) -> tuple[Precision, ...]:
    """Return the widest interval of each measured configuration; none where the study asks for no precision."""
    plan = dataset.plan
    if plan.precision is None:
        return ()
    selected = set(dataset.configurations["identity"])
    entries = [entry for entry in plan.runnable if entry.configuration.identity in selected]
    return tuple(precision for entry in entries if (precision := widest(entry, dataset.throughputs)))


@kept_with_dataset
def missed_precisions(dataset: Dataset) -> tuple[Precision, ...]:
    """Return those of them that are wider than the study asks for."""
    wanted = dataset.plan.precision or 0.0
    return tuple(precision for precision in reached_precisions(dataset) if precision.is_wider_than(wanted))


@kept_with_dataset
def missed_after_all(dataset: Dataset) -> int:
    """Return how many configurations miss it although no run is added to them: its first half was precise enough."""
    runs, plan = (dataset.whole or dataset).runs, dataset.plan
    throughputs = throughputs_of(runs, plan)
    unfinished, wanted = too_wide(plan, throughputs), plan.precision or 0.0
    ended = [entry for entry in plan.runnable if entry.configuration.identity not in unfinished]
    return sum(precision.is_wider_than(wanted) for entry in ended if (precision := widest(entry, throughputs)))


@kept_with_dataset
def ended_configurations(dataset: Dataset) -> frozenset[str]:
    """Return the identities of which the throughput, or a ratio of it, became precise enough to end measuring."""
    runs, plan = (dataset.whole or dataset).runs, dataset.plan
    return frozenset(ended_measuring(plan, throughputs_of(runs, plan)))
