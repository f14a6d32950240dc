"""The tables on the exchange of gradients: its cost, how much of it is hidden, and its share in an efficiency."""

from dataclasses import replace

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.tables.cells import defined
from dlperf_study.report.tables.missing import FACTORS, NCCL_COLUMNS, TRACED_COLUMNS
from dlperf_study.report.tables.rows import table_of_configurations
from dlperf_study.report.tables.table import Table

_NO_COSTS = (
    "Negotiation and all-reduce run at the same time as the backward pass and as each other, and activities of several "
    "gradients count once: they are no costs of the step. What it waits for is the exposed communication."
)
_TRACE_NOT_REQUESTED = "No configuration was traced: trace_steps in a study requests Horovod's timeline."
_TRACE_MISSING = (
    "trace_steps requested a timeline, but there is none: only Horovod writes one, on more than one device, and no "
    "such run was traced here."
)
_INPUT_RATE = (
    "All ranks take batches at once and nothing trains, so that the data source has the cores to itself. Where the "
    "throughput reaches that rate, the data source limits the training."
)
_NO_INPUT_RATE = "No data source of this study makes a step wait, or input_steps is 0."
_NO_NCCL = "No ranks exchanged with NCCL: only several GPUs do."
_FROM_ONE_RUN = "NCCL wrote it in a short run of each configuration before the others, of which nothing else is used."
_NO_EXCHANGE = "No configuration exchanges gradients."
_ONLY_BASELINES = "Every configuration is its own baseline."
_PRODUCT = (
    "Their product is the efficiency: the smallest factor is what most is lost to. Below 1, the computation factor "
    "says that a device takes longer for a sample, as where devices share memory or have smaller batches; the balance "
    "factor, that one rank computes longer than others; the input factor, that steps wait for batches; the "
    "communication factor, that more of a step is exposed."
)


def communication(dataset: Dataset) -> Table:
    """Return what a step consists of and how much of the exchange it hides."""
    columns = (
        *("step_seconds", "computation_seconds", *(("input_seconds",) if context.waits_for_batches(dataset) else ())),
        *("exposed_seconds", "jitter_seconds", "exchange_seconds", "overlap", "gradient_bytes"),
    )
    notes = (*map(defined, columns[1:]), *computation_notes(dataset))
    return table_of_configurations(dataset, "communication", "Computation and communication", columns, notes)


def data_sources(dataset: Dataset) -> Table:
    """Return what each data source delivers alone, next to what the steps train and how long they wait for it."""
    columns = ("input_rate", "throughput", "step_seconds", "input_seconds")
    rows = dataset.configurations
    rows = rows[rows["input_rate"].notna()]
    notes = (*map(defined, ("input_rate", "input_seconds")), _INPUT_RATE)
    table = table_of_configurations(dataset, "data_sources", "The data source alone", columns, notes, rows)
    return replace(table, empty=_NO_INPUT_RATE)


def exchange(dataset: Dataset) -> Table:
    """Return what the exchange alone costs: its latency and its bandwidth, and the rates of asynchronous trainers."""
    columns = ["exchange_seconds", "bus_bandwidth", "exchange_latency_seconds", "exchange_bandwidth"]
    if not dataset.configurations["sum_of_rank_rates"].isna().all():
        columns += ["throughput", "sum_of_rank_rates"]
    notes, rows = tuple(map(defined, columns)), dataset.configurations
    has_exchange = set(context.completed_runs(dataset)["exchange"]) != {"none"}
    selected = rows if has_exchange else rows.iloc[:0]
    table = table_of_configurations(dataset, "exchange", "The exchange alone", columns, notes, selected)
    return replace(table, empty=_NO_EXCHANGE)


def factors(dataset: Dataset) -> Table:
    """Return why a configuration is not as efficient as its baseline: four factors whose product is the efficiency."""
    columns = ("efficiency", *FACTORS)
    notes, rows = (*map(defined, columns), _PRODUCT), dataset.configurations
    # A baseline has no other efficiency than 1.
    selected = rows if not rows["is_baseline"].all() else rows.iloc[:0]
    table = table_of_configurations(dataset, "factors", "Why not ideal", columns, notes, selected)
    return replace(table, empty=_ONLY_BASELINES)


def nccl(dataset: Dataset) -> Table:
    """Return how NCCL connects the GPUs of each configuration, next to the link that the cluster file states."""
    rows = dataset.configurations
    rows = rows[rows[list(NCCL_COLUMNS)].notna().any(axis="columns")]
    columns = context.known_columns(rows, NCCL_COLUMNS)
    link = context.levels(context.completed_runs(dataset)["link"])
    notes = (f"The cluster file says link: {link}.", *map(defined, columns), _FROM_ONE_RUN)
    table = table_of_configurations(dataset, "nccl", "What NCCL chose", columns, notes, rows)
    return replace(table, empty=_NO_NCCL)


def timeline(dataset: Dataset) -> Table:
    """Return on what the exchange of a traced step spends its time, where the library traced itself."""
    diagnostics, rows = dataset.diagnostics, dataset.configurations
    # Also those of which the trace can't be read.
    has_diagnostic = rows["identity"].isin(diagnostics.loc[diagnostics["subject"] == "trace", "identity"])
    traced = rows[has_diagnostic | rows["negotiation_seconds"].notna()]
    notes = (*map(defined, TRACED_COLUMNS), _NO_COSTS)
    table = table_of_configurations(dataset, "timeline", "Horovod's timeline", TRACED_COLUMNS, notes, traced)
    page_caption = (
        f"Means over the {context.levels(traced['trace_steps'])} steps after the warm-up of one additional run of each "
        "configuration, as rank 0 saw them: one run has no interval. Tracing costs time, so no other number comes from "
        "that run."
    )
    caption = f"{context.conditions(context.only(dataset, traced))} {page_caption}"
    empty = _TRACE_MISSING if any(rows["trace_steps"] > 0) else _TRACE_NOT_REQUESTED
    return replace(table, caption=caption if len(traced) else "", page_caption=page_caption, empty=empty)


def computation_notes(dataset: Dataset) -> tuple[str, ...]:
    """Return the notes below a table of computation times."""
    return tuple(filter(None, (context.computation_note(dataset),)))
