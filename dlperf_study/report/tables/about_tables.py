"""The tables on a study itself: what it asks and how it measures, and on which hardware and software its runs were."""

import pandas as pd
from pandas.api.types import is_numeric_dtype

from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import column_named
from dlperf_study.metrics.parameters import list_settings
from dlperf_study.report import context, formatting
from dlperf_study.report.tables.selftest_tables import selftest_note
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.study.configuration import FIELD_NAMES, parameters_in_scope
from dlperf_study.study.job import ROUNDS
from dlperf_study.study.parameter import Scope
from dlperf_study.study.plan import Plan
from dlperf_study.study.study import PROGRAM_MEASUREMENT

#: Parameters that are elsewhere on the page or limit a run only.
_OF_THE_PLAN = (*parameters_in_scope(Scope.PLAN), "timeout_seconds")
#: What a user's program has not, or under a name of its own.
_NOT_OF_PROGRAMS = ("framework", "strategy", "model", *parameters_in_scope(Scope.MEASUREMENT))
_MEASUREMENT = tuple(name for name in parameters_in_scope(Scope.MEASUREMENT) if name not in _OF_THE_PLAN)
ENVIRONMENT = (
    *("cluster", "launcher", "host", "addresses", "device", "device_name", "device_peak_flops", "device_peak_source"),
    "link",
    *("cpu_model", "cpu_mhz", "cpu_cache_bytes", "cores", "memory_bytes"),
    *("library", "library_version", "exchange_library", "gpu_driver", "cuda_version", "cudnn_version"),
    *("python_version", "library_settings", "git_commit", "git_dirty"),
)
#: What depends on precision and devices, so that runs in one environment have several.
_OF_CONFIGURATIONS = ("device_peak_flops", "device_peak_source", "exchange_library")
#: What is another number in each run of an environment, so that the table has the least and the largest.
_OF_RUNS = ("cpu_mhz",)
#: Rows that only runs on GPUs, on several devices, or of processors that report it have.
_IF_KNOWN = ("cpu_mhz", "cpu_cache_bytes", "exchange_library", "gpu_driver", "cuda_version", "cudnn_version")
#: What a table shows as it is, and how many letters of it; twelve identify a commit.
_VERBATIM: dict[str, int | None] = {
    **dict.fromkeys(("cluster", "launcher", "host", "addresses", "library_settings")),
    "git_commit": 12,
}
_NO_RUN = "No run completed."
_NO_PEAK = "neither the cluster file nor the table of data sheets has it"
SCALING = {"weak": "weak: the batch per device is fixed", "strong": "strong: the global batch is fixed"}


def about(dataset: Dataset) -> Table:
    """Return what the study asks and how each configuration is measured."""
    plan, rows = dataset.plan, dataset.configurations
    facts = {"Questions": formatting.listed(plan.questions) or "none", "Scaling": SCALING[plan.scaling]}
    departures = context.departures(rows, FIELD_NAMES)
    fixed = [name for name in departures if name not in (*_OF_THE_PLAN, *plan.factors)]
    measurement = _MEASUREMENT
    if plan.is_program:
        for name in ("own_program", "program_command", "program_commit", "program_remote", "steps_from"):
            if levels := formatting.distinct_levels(dataset.runs[name]):
                facts[column_named(name).label] = formatting.listed(map(str, levels))
        fixed = [name for name in fixed if name not in _NOT_OF_PROGRAMS] + list_settings(rows)
        measurement = PROGRAM_MEASUREMENT
    for name in dict.fromkeys((*plan.factors, *context.SIZES, *fixed, "repeats", *measurement)):
        if rows[name].notna().any():
            facts[column_named(name).label] = _levels_text(name, rows[name])
    facts |= _course(plan)
    if note := selftest_note(dataset):
        facts["Self-test"] = note
    cells = tuple((Cell(name), Cell(value)) for name, value in facts.items())
    runs = context.page_wording(dataset).runs.format(counted(int(rows["runs_planned"].sum()), "run"))
    caption = f"{counted(len(rows), 'configuration')}, {runs}{added_runs(dataset)}.{context.quick_label(dataset)}"
    return Table("about", plan.title, caption, _no_headings(2), cells)


def _levels_text(name: str, values: pd.Series) -> str:
    """Return a parameter's levels with their unit, unless the label has it."""
    if name == "batch_per_device" and (values == 0).any():
        shared = ""
        if (values > 0).any():
            shared = f"{_levels_text(name, values[values > 0])}; "
        return f"{shared}none where the global batch can't be shared equally"
    unit = column_named(name).unit
    is_named = any(formatting.is_named_default(name, value) for value in values)
    has_no_unit = not unit or unit in column_named(name).words.split() or not is_numeric_dtype(values) or is_named
    levels = context.levels(values)
    # Levels of a measure have their unit already.
    if has_no_unit or unit in formatting.MEASURES:
        return levels
    # Units that are nouns are in the plural.
    if levels == "1" and unit in ("runs", "steps", "samples", "exchanges"):
        return counted(1, unit.removesuffix("s"))
    return f"{levels} {unit}"


def _course(plan: Plan) -> dict[str, str]:
    """Return the order of the runs and the reasons for added rounds."""
    facts = {}
    if plan.order:
        shuffled = ""
        if plan.order == ROUNDS:
            shuffled = f", shuffled with order_seed {plan.order_seed}"
        facts["Order of the runs"] = f"{plan.order}{shuffled}"
    if plan.precision is not None:
        facts["Target half-width of the 95 % CIs"] = f"± {100 * plan.precision:g} %"
        budget = ""
        if plan.time_budget_minutes is not None:
            budget = f", within {plan.time_budget_minutes:g} min"
        looks = " or ".join(map(str, plan.rounds.looks))
        facts["Target compared after"] = f"{looks} rounds{budget}"
    if plan.largest_batch is not None:
        facts["Largest batch per device"] = f"searched up to {plan.largest_batch}"
    return facts


def added_runs(dataset: Dataset) -> str:
    """Return the number of runs beyond the plan, as text."""
    rows = dataset.configurations
    begun = rows["identity"].map(dataset.run_counts).fillna(0)
    added = int((begun - rows["runs_planned"]).clip(lower=0).sum())
    reason = ""
    if dataset.plan.precision is not None:
        reason = " for precision"
    if added:
        return f", {added} added{reason}"
    return ""


def environments(dataset: Dataset) -> Table:
    """Return hardware and software of completed runs, a column per combination."""
    runs, wording = dataset.completed_runs, context.page_wording(dataset)
    always = set(ENVIRONMENT) - set(_IF_KNOWN) if wording.is_measured else set()
    names = [name for name in ENVIRONMENT if name in always or runs[name].notna().any()]
    compared = [name for name in names if name not in (*_OF_CONFIGURATIONS, *_OF_RUNS)]
    groups = []
    if names and not compared:
        groups = [runs]
    if compared and len(runs):
        groups = [group for _, group in runs.groupby(compared, dropna=False, sort=False)]
    rows = []
    for name in names if len(runs) else ():
        cells = [_environment_cell(name, group[name], wording) for group in groups]
        rows.append((Cell(column_named(name).label), *cells))
    environment = wording.environment.format(counted(len(runs), "completed run"))
    caption = f"{environment if rows or wording.is_measured else ''}{context.quick_label(dataset)}"
    empty = _NO_RUN
    if len(runs):
        empty = wording.no_environment
    headings = _no_headings(1 + len(groups))
    return Table("environments", wording.environment_title, caption, headings, tuple(rows), empty=empty)


def _environment_cell(name: str, values: pd.Series, wording: context.PageWording) -> Cell:
    distinct = formatting.distinct_levels(values)
    if not distinct:
        is_peak = wording.is_measured and name in ("device_peak_flops", "device_peak_source")
        return Cell.missing(_NO_PEAK if is_peak else wording.unknown)
    if name in _OF_RUNS and len(distinct) > 1:
        least, largest = (_environment_level(name, value) for value in (values.min(), values.max()))
        return Cell(f"{least} to {largest}" if least != largest else least)
    return Cell(", ".join(_environment_level(name, value) for value in distinct))


def _environment_level(name: str, value: object) -> str:
    if name in _VERBATIM:
        return str(value)[: _VERBATIM[name]]
    if not column_named(name).unit:
        return formatting.display_name(value)
    unit = formatting.fitting_unit(name, [value])
    return f"{formatting.plain(float(str(value)) / unit.size)} {unit.symbol}"


def _no_headings(count: int) -> tuple[Heading, ...]:
    return (Heading(""),) * count
