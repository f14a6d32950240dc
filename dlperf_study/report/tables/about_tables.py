"""The tables on a study itself: its questions, hardware and software, and the rules of measuring."""

from collections.abc import Callable
from functools import partial

import pandas as pd
from pandas.api.types import is_numeric_dtype

from dlperf_study.core.errors import RecordError
from dlperf_study.core.wording import counted
from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.study_diagnostics import mixed_environments, mixed_hosts
from dlperf_study.metrics.columns import column_named
from dlperf_study.metrics.parameters import list_settings
from dlperf_study.metrics.run_status import disturbed_configurations
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.metrics.steady_state import Answer
from dlperf_study.report import context, formatting
from dlperf_study.report.formatting import text_if
from dlperf_study.report.say import caption
from dlperf_study.report.tables.selftest_tables import selftest_note
from dlperf_study.report.tables.table import Cell, Table, make_table
from dlperf_study.selftest.result import Machine, last_passed, read_results
from dlperf_study.study.configuration import FIELD_NAMES, parameters_in_scope
from dlperf_study.study.job import INTERLEAVED
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
    "interconnect",
    *("cpu_model", "cpu_mhz", "cpu_cache_bytes", "cores", "memory_bytes"),
    *("library", "library_version", "communication_library", "gpu_driver", "cuda_version", "cudnn_version"),
    *("python_version", "library_settings", "git_commit", "git_dirty"),
)
#: What depends on precision and devices, so that runs in one environment have several.
_OF_CONFIGURATIONS = ("device_peak_flops", "device_peak_source", "communication_library")
#: What is another number in each run of an environment, so that the table has the least and the largest.
_OF_RUNS = ("cpu_mhz",)
#: Rows that only runs on GPUs, on several devices, or of processors that report it have.
_IF_KNOWN = ("cpu_mhz", "cpu_cache_bytes", "communication_library", "gpu_driver", "cuda_version", "cudnn_version")
#: What a table shows as it is, and how many letters of it; twelve identify a commit.
_VERBATIM: dict[str, int | None] = {
    **dict.fromkeys(("cluster", "launcher", "host", "addresses", "library_settings")),
    "git_commit": 12,
}
SCALING = {"weak": "weak: the batch per device is fixed", "strong": "strong: the global batch is fixed"}


def about(dataset: Dataset) -> Table:
    """Return what the study asks and how each configuration is measured."""
    plan, rows = dataset.plan, dataset.configurations
    facts = {"Sections": formatting.listed(plan.sections) or "none", "Scaling": SCALING[plan.scaling]}
    non_defaults = context.non_defaults(rows, FIELD_NAMES)
    fixed = [name for name in non_defaults if name not in (*_OF_THE_PLAN, *plan.factors)]
    measurement = _MEASUREMENT
    if plan.is_program:
        for name in ("own_program", "program_command", "program_commit", "program_remote", "steps_from"):
            if values := formatting.distinct_values(dataset.runs[name]):
                facts[column_named(name).label] = formatting.listed(map(str, values))
        fixed = [name for name in fixed if name not in _NOT_OF_PROGRAMS] + list_settings(rows)
        measurement = PROGRAM_MEASUREMENT
    for name in dict.fromkeys((*plan.factors, *context.SIZES, *fixed, "repetitions", *measurement)):
        if rows[name].notna().any():
            facts[column_named(name).label] = _values_text(name, rows[name])
    facts |= _course(plan)
    if note := selftest_note(dataset):
        facts["Self-test"] = note
    runs = context.by_origin(dataset, "runs", runs=int(rows["runs_planned"].sum()))
    about = f"{counted(len(rows), 'configuration')}, {runs}{added_runs(dataset)}.{context.quick_label(dataset)}"
    return make_table("about", ("", ""), facts.items(), about, title=plan.title)


def _values_text(name: str, values: pd.Series) -> str:
    """Return a parameter's values with their unit, unless the label has it."""
    if name == "batch_per_device" and (values == 0).any():
        shared = values[values > 0]
        divisible = text_if(len(shared), f"{_values_text(name, shared)}; ")
        return f"{divisible}none where the global batch cannot be split equally"
    unit = column_named(name).unit
    is_named = any(formatting.is_named_default(name, value) for value in values)
    has_no_unit = not unit or unit in column_named(name).words.split() or not is_numeric_dtype(values) or is_named
    listed = context.list_values(values)
    # Values of a measure have their unit already.
    if has_no_unit or unit in formatting.MEASURES:
        return listed
    # Units that are nouns are in the plural.
    if listed == "1" and unit in ("runs", "steps", "samples"):
        return counted(1, unit.removesuffix("s"))
    return f"{listed} {unit}"


def _course(plan: Plan) -> dict[str, str]:
    """Return the order of the runs and the reasons for added rounds."""
    facts = {}
    if plan.order:
        shuffled = text_if(plan.order == INTERLEAVED, f", shuffled with order_seed {plan.order_seed}")
        facts["Order of the runs"] = f"{plan.order}{shuffled}"
    if plan.target_ci is not None:
        facts["Target margin of the 95 % CIs"] = f"± {100 * plan.target_ci:g} %"
        facts["Target compared after"] = f"{' or '.join(map(str, plan.rounds.looks))} rounds"
        if plan.time_budget_minutes is not None:
            facts["Target compared after"] += f", within {plan.time_budget_minutes:g} min"
    if plan.largest_batch is not None:
        facts["Largest batch per device"] = f"searched up to {plan.largest_batch}"
    return facts


def added_runs(dataset: Dataset) -> str:
    """Return the number of runs beyond the plan, as text."""
    rows = dataset.configurations
    begun = rows["configuration_id"].map(dataset.run_counts).fillna(0)
    added = int((begun - rows["runs_planned"]).clip(lower=0).sum())
    reason = text_if(dataset.plan.target_ci is not None, " for precision")
    return text_if(added, f", {added} added{reason}")


def environments(dataset: Dataset) -> Table:
    """Return hardware and software of completed runs, a column per combination."""
    runs, is_measured = dataset.completed_runs, not dataset.plan.ingested_from
    names = [name for name in ENVIRONMENT if (is_measured and name not in _IF_KNOWN) or runs[name].notna().any()]
    compared = [name for name in names if name not in (*_OF_CONFIGURATIONS, *_OF_RUNS)]
    groups, rows = [], []
    if names and not compared:
        groups = [runs]
    if compared and len(runs):
        groups = [group for _, group in runs.groupby(compared, dropna=False, sort=False)]
    for name in names if len(runs) else ():
        rows.append((column_named(name).label, *(_environment_cell(dataset, name, group[name]) for group in groups)))
    empty = caption("environments", "no_run")
    if len(runs):
        empty = context.by_origin(dataset, "no_environment")
    about = text_if(rows or is_measured, context.by_origin(dataset, "environment", runs=len(runs)))
    options = {"title": context.by_origin(dataset, "environment_title"), "empty": empty}
    return make_table("environments", [""] * (1 + len(groups)), rows, about + context.quick_label(dataset), **options)


def _environment_cell(dataset: Dataset, name: str, values: pd.Series) -> Cell:
    distinct = formatting.distinct_values(values)
    if not distinct:
        if not dataset.plan.ingested_from and name in ("device_peak_flops", "device_peak_source"):
            return Cell.missing(caption("environments", "no_peak"))
        return Cell.missing(context.by_origin(dataset, "unknown"))
    if name in _OF_RUNS and len(distinct) > 1:
        return Cell(" to ".join(dict.fromkeys(map(partial(_environment_value, name), (values.min(), values.max())))))
    return Cell(", ".join(map(partial(_environment_value, name), distinct)))


def _environment_value(name: str, value: object) -> str:
    if name in _VERBATIM:
        return str(value)[: _VERBATIM[name]]
    if not column_named(name).unit:
        return formatting.display_name(value)
    unit = formatting.fitting_unit(name, [value])
    return f"{formatting.plain(float(str(value)) / unit.size)} {unit.symbol}"


MET, NOT_MET, NOT_RUN = "met", "not met", "not run"
#: The result of a rule and its number; None if the rule does not apply to a study.
Result = tuple[str, str] | None

SETUP = (
    *("device", "device_name", "cpu_model", "cores", "memory_bytes", "interconnect", "host", "launcher"),
    *("library", "library_version", "python_version", "library_settings"),
)


def rules(dataset: Dataset) -> Table:
    """Return each rule that applies, its result, and its number."""
    rows = []
    if len(dataset.measured):
        for rule, check in _RULES.items():
            if result := check(dataset):
                rows.append((rule, *result))
    return make_table("rules", ("Rule", "Result", "Number"), rows, caption("rules") + context.quick_label(dataset))


def _result(is_met: bool, number: str) -> Result:
    if is_met:
        return MET, number
    return NOT_MET, number


def _count(has: int, total: int, things: str) -> str:
    return f"{has} of {counted(total, things)}"


def _baseline(dataset: Dataset) -> Result:
    rows = dataset.measured
    scaled = rows[~rows["is_baseline"].astype(bool) & rows["baseline_id"].notna()]
    if scaled.empty:
        return None
    matching = 0
    for row in scaled.itertuples():
        baseline = dataset.configuration_rows[row.baseline_id]
        is_same = (row.framework, row.model) == (baseline.framework, baseline.model)
        matching += is_same and not is_missing(row.speedup)
    return _result(matching == len(scaled), _count(matching, len(scaled), "speedup"))


def _rounds(dataset: Dataset) -> Result:
    rows = dataset.measured
    fewest = int(rows["runs_counted"].min())
    # Missing if nothing is compared.
    missing = rows[["speedup_rounds_missing", "relative_throughput_rounds_missing"]].fillna(0).max(axis=None)
    fewest_runs = f"at least {counted(fewest, 'run')} of each configuration"
    if missing > 0:
        return NOT_MET, f"{fewest_runs}, {int(missing)} more needed"
    if fewest < MINIMUM_RUNS:
        return NOT_MET, f"{fewest_runs}, a CI needs {MINIMUM_RUNS}"
    if including := disturbed_configurations(dataset.runs):
        undisturbed = f"{counted(len(including), 'configuration')} with fewer than {MINIMUM_RUNS} undisturbed runs"
        return NOT_MET, f"{fewest_runs}, {undisturbed}"
    return MET, fewest_runs


def _order(dataset: Dataset) -> Result:
    runs = dataset.completed_runs
    if dataset.plan.ingested_from or runs["configuration_id"].nunique() < 2:
        return None
    interleaved = int(runs["round"].notna().sum()) * (dataset.plan.order == INTERLEAVED)
    return _result(interleaved == len(runs), _count(interleaved, len(runs), "run"))


def _intervals(dataset: Dataset) -> Result:
    rows = dataset.measured
    scaled = rows[~rows["is_baseline"].astype(bool) & rows["speedup"].notna()]
    throughputs, speedups = (
        int(rows[f"{dataset.throughput_column}_low"].notna().sum()),
        int(scaled["speedup_low"].notna().sum()),
    )
    counts = [_count(throughputs, len(rows), "throughput")]
    if len(scaled):
        counts.append(_count(speedups, len(scaled), "speedup"))
    return _result(throughputs == len(rows) and speedups == len(scaled), formatting.listed(counts))


def _target(dataset: Dataset) -> Result:
    target = dataset.plan.target_ci
    if target is None:
        return None
    total = len(dataset.reached_ci_widths)
    reached = total - len(dataset.missed_ci_widths)
    return _result(reached == total, f"{_count(reached, total, 'configuration')} within ± {100 * target:g} %")


def _background(dataset: Dataset) -> Result:
    if dataset.plan.ingested_from:
        return None
    disturbed, total = dataset.disturbed_runs, len(dataset.completed_runs)
    runs = f"background load in {_count(disturbed, total, 'run')}"
    including = len(disturbed_configurations(dataset.runs))
    if including:
        configurations = _count(including, len(dataset.measured), "configuration")
        return NOT_MET, f"{runs}; the numbers of {configurations} include such runs"
    return MET, runs


def _completed(dataset: Dataset) -> Result:
    rows = dataset.configurations
    rows = rows[rows["unsupported_reason"].isna()]
    planned = int(rows["runs_planned"].sum())
    completed = int(rows[["runs_completed", "runs_planned"]].min(axis="columns").sum())
    return _result(completed == planned, _count(completed, planned, "planned run"))


def _steadiness(dataset: Dataset) -> Result:
    answers = dataset.completed_runs["steadiness"]
    unsteady, runs = int(answers.eq(Answer.NOT_STEADY).sum()), len(answers)
    # Windows that are too short to decide are no failure.
    if not unsteady and answers.isna().any():
        return None
    return _result(not unsteady, f"{_count(unsteady, runs, 'run')} not steady")


def _setup(dataset: Dataset) -> Result:
    runs = dataset.completed_runs
    facts = runs[list(SETUP)]
    unknown = list(facts.columns[facts.isna().any()])
    recorded = f"{len(SETUP) - len(unknown)} of {len(SETUP)} facts recorded"
    if unknown:
        recorded += f", without {formatting.listed_columns(unknown)}"
    mixed = [*mixed_environments(runs), *mixed_hosts(runs)]
    # An uncommitted file is no difference between two runs.
    differing = dict.fromkeys(diagnostic.subject for diagnostic in mixed if diagnostic.subject != "git_dirty")
    if differing:
        recorded += f"; different between runs: {formatting.listed_columns(differing)}"
    return _result(not unknown and not differing, recorded)


def _self_test(dataset: Dataset) -> Result:
    runs = dataset.completed_runs.dropna(subset=["cores"])
    if dataset.plan.ingested_from or runs.empty:
        return None
    try:
        results = read_results()
    except RecordError as error:
        return NOT_MET, str(error)
    rows = runs[["host", "cpu_model", "cores"]].drop_duplicates().itertuples(index=False)
    machines = [Machine(str(host), str(cpu_model), int(cores)) for host, cpu_model, cores in rows]
    if not any(result.machine in machines for result in results):
        return NOT_RUN, _count(0, len(machines), "machine")
    passed = len(list(filter(partial(last_passed, results), machines)))
    return _result(passed == len(machines), _count(passed, len(machines), "machine"))


_RULES: dict[str, Callable[[Dataset], Result]] = {
    "The study measured the baseline of every speedup, with the same framework and model": _baseline,
    "Every configuration has as many runs as its tests need": _rounds,
    "Runs of all configurations are interleaved in rounds": _order,
    "Every throughput and speedup has a 95 % CI": _intervals,
    "Every 95 % CI is as narrow as the study requests": _target,
    "No number is of a run with background load": _background,
    "All planned runs completed": _completed,
    "The measured window of every run is steady": _steadiness,
    "Hardware and versions are recorded, and the same in all runs": _setup,
    "The self-test passed on the machine of the runs": _self_test,
}
