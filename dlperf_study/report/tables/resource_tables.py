"""The tables of the page on resources: energy and clocks of devices, peaks of memory, and how each run was sampled."""

from dataclasses import replace

from dlperf_study.columns import memory as columns_on_memory
from dlperf_study.columns.resources import SAMPLED_PEAKS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.tables.cells import defined
from dlperf_study.report.tables.missing import ENERGY, SAMPLED_OF_GPUS, SEARCHED_COLUMNS
from dlperf_study.report.tables.rows import table_of_configurations, table_of_runs
from dlperf_study.report.tables.table import Table

PEAKS = tuple(column.name for column in (*columns_on_memory.PEAKS, *SAMPLED_PEAKS) if column.unit == "bytes")
_SAMPLES = (
    "telemetry_samples",
    "sampling_seconds",
    "energy_of",
    "energy_obstacle",
    "clock_limits",
    "foreign_processes",
)
_COUNTS = ("telemetry_samples", "sampling_seconds", "foreign_processes")
_NO_MEMORY = "Programs print no peak of memory that is counted here."
_NO_ENERGY = "No run has a reading of an energy counter."
_NO_SAMPLED_OF_GPUS = "No run on a GPU was sampled."


def energy(dataset: Dataset) -> Table:
    """Return what a sample and a second of training take, next to the throughput."""
    columns = [*context.known_columns(dataset.configurations, ENERGY), "throughput"]
    notes = tuple(map(defined, ENERGY))
    table = table_of_configurations(dataset, "energy", "Energy", columns, notes, context.measured(dataset))
    return table if len(columns) > 1 else replace(table, rows=(), groups=(), empty=_NO_ENERGY)


def memory(dataset: Dataset) -> Table:
    """Return the peak memory of each configuration, without the kinds that none counts, and the largest batches."""
    columns = context.known_columns(dataset.configurations, PEAKS)
    columns += SEARCHED_COLUMNS if dataset.plan.largest_batch else ()
    notes = tuple(map(defined, columns))
    table = table_of_configurations(dataset, "memory", "Memory", columns, notes)
    return table if columns else replace(table, rows=(), groups=(), empty=_NO_MEMORY)


def devices(dataset: Dataset) -> Table:
    """Return how busy, fast and hot the GPUs were."""
    columns = context.known_columns(dataset.configurations, SAMPLED_OF_GPUS)
    notes = tuple(map(defined, columns))
    table = table_of_configurations(dataset, "devices", "GPUs", columns, notes, context.measured(dataset))
    return table if columns else replace(table, rows=(), groups=(), empty=_NO_SAMPLED_OF_GPUS)


def telemetry(dataset: Dataset) -> Table:
    """Return how often each run was sampled, and why something is not reported."""
    runs = context.completed_runs(dataset)
    # What all runs have in common is in the sentences of the page.
    reported = context.known_columns(runs, _SAMPLES)
    columns = [name for name in reported if runs[name].nunique() > 1 or name in _COUNTS]
    sampled = runs if runs["telemetry_samples"].notna().any() else runs.iloc[:0]
    notes = tuple(map(defined, columns))
    return table_of_runs(dataset, "telemetry", "Samples of every run", columns, sampled, notes, _NO_ENERGY)
