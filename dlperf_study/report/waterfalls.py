"""The waterfalls of a study: why its configurations are slower than ideal."""

from collections.abc import Mapping

from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.metrics.comparison import rounds_of
from dlperf_study.metrics.waterfall import Waterfall, part_samples, waterfall
from dlperf_study.report import context
from dlperf_study.study.configuration import Configuration


@kept_with_dataset
def waterfalls(dataset: Dataset) -> Mapping[str, Waterfall]:
    """Return the waterfall of each configuration that is no baseline, by identity, in the order of the plan."""
    runs = context.completed_runs(dataset.whole or dataset)
    parts = part_samples(runs, rounds_of(runs, dataset.plan))
    entries, results = dataset.plan.by_identity, {}
    for identity in dataset.configurations["identity"]:
        entry = entries[identity]
        if entry.is_baseline or entry.baseline_identity not in entries:
            continue
        work = _work(entry.configuration) / _work(entries[entry.baseline_identity].configuration)
        if steps := waterfall(parts, identity, entry.baseline_identity, work):
            results[identity] = steps
    return results


def _work(configuration: Configuration) -> float:
    """Return the samples of a device in a step."""
    return configuration.global_batch / configuration.world_size
