"""The rules by which a reader decides about published numbers: each met or not, with its number."""

from collections.abc import Callable

from dlperf_study.core.errors import EvidenceError
from dlperf_study.core.wording import counted
from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.study_diagnostics import mixed_environments, mixed_hosts
from dlperf_study.metrics.outcome import disturbed_configurations
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.metrics.steady_state import Answer
from dlperf_study.report import context, formatting
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.selftest.result import Machine, last_passed, read_results
from dlperf_study.study.job import ROUNDS

MET, NOT_MET, NOT_RUN = "met", "not met", "not run"
#: The result of a rule and its number; None if the rule does not apply to a study.
Result = tuple[str, str] | None

SETUP = (
    *("device", "device_name", "cpu_model", "cores", "memory_bytes", "link", "host", "launcher"),
    *("library", "library_version", "python_version", "library_settings"),
)
_CAPTION = "A rule is left out if the study has nothing that the rule applies to."
_NO_RUN = "No configuration has a throughput."


def rules(dataset: Dataset) -> Table:
    """Return each rule that applies, its result, and its number."""
    rows = []
    if len(dataset.measured):
        for rule, check in _RULES.items():
            if result := check(dataset):
                rows.append((Cell(rule), Cell(result[0]), Cell(result[1])))
    headings = (Heading("Rule"), Heading("Result"), Heading("Number"))
    caption = f"{_CAPTION}{context.quick_label(dataset)}"
    return Table("rules", "Rules of measuring", caption, headings, tuple(rows), empty=_NO_RUN)


def _result(is_met: bool, number: str) -> Result:
    return (MET if is_met else NOT_MET, number)


def _count(has: int, total: int, things: str) -> str:
    return f"{has} of {counted(total, things)}"


def _baseline(dataset: Dataset) -> Result:
    rows = dataset.measured
    scaled = rows[~rows["is_baseline"].astype(bool) & rows["baseline_identity"].notna()]
    if scaled.empty:
        return None
    matching = 0
    for row in scaled.itertuples():
        baseline = dataset.configuration_rows[row.baseline_identity]
        is_same = (row.framework, row.model) == (baseline.framework, baseline.model)
        matching += is_same and not is_missing(row.speedup)
    return _result(matching == len(scaled), _count(matching, len(scaled), "speedup"))


def _rounds(dataset: Dataset) -> Result:
    rows = dataset.measured
    fewest = int(rows["runs_counted"].min())
    missing = rows[["speedup_rounds_missing", "relative_throughput_rounds_missing"]].max(axis=None)
    fewest_runs = f"at least {counted(fewest, 'run')} of each configuration"
    if missing > 0:
        return NOT_MET, f"{fewest_runs}, {int(missing)} more needed"
    if fewest < MINIMUM_RUNS:
        return NOT_MET, f"{fewest_runs}, an interval needs {MINIMUM_RUNS}"
    if including := disturbed_configurations(dataset.runs):
        undisturbed = f"{counted(len(including), 'configuration')} with fewer than {MINIMUM_RUNS} undisturbed runs"
        return NOT_MET, f"{fewest_runs}, {undisturbed}"
    return MET, fewest_runs


def _order(dataset: Dataset) -> Result:
    runs = dataset.completed_runs
    if dataset.plan.ingested_from or runs["identity"].nunique() < 2:
        return None
    interleaved = 0
    if dataset.plan.order == ROUNDS:
        interleaved = int(runs["round"].notna().sum())
    return _result(interleaved == len(runs), _count(interleaved, len(runs), "run"))


def _intervals(dataset: Dataset) -> Result:
    rows = dataset.measured
    scaled = rows[~rows["is_baseline"].astype(bool) & rows["speedup"].notna()]
    throughputs, speedups = int(rows[f"{dataset.rate}_low"].notna().sum()), int(scaled["speedup_low"].notna().sum())
    counts = [_count(throughputs, len(rows), "throughput")]
    if len(scaled):
        counts.append(_count(speedups, len(scaled), "speedup"))
    return _result(throughputs == len(rows) and speedups == len(scaled), formatting.listed(counts))


def _target(dataset: Dataset) -> Result:
    target = dataset.plan.precision
    if target is None:
        return None
    total = len(dataset.reached_precisions)
    reached = total - len(dataset.missed_precisions)
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
    unknown = [name for name in SETUP if runs[name].isna().any()]
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
    except EvidenceError as error:
        return NOT_MET, str(error)
    rows = runs[["host", "cpu_model", "cores"]].drop_duplicates().itertuples(index=False)
    machines = [Machine(str(host), str(cpu_model), int(cores)) for host, cpu_model, cores in rows]
    if not any(result.machine in machines for result in results):
        return NOT_RUN, _count(0, len(machines), "machine")
    passed = sum(last_passed(results, machine) is not None for machine in machines)
    return _result(passed == len(machines), _count(passed, len(machines), "machine"))


_RULES: dict[str, Callable[[Dataset], Result]] = {
    "The study measured the baseline of every speedup, with the same framework and model": _baseline,
    "Every configuration has as many runs as its outcomes need": _rounds,
    "Runs of all configurations are interleaved in rounds": _order,
    "Every throughput and speedup has a 95 % CI": _intervals,
    "Every 95 % CI is as narrow as the study requests": _target,
    "No number is of a run with background load": _background,
    "All planned runs completed": _completed,
    "The measured window of every run is steady": _steadiness,
    "Hardware and versions are recorded, and the same in all runs": _setup,
    "The self-test passed on the machine of the runs": _self_test,
}
