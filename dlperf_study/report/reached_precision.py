"""How precise a study became, next to its target."""

from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.dataset.target_precision import Precision, widest


@kept_with_dataset
def reached_precisions(dataset: Dataset) -> tuple[Precision, ...]:
    """Return the widest interval of each measured configuration; none where the study has no target precision."""
    plan = dataset.plan
    if plan.precision is None:
        return ()
    selected = set(dataset.configurations["identity"])
    entries = [entry for entry in plan.runnable if entry.configuration.identity in selected]
    return tuple(precision for entry in entries if (precision := widest(entry, dataset.throughputs)))


@kept_with_dataset
def missed_precisions(dataset: Dataset) -> tuple[Precision, ...]:
    """Return those of them that are wider than the target."""
    wanted = dataset.plan.precision or 0.0
    return tuple(precision for precision in reached_precisions(dataset) if precision.is_wider_than(wanted))
