"""The tables of the page on quality: how long steps take, how steady each run was, and whether the machine drifted."""

from dataclasses import replace

from dlperf_study.analysis.comparison import NOT_DISTINGUISHABLE
from dlperf_study.analysis.drift import round_effects
from dlperf_study.analysis.statistics import MINIMUM_RUNS
from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.tables.cells import defined
from dlperf_study.report.tables.communication_tables import computation_notes
from dlperf_study.report.tables.missing import LIMITED
from dlperf_study.report.tables.rows import table_of_configurations, table_of_runs
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.study.configuration import PARAMETERS
from dlperf_study.wording import counted

#: What is known of an ingested run: its rates, and about them.
PRINTED_RATES = (
    "throughput",
    "mean_of_rates",
    "wall_throughput",
    "fixed_window_throughput",
    "fixed_window_mean_of_rates",
)
PRINTED = ("printed_lines", "steady_lines", "settled_at_step", "steadiness", "behaviour")
STEP_PERCENTILES = ("step_p50_seconds", "step_p95_seconds", "step_p99_seconds")
_NO_STEPS = "Programs print rates over several steps, so percentiles of single steps are not known."
_EFFECTS = "Mean over {} of the throughput relative to the mean of its configuration over these rounds."
_ROUNDS = (
    f"{_EFFECTS} The t interval is that of a mean over configurations; differs: after Holm over the rounds. What is "
    "common to a round cancels in ratios."
)
_FEW_CONFIGURATIONS = f"no interval: it takes {MINIMUM_RUNS} configurations"
_NO_ROUNDS = "Fewer than two rounds were measured with the same configurations, so they can't be compared."


def step_times(dataset: Dataset) -> Table:
    """Return how long the steps of each configuration take: mean and percentiles, with their intervals."""
    columns = ("step_seconds", *STEP_PERCENTILES)
    notes = tuple(map(defined, columns))
    measured_rows = context.measured(dataset)
    table = table_of_configurations(dataset, "step-times", "How long a step takes", columns, notes, measured_rows)
    return replace(table, rows=(), groups=(), empty=_NO_STEPS) if dataset.plan.ingested_from else table


def stability(dataset: Dataset) -> Table:
    """Return how steady each run was and what else the machine did meanwhile; of ingested runs, what they printed."""
    if dataset.plan.ingested_from:
        sources = [name for name in ("log_format", "printed_rate") if dataset.runs[name].nunique() > 1]
        rates = context.known_rates(dataset.runs, PRINTED_RATES)
        windows = ("fixed_window",) if "fixed_window_throughput" in rates else ()
        columns = (*sources, *rates, *windows, *PRINTED)
        notes = (*map(defined, columns), context.merging(dataset))
    else:
        variation = (
            "step_variation",
            "warmup_slowdown",
            "steadiness",
            "further_steps",
            "load_balance",
            "drain_seconds",
        )
        limited = LIMITED if dataset.runs[list(LIMITED)].notna().any(axis=None) else ()
        further = (*variation, *limited, *_precision_columns(dataset))
        columns = ("outcome", *further, "busy_cores_during", "waited_seconds", "run_seconds")
        notes = (*map(defined, further), *computation_notes(dataset))
    return table_of_runs(dataset, "stability", "Every run", columns, dataset.runs, notes)


def _precision_columns(dataset: Dataset) -> tuple[str, ...]:
    """Return the columns on precision and compilation that say something of these runs."""
    runs = dataset.runs
    is_reduced = (runs["precision"] != PARAMETERS["precision"].default).any()
    names = context.known_columns(runs, ("loss_scale", "skipped_steps", "compile_seconds"))
    return ("computed_in", *names) if is_reduced else tuple(names)


def rounds(dataset: Dataset) -> Table:
    """Return how much faster or slower each round was than the mean of all: whether the machine drifted."""
    effects = round_effects(context.completed_runs(dataset))
    rows = []
    for effect in effects:
        begun = f"{effect.begun:%Y-%m-%d %H:%M}"
        verdict = "differs" if effect.is_different else NOT_DISTINGUISHABLE
        change = Cell.of(effect.percent_change, _FEW_CONFIGURATIONS, decision=0.0)
        rows.append((Cell(str(effect.round)), Cell(begun), change, Cell(verdict)))
    caption = page_caption = ""
    if effects:
        count_text = counted(effects[0].configurations, "configuration")
        caption, page_caption = (
            f"{_ROUNDS.format(count_text)}{context.quick_label(dataset)}",
            _EFFECTS.format(count_text),
        )
    change_heading = Heading("Change of throughput", "%", numeric=True, interval=True)
    headings = (Heading(COLUMNS["round"].label), Heading("Begun (UTC)"), change_heading, Heading("Against the mean"))
    title = "Drift from round to round"
    return Table("rounds", title, caption, headings, tuple(rows), empty=_NO_ROUNDS, page_caption=page_caption)
