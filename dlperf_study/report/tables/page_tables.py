"""The tables of the pages on communication, quality and resources: exchanges, runs, and what they took."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import pandas as pd

from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.collectives import COLLECTIVE_COLUMNS, GROUP_COLUMNS
from dlperf_study.metrics.columns import COLUMNS, Source, Summary, names_from, summarised
from dlperf_study.metrics.drift import round_effects
from dlperf_study.metrics.network import NETWORK_COLUMNS
from dlperf_study.metrics.outcome import select_counted
from dlperf_study.metrics.pipeline_bubble import BUBBLE_COLUMNS
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.report import context, formatting
from dlperf_study.report.tables.missing import explain_missing
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.report.tables.table_builders import defined, table_of_configurations, table_of_runs
from dlperf_study.study.configuration import PARAMETERS
from dlperf_study.study.exchange import COLLECTIVES, NO_EXCHANGE

NCCL_COLUMNS = names_from(Source.NCCL_REPORT)
_INPUT_RATE = (
    "All ranks take batches at once and nothing trains, so that the data source has the cores to itself. Where the "
    "throughput reaches that rate, the data source limits the training."
)
_NO_INPUT_RATE = "No data source of this study makes a step wait, or input_steps is 0."
_NO_NCCL = "No ranks exchanged with NCCL: only several GPUs do."
_FROM_ONE_RUN = "NCCL wrote it in a short run of each configuration before the others, of which nothing else is used."
#: Rates that are closer are one number for a reader.
_SAME_RATE = 0.005
_NO_EXCHANGE = "No configuration exchanges gradients."
_NO_PIPELINE = "No configuration divides its layers among the devices of a pipeline."
_OF_EVEN_STAGES = (
    "Stages that take longer than others, the exchange of gradients and the update of the parameters make the measured "
    "bubble larger than that of even stages, and so do processes that share cores."
)
_NO_COLLECTIVES = "No step has collectives of several kinds or groups."


def communication(dataset: Dataset) -> Table:
    """Return the parts of a step and the overlap of its communication."""
    columns = (
        *("broken_down_step_seconds", "computation_seconds"),
        *(("input_seconds",) if context.waits_for_batches(dataset) else ()),
        *("exposed_seconds", "exposed_share"),
        *context.known_columns(dataset.configurations, ("jitter_seconds",)),
        "overlap",
    )
    further = filter(None, (context.longer_than_alone(dataset), *computation_notes(dataset)))
    notes = (*map(defined, columns[1:]), *further)
    return table_of_configurations(dataset, "communication", "Computation and communication", columns, notes)


def data_sources(dataset: Dataset) -> Table:
    """Return each data loader's own throughput and the wait for it."""
    columns = ("input_rate", "throughput", "broken_down_step_seconds", "input_seconds", "input_share")
    rows = dataset.configurations
    rows = rows[rows["input_rate"].notna()]
    notes = (
        *map(defined, ("input_rate", "input_seconds", "input_share")),
        _INPUT_RATE,
        *context.breakdown_notes(dataset),
    )
    return table_of_configurations(
        dataset, "data_sources", "The data source alone", columns, notes, rows, _NO_INPUT_RATE
    )


def exchange(dataset: Dataset) -> Table:
    """Return the cost of the communication alone, and asynchronous trainers' throughputs."""
    columns = ["gradient_bytes", "exchange_seconds", "bus_bandwidth", "exchange_latency_seconds", "exchange_bandwidth"]
    configurations = dataset.configurations
    excess = configurations["sum_of_rank_rates"] / configurations["throughput"] - 1
    # Only the rates of asynchronous trainers add up to another number than the throughput.
    if (excess.abs() > _SAME_RATE).any():
        columns += ["throughput", "sum_of_rank_rates"]
    rows = _by_exchange(dataset, of_kinds=False)
    notes = (*map(defined, columns), *context.breakdown_notes(dataset))
    has_exchange = set(dataset.completed_runs["exchange"]) - {NO_EXCHANGE, COLLECTIVES}
    selected = rows
    if not has_exchange:
        selected = rows.iloc[:0]
    return table_of_configurations(dataset, "exchange", "The exchange alone", columns, notes, selected, _NO_EXCHANGE)


def pipeline(dataset: Dataset) -> Table:
    """Return the pipeline bubble, measured and by formula."""
    columns = ("step_seconds", *BUBBLE_COLUMNS)
    rows = dataset.configurations
    notes = (*map(defined, BUBBLE_COLUMNS), _OF_EVEN_STAGES)
    selected = rows[rows["even_bubble_share"].notna()]
    return table_of_configurations(dataset, "pipeline", "The pipeline bubble", columns, notes, selected, _NO_PIPELINE)


def collectives(dataset: Dataset) -> Table:
    """Return size and time of each collective alone, by kind and group."""
    rows = _by_exchange(dataset, of_kinds=True)
    of_groups = context.known_columns(rows, GROUP_COLUMNS)
    has_several = (rows[[name for name in of_groups if name.endswith("_bytes")]].notna().sum(axis="columns") > 1).any()
    columns = [
        "exchange_seconds",
        *context.known_columns(rows, COLLECTIVE_COLUMNS),
        *(of_groups if has_several else ()),
    ]
    notes = (*map(defined, columns), *context.breakdown_notes(dataset))
    return table_of_configurations(dataset, "collectives", "Collectives by kind", columns, notes, rows, _NO_COLLECTIVES)


def _by_exchange(dataset: Dataset, of_kinds: bool) -> pd.DataFrame:
    """Return the configurations whose steps have several collectives, or the others."""
    rows = dataset.configurations
    return rows[rows[list(COLLECTIVE_COLUMNS)].notna().any(axis="columns") == of_kinds]


def nccl(dataset: Dataset) -> Table:
    """Return how NCCL connects the GPUs, beside the stated link."""
    rows = dataset.configurations
    rows = rows[rows[list(NCCL_COLUMNS)].notna().any(axis="columns")]
    columns = context.known_columns(rows, NCCL_COLUMNS)
    link = context.levels(dataset.completed_runs["link"])
    notes = (f"The cluster file says link: {link}.", *map(defined, columns), _FROM_ONE_RUN)
    return table_of_configurations(dataset, "nccl", "What NCCL chose", columns, notes, rows, _NO_NCCL)


def computation_notes(dataset: Dataset) -> tuple[str, ...]:
    """Return the notes below a table of computation times."""
    return tuple(filter(None, (context.computation_note(dataset), *context.breakdown_notes(dataset))))


#: What is known of an ingested run: its rates, and about them.
PRINTED_RATES = ("throughput", "mean_of_rates", "wall_throughput")
#: What is known only of logs that DLPerf has an extractor for.
OF_FIXED_WINDOW = (
    *("fixed_window_throughput", "fixed_window_clock_throughput", "fixed_window_mean_of_rates", "fixed_window"),
)
PRINTED = ("printed_lines", "steady_lines", "settled_at_step", "steadiness", "behaviour")
_VARIATION = ("step_variation", "warmup_slowdown")
LIMITED = ("used_cores", "throttled_share")
STEP_PERCENTILES = ("step_p50_seconds", "step_p95_seconds", "step_p99_seconds")
_NO_STEPS = "Programs print rates over several steps, so percentiles of single steps are not known."
_EFFECTS = "Mean over {} of the throughput relative to the mean of its configuration over these rounds."
_ROUNDS = (
    f"{_EFFECTS} The t interval is of a mean over configurations, for each round by itself. What is common to a round "
    "cancels in ratios."
)
_FEW_CONFIGURATIONS = f"no interval: it takes {MINIMUM_RUNS} configurations"
_NO_ROUNDS = "Fewer than two rounds were measured with the same configurations, so they can't be compared."


def step_times(dataset: Dataset) -> Table:
    """Return mean and percentiles of the step time of each configuration."""
    rows = dataset.measured
    columns = ("step_seconds", *context.known_columns(rows, STEP_PERCENTILES))
    selected = rows
    if dataset.plan.ingested_from:
        selected = rows.iloc[:0]
    notes = (*map(defined, columns), *_left_out(dataset, [name for name in STEP_PERCENTILES if name not in columns]))
    title = "How long a step takes"
    return table_of_configurations(dataset, "step-times", title, columns, notes, selected, _NO_STEPS)


def _left_out(dataset: Dataset, columns: Sequence[str]) -> Iterator[str]:
    """Yield the columns left out without values, and why."""
    names_by_reason = defaultdict[str, list[str]](list)
    for row in dataset.measured.head(1).itertuples():
        for name in columns:
            names_by_reason[explain_missing(dataset, row, name)].append(COLUMNS[name].label)
    for reason, names in names_by_reason.items():
        yield f"Without {formatting.listed(names)}: {reason}."


def stability(dataset: Dataset) -> Table:
    """Return each run's steadiness and background load, or its printed rates."""
    runs = dataset.runs
    if dataset.plan.ingested_from:
        sources = [name for name in ("log_format", "printed_rate") if runs[name].nunique() > 1]
        rates = context.known_rates(runs, PRINTED_RATES)
        columns = (*sources, *rates, *context.known_columns(runs, OF_FIXED_WINDOW), *PRINTED)
        notes = (*map(defined, columns), context.merging(dataset))
    else:
        further = [*_VARIATION, *context.known_columns(runs, ("steadiness",)), "load_balance", "drain_seconds"]
        if runs[list(LIMITED)].notna().any(axis=None):
            further += LIMITED
        # The precision of a user's program is unknown, unless its study states it.
        if (runs["precision"].dropna() != PARAMETERS["precision"].default).any():
            further.append("computed_in")
        further += context.known_columns(runs, ("loss_scale", "skipped_steps", "compile_seconds"))
        columns = ("outcome", *further, "background_cores", "disturbed", "waited_seconds", "run_seconds")
        notes = (*map(defined, further), *computation_notes(dataset))
    return table_of_runs(dataset, "stability", "Every run", columns, runs, notes)


def rounds(dataset: Dataset) -> Table:
    """Return the deviation of each round from the mean of all."""
    effects = round_effects(select_counted(dataset.runs), dataset.rate)
    rows = []
    for effect in effects:
        begun = f"{effect.begun:%Y-%m-%d %H:%M}"
        change = Cell.of(effect.percent_change, _FEW_CONFIGURATIONS, decision=0.0)
        rows.append((Cell(str(effect.round)), Cell(begun), change))
    caption = page_caption = ""
    if effects:
        count_text = counted(effects[0].configurations, "configuration")
        caption = f"{_ROUNDS.format(count_text)}{context.quick_label(dataset)}"
        page_caption = _EFFECTS.format(count_text)
    change_heading = Heading("Change of throughput", "%", numeric=True, interval=True)
    headings = (Heading(COLUMNS["round"].label), Heading("Begun (UTC)"), change_heading)
    title = "Drift from round to round"
    return Table("rounds", title, caption, headings, tuple(rows), empty=_NO_ROUNDS, page_caption=page_caption)


ENERGY = ("energy_per_sample", "mean_power")
SAMPLED_OF_GPUS = ("gpu_utilisation", "sm_clock", "memory_clock", "gpu_temperature", "clock_limited_share")
SEARCHED_COLUMNS = names_from(Source.BATCH_SEARCH)
_SAMPLES = (
    *("telemetry_samples", "sampling_seconds", "energy_of"),
    *("energy_obstacle", "clock_limits", "foreign_processes"),
)
_COUNTS = ("telemetry_samples", "sampling_seconds", "foreign_processes")
_NO_MEMORY = "Programs print no peak of memory that is counted here."
_NO_ENERGY = "No run has a reading of an energy counter."
_NO_NETWORK = "The network of no run was counted."
_NO_SAMPLED_OF_GPUS = "No run on a GPU was sampled."


def energy(dataset: Dataset) -> Table:
    """Return the energy per sample and power, next to the throughput."""
    columns = [*context.known_columns(dataset.configurations, ENERGY), "throughput"]
    rows = dataset.measured
    selected = rows if len(columns) > 1 else rows.iloc[:0]
    return table_of_configurations(dataset, "energy", "Energy", columns, map(defined, ENERGY), selected, _NO_ENERGY)


def memory(dataset: Dataset) -> Table:
    """Return the peak memory of each configuration, and the largest batches."""
    peaks = [name for name, metric in summarised(Summary.LARGEST).items() if metric.unit == "bytes"]
    columns = context.known_columns(dataset.configurations, peaks)
    has_parts = any(entry.configuration.micro_batches > 1 for entry in dataset.plan.entries)
    if dataset.plan.largest_batch:
        columns += [name for name in SEARCHED_COLUMNS if has_parts or name != "largest_micro_batch"]
    return table_of_configurations(dataset, "memory", "Memory", columns, empty=_NO_MEMORY)


def devices(dataset: Dataset) -> Table:
    """Return how busy, fast and hot the GPUs were."""
    columns = context.known_columns(dataset.configurations, SAMPLED_OF_GPUS)
    rows = dataset.measured
    return table_of_configurations(dataset, "devices", "GPUs", columns, selected=rows, empty=_NO_SAMPLED_OF_GPUS)


def network(dataset: Dataset) -> Table:
    """Return the network traffic before and during each configuration's runs."""
    columns = context.known_columns(dataset.configurations, NETWORK_COLUMNS)
    rows = dataset.configurations
    selected = rows[rows[list(NETWORK_COLUMNS)].notna().any(axis="columns")]
    return table_of_configurations(dataset, "network", "Network", columns, None, selected, _NO_NETWORK)


def telemetry(dataset: Dataset) -> Table:
    """Return how often each run was sampled, and what is missing."""
    runs = dataset.completed_runs
    # What all runs have in common is in the sentences of the page.
    reported = context.known_columns(runs, _SAMPLES)
    columns = [name for name in reported if runs[name].nunique() > 1 or name in _COUNTS]
    sampled = runs
    if not runs["telemetry_samples"].notna().any():
        sampled = runs.iloc[:0]
    notes = tuple(map(defined, columns))
    return table_of_runs(dataset, "telemetry", "Samples of every run", columns, sampled, notes, _NO_ENERGY)
