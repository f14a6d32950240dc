"""The tables of the pages on communication, quality and resources: transfers, runs, and what they took."""

from collections import defaultdict
from collections.abc import Sequence

import pandas as pd

from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.collectives import COLLECTIVE_COLUMNS, GROUP_COLUMNS
from dlperf_study.metrics.columns import COLUMNS, Source, Summary, names_from, summarised
from dlperf_study.metrics.drift import round_effects
from dlperf_study.metrics.network import NETWORK_COLUMNS
from dlperf_study.metrics.pipeline_bubble import BUBBLE_COLUMNS
from dlperf_study.metrics.run_status import select_counted
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.report import context, formatting
from dlperf_study.report.say import caption
from dlperf_study.report.tables.missing import explain_missing
from dlperf_study.report.tables.table import Cell, Heading, Table, make_table
from dlperf_study.report.tables.table_builders import defined, table_of_configurations, table_of_runs
from dlperf_study.study.communication import COLLECTIVES, NO_COMMUNICATION
from dlperf_study.study.configuration import PARAMETERS

NCCL_COLUMNS = names_from(Source.NCCL_REPORT)
#: Throughputs that are closer are one number for a reader.
_SAME_THROUGHPUT = 0.005
#: What is known of an ingested run: its throughputs, and about them.
PRINTED_THROUGHPUTS = ("throughput", "mean_step_throughput", "wall_throughput")
#: What is known only of logs that DLPerf has an extractor for.
OF_FIXED_WINDOW = (
    *("fixed_window_throughput", "fixed_window_clock_throughput", "fixed_window_mean_step_throughput", "fixed_window"),
)
PRINTED = ("printed_lines", "steady_lines", "settled_at_step", "steadiness", "behaviour")
LIMITED = ("used_cores", "throttled_share")
STEP_PERCENTILES = ("step_p50_seconds", "step_p95_seconds", "step_p99_seconds")
ENERGY = ("energy_per_sample", "mean_power")
SAMPLED_OF_GPUS = ("gpu_utilisation", "sm_clock", "memory_clock", "gpu_temperature", "clock_limited_share")
SEARCHED_COLUMNS = names_from(Source.BATCH_SEARCH)
_COUNTS = ("telemetry_samples", "sampling_seconds", "other_processes")
_SAMPLES = (*_COUNTS[:2], "energy_of", "energy_obstacle", "clock_limits", _COUNTS[2])


def communication(dataset: Dataset) -> Table:
    """Return the parts of a step and the overlap of its communication."""
    columns = (
        *("broken_down_step_seconds", "compute_seconds"),
        *(("input_seconds",) if context.waits_for_batches(dataset) else ()),
        *("exposed_communication_seconds", "exposed_communication_share"),
        *context.known_columns(dataset.configurations, ("jitter_seconds",)),
        "overlap",
    )
    further = filter(None, (context.longer_than_alone(dataset), *computation_notes(dataset)))
    return table_of_configurations(dataset, "communication", columns, (*map(defined, columns[1:]), *further))


def data_loaders(dataset: Dataset) -> Table:
    """Return each data loader's own throughput and the wait for it."""
    columns = ("input_throughput", "throughput", "broken_down_step_seconds", "input_seconds", "input_share")
    definitions = map(defined, ("input_throughput", "input_seconds", "input_share"))
    notes = (*definitions, caption("data_loaders", "input_throughput"), *context.breakdown_notes(dataset))
    rows = dataset.configurations.dropna(subset="input_throughput")
    return table_of_configurations(dataset, "data_loaders", columns, notes, rows)


def communication_alone(dataset: Dataset) -> Table:
    """Return the cost of communication alone, and asynchronous trainers' throughputs."""
    columns = [
        "gradient_bytes",
        "communication_seconds",
        "bus_bandwidth",
        "communication_latency_seconds",
        "communication_bandwidth",
    ]
    configurations = dataset.configurations
    excess = configurations["sum_of_rank_throughputs"] / configurations["throughput"] - 1
    # Only the throughputs of asynchronous trainers add up to another number than the throughput.
    if (excess.abs() > _SAME_THROUGHPUT).any():
        columns += ["throughput", "sum_of_rank_throughputs"]
    rows = configurations[~_has_any(configurations, COLLECTIVE_COLUMNS)]
    if not set(dataset.completed_runs["communication"]) - {NO_COMMUNICATION, COLLECTIVES}:
        rows = rows.iloc[:0]
    notes = (*map(defined, columns), *context.breakdown_notes(dataset))
    return table_of_configurations(dataset, "communication_alone", columns, notes, rows)


def pipeline(dataset: Dataset) -> Table:
    """Return the pipeline bubble, measured and by formula."""
    notes = (*map(defined, BUBBLE_COLUMNS), caption("pipeline", "stages"))
    rows = dataset.configurations.dropna(subset="even_bubble_share")
    return table_of_configurations(dataset, "pipeline", ("step_seconds", *BUBBLE_COLUMNS), notes, rows)


def collectives(dataset: Dataset) -> Table:
    """Return size and time of each collective alone, by kind and group."""
    configurations = dataset.configurations
    rows = configurations[_has_any(configurations, COLLECTIVE_COLUMNS)]
    columns = ["communication_seconds", *context.known_columns(rows, COLLECTIVE_COLUMNS)]
    of_groups = context.known_columns(rows, GROUP_COLUMNS)
    sizes = rows[of_groups].filter(regex="_bytes$")
    if (sizes.notna().sum(axis="columns") > 1).any():
        columns += of_groups
    notes = (*map(defined, columns), *context.breakdown_notes(dataset))
    return table_of_configurations(dataset, "collectives", columns, notes, rows)


def _has_any(rows: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """Return which rows have a value in one of these columns."""
    return rows[list(names)].notna().any(axis="columns")


def nccl(dataset: Dataset) -> Table:
    """Return how NCCL connects the GPUs, beside the stated link."""
    rows = dataset.configurations[_has_any(dataset.configurations, NCCL_COLUMNS)]
    columns = context.known_columns(rows, NCCL_COLUMNS)
    link = caption("nccl", "interconnect", link=context.list_values(dataset.completed_runs["interconnect"]))
    notes = (link, *map(defined, columns), caption("nccl", "run"))
    return table_of_configurations(dataset, "nccl", columns, notes, rows)


def computation_notes(dataset: Dataset) -> tuple[str, ...]:
    """Return the notes below a table of computation times."""
    return tuple(filter(None, (context.computation_note(dataset), *context.breakdown_notes(dataset))))


def step_times(dataset: Dataset) -> Table:
    """Return mean and percentiles of the step time of each configuration."""
    rows = dataset.measured
    columns = ("step_seconds", *context.known_columns(rows, STEP_PERCENTILES))
    # Columns without a value are left out: a note says why.
    names_by_reason = defaultdict[str, list[str]](list)
    for row in rows.head(1).itertuples():
        for name in filter(lambda name: name not in columns, STEP_PERCENTILES):
            names_by_reason[explain_missing(dataset, row, name)].append(COLUMNS[name].label)
    notes = list(map(defined, columns))
    for reason, names in names_by_reason.items():
        notes.append(f"Without {formatting.listed(names)}: {reason}.")
    if dataset.plan.ingested_from:
        rows = rows.iloc[:0]
    return table_of_configurations(dataset, "step-times", columns, notes, rows)


def stability(dataset: Dataset) -> Table:
    """Return each run's steadiness and background load, or its printed throughputs."""
    runs = dataset.runs
    if dataset.plan.ingested_from:
        sources = [name for name in ("log_format", "printed_throughput") if runs[name].nunique() > 1]
        throughputs = context.known_throughputs(runs, PRINTED_THROUGHPUTS)
        columns = (*sources, *throughputs, *context.known_columns(runs, OF_FIXED_WINDOW), *PRINTED)
        return table_of_runs(dataset, "stability", columns, runs, (*map(defined, columns), context.merging(dataset)))
    further = ["step_variation", "warmup_slowdown", *context.known_columns(runs, ("steadiness",))]
    further += ["load_balance", "drain_seconds"]
    if runs[list(LIMITED)].notna().any(axis=None):
        further += LIMITED
    # The precision of a user's program is unknown, unless its study states it.
    if (runs["precision"].dropna() != PARAMETERS["precision"].default).any():
        further.append("computed_in")
    further += context.known_columns(runs, ("loss_scale", "skipped_steps", "compile_seconds"))
    columns = ("status", *further, "background_cores", "disturbed", "waited_seconds", "run_seconds")
    return table_of_runs(dataset, "stability", columns, runs, (*map(defined, further), *computation_notes(dataset)))


def rounds(dataset: Dataset) -> Table:
    """Return the deviation of each round from the mean of all."""
    effects = round_effects(select_counted(dataset.runs), dataset.throughput_column)
    no_interval = caption("rounds", "no_interval", needed=MINIMUM_RUNS)
    rows = []
    for effect in effects:
        change = Cell.of(effect.percent_change, no_interval, decision=0.0)
        rows.append((str(effect.round), f"{effect.begun:%Y-%m-%d %H:%M}", change))
    in_file = page_caption = ""
    if effects:
        configurations = counted(effects[0].configurations, "configuration")
        page_caption = caption("rounds", configurations=configurations, on_page=True)
        in_file = caption("rounds", configurations=configurations, on_page=False) + context.quick_label(dataset)
    change_heading = Heading.number("Change of throughput", "%", interval=True)
    headings = (COLUMNS["round"].label, "Begun (UTC)", change_heading)
    return make_table("rounds", headings, rows, in_file, page_caption=page_caption)


def energy(dataset: Dataset) -> Table:
    """Return the energy per sample and power, next to the throughput."""
    columns, rows = [*context.known_columns(dataset.configurations, ENERGY), "throughput"], dataset.measured
    if columns == ["throughput"]:
        rows = rows.iloc[:0]
    return table_of_configurations(dataset, "energy", columns, map(defined, ENERGY), rows)


def memory(dataset: Dataset) -> Table:
    """Return the peak memory of each configuration, and the largest batches."""
    peaks = [name for name, metric in summarised(Summary.LARGEST).items() if metric.unit == "bytes"]
    columns = context.known_columns(dataset.configurations, peaks)
    has_parts = any(entry.configuration.micro_batches > 1 for entry in dataset.plan.entries)
    if dataset.plan.largest_batch:
        columns += [name for name in SEARCHED_COLUMNS if has_parts or name != "largest_micro_batch"]
    return table_of_configurations(dataset, "memory", columns)


def devices(dataset: Dataset) -> Table:
    """Return how busy, fast and hot the GPUs were."""
    columns = context.known_columns(dataset.configurations, SAMPLED_OF_GPUS)
    return table_of_configurations(dataset, "devices", columns, selected=dataset.measured)


def network(dataset: Dataset) -> Table:
    """Return the network traffic before and during each configuration's runs."""
    rows = dataset.configurations
    columns = context.known_columns(rows, NETWORK_COLUMNS)
    return table_of_configurations(dataset, "network", columns, None, rows[_has_any(rows, NETWORK_COLUMNS)])


def telemetry(dataset: Dataset) -> Table:
    """Return how often each run was sampled, and what is missing."""
    runs = dataset.completed_runs
    # What all runs have in common is in the sentences of the page.
    reported = context.known_columns(runs, _SAMPLES)
    columns = [name for name in reported if runs[name].nunique() > 1 or name in _COUNTS]
    if runs["telemetry_samples"].isna().all():
        runs = runs.iloc[:0]
    return table_of_runs(dataset, "telemetry", columns, runs, map(defined, columns))
