"""What the notebook of one configuration shows: its parameters, runs, step times and logs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from html import escape

import pandas as pd
from matplotlib.figure import Figure as Drawing

from dlperf_study.core.large_files import last_lines
from dlperf_study.core.paths import ConfigurationPaths
from dlperf_study.report.figures.figure import Draw, Figure
from dlperf_study.report.figures.line_charts import legend_below
from dlperf_study.report.figures.style import PAGE, Width, colour
from dlperf_study.report.section import Section
from dlperf_study.report.tables.table import Table, make_table
from dlperf_study.report.tables.table_builders import defined, laid_out, run_column
from dlperf_study.study.configuration import PARAMETERS, Configuration

PARTS_OF_STEP = ("compute_seconds", "input_seconds", "exposed_communication_seconds", "communication_seconds")
MEASURED = ("throughput", "step_seconds", "step_variation", *PARTS_OF_STEP)
#: Only runs with a scaled loss or a compiler have them: without a value they are left out.
OF_SOME_RUNS = ("loss_scale", "skipped_steps", "compile_seconds")
RUN_COLUMNS = (
    *("repetition", "status", *MEASURED, "steadiness", "final_loss", "computed_in", *OF_SOME_RUNS),
    *("background_cores", "disturbed", "run_seconds"),
)
PANEL_INCHES = 1.9
TAIL_LINES = 8


def configuration_table(configuration: Configuration) -> Table:
    """Return the parameters without a default or with another value."""
    values, rows = configuration.as_dict(), []
    for name, value in values.items():
        if value != PARAMETERS[name].default:
            rows.append((name, str(value), PARAMETERS[name].unit))
    about = f"The other {len(values) - len(rows)} parameters have their defaults."
    if configuration.own_program:
        about = "What its program does by other parameters, its study does not say."
    return make_table(
        "configuration", ("Parameter", "Value", "Unit"), rows, about, title=configuration.configuration_id
    )


def result(runs: pd.DataFrame, steps: pd.DataFrame, is_last: bool = True) -> Section:
    """Return the runs and, with the last run, all step times.

    To draw it takes a second, and the next run of a study would draw it again.
    """
    figure = step_time_figure(steps) if is_last else _step_times(None, "They are drawn when the last run is done.")
    return Section.of("", run_table(runs), figure)


def run_table(runs: pd.DataFrame) -> Table:
    """Return one row per run; step parts have the step's unit."""
    columns = []
    for name in RUN_COLUMNS:
        if name in OF_SOME_RUNS and runs[name].isna().all():
            continue
        columns.append(run_column(runs, name, in_unit_of="step_seconds" if name in PARTS_OF_STEP else name))
    headings, rows = laid_out(columns, runs.itertuples())
    notes, title = map(defined, (*MEASURED, "steadiness")), "Runs of this configuration"
    return make_table("runs", headings, rows, "One row per repetition.", title=title, notes=notes)


def step_time_figure(steps: pd.DataFrame) -> Figure:
    """Return the seconds of every step and rank, a panel per run."""
    steps = steps[steps["window"].isin(["warmup", "training"])]
    if steps.empty:
        return _step_times(None, "No run completed, so there are no step times.")
    return _step_times(partial(_draw_steps, steps))


def _step_times(draw: Draw | None, empty: str = "") -> Figure:
    caption = "Every step of every rank; the shaded steps are the warm-up, which is not measured."
    return Figure("step-times", "Step times", caption, draw, empty)


def _draw_steps(steps: pd.DataFrame, width: Width) -> Drawing:
    repetitions = sorted(steps["repetition"].unique())
    rows, columns = (1, len(repetitions)) if width is PAGE else (len(repetitions), 1)
    drawing = Drawing(figsize=(width.inches, PANEL_INCHES * rows), layout="constrained")
    panels = drawing.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axes, repetition in zip(panels, repetitions, strict=True):
        run = steps[steps["repetition"] == repetition]
        warmup = int((run["window"] == "warmup").sum() / run["rank"].nunique())
        for rank, rows_of_rank in run.groupby("rank"):
            seconds = rows_of_rank["seconds"].to_numpy(float)
            axes.plot(range(1, len(seconds) + 1), seconds, color=colour(int(rank)), linewidth=0.9, label=f"rank {rank}")
        axes.axvspan(0.5, warmup + 0.5, color="0.93", zorder=0)
        axes.set(title=f"run {repetition}", xlabel="step")
        axes.grid(True)
    panels[0].set_ylabel("step time (s)")
    panels[0].set_ylim(bottom=0)
    legend_below(drawing, panels, width)
    return drawing


@dataclass(frozen=True)
class Folded:
    """Long texts by title, each folded until a reader opens it."""

    texts: Mapping[str, str]
    empty: str = ""

    def _repr_html_(self) -> str:
        parts = []
        for title, content in self.texts.items():
            parts.append(f"<details><summary>{escape(title)}</summary><pre>{escape(content)}</pre></details>")
        return "".join(parts) or f"<p>{escape(self.empty)}</p>"


def submission(content: str) -> Folded:
    """Return what the launcher starts, folded."""
    return Folded({"Commands, environment and settings of the first run": content})


def log_tails(paths: ConfigurationPaths) -> Folded:
    """Return the last lines that each process of each run printed."""
    tails = {}
    for run in paths.runs():
        for log in run.process_logs:
            tails[f"run {log.parent.name}, {log.stem}"] = "\n".join(last_lines(log, TAIL_LINES))
    return Folded(tails, "No log was written.")
