"""The waterfalls of a study: why its configurations are slower than ideal."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.metrics.comparison import rounds_of
from dlperf_study.metrics.pipeline_bubble import bubble_seconds
from dlperf_study.metrics.waterfall import StepSamples, Waterfall
from dlperf_study.report import context


@kept_with_dataset
def waterfalls(dataset: Dataset) -> Mapping[str, Waterfall]:
    """Return the waterfall of each configuration that is no baseline, by identity, in the order of the plan."""
    runs = context.completed_runs(dataset.whole or dataset)
    rounds = rounds_of(runs, dataset.plan)
    samples = StepSamples.of(runs, rounds, bubble_seconds(dataset.plan.entries, runs, rounds))
    rows, results = dataset.configuration_rows, {}
    for identity in dataset.configurations["identity"]:
        row = rows[identity]
        baseline = rows.get(row.baseline_identity)
        if row.is_baseline or baseline is None or not _work(baseline):
            continue
        if steps := samples.waterfall(identity, row.baseline_identity, _work(row) / _work(baseline)):
            results[identity] = steps
    return results


def _work(row: Any) -> float:
    """Return the samples of a device in a step."""
    return float(row.global_batch / row.world_size)
