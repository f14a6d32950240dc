"""The rules that this project measures by, of docs/statistics.md and docs/study-files.md, and their checks."""

from collections import Counter

from dlperf_study.audit.audit import own_results
from dlperf_study.audit.checks import diagnostics_of
from dlperf_study.core.errors import EvidenceError, Severity
from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.study_diagnostics import mixed_environments, mixed_hosts
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.metrics.steady_state import Answer
from dlperf_study.report import context
from dlperf_study.report.compliance.rule import (
    NOTHING_MEASURED,
    Rule,
    RuleResult,
    of_all,
    rates,
    why_not_measured,
    with_speedup,
)
from dlperf_study.report.formatting import listed, listed_columns, plain
from dlperf_study.report.reached_precision import missed_precisions, reached_precisions
from dlperf_study.selftest.result import Machine, last_passed, read_results
from dlperf_study.study.job import ROUNDS, Outcome

#: A window of so many steps, or of so many seconds, is long enough.
LEAST_STEPS, LEAST_SECONDS = 50, 5.0
#: The audit takes 5 s of processor for so many configurations; the page *Audit* has it of any number.
MOST_AUDITED = 500


def _baselines(dataset: Dataset) -> RuleResult:
    rows = rates(dataset)
    rows = rows[~rows["is_baseline"].astype(bool) & rows["baseline_identity"].notna()]
    if rows.empty:
        return RuleResult.not_applicable("no configuration with a rate has another one as its baseline")
    has_speedup = rows["speedup"].notna()
    return RuleResult.of(bool(has_speedup.all()), of_all("configurations with a measured baseline", has_speedup))


def _rounds(dataset: Dataset) -> RuleResult:
    runs = context.completed_runs(dataset)
    if reason := why_not_measured(dataset, runs):
        return RuleResult.not_applicable(reason)
    is_in_round = runs["round"].notna()
    rounds = counted(int(runs["round"].nunique()), "round")
    return RuleResult.of(
        dataset.plan.order == ROUNDS and bool(is_in_round.all()),
        of_all(f"runs in one of {rounds}", is_in_round),
        f"the order of the study is {dataset.plan.order or 'not stated'}",
    )


def _few_runs(dataset: Dataset) -> RuleResult:
    rows = rates(dataset)
    few = rows[rows["runs_completed"] < MINIMUM_RUNS]
    if rows.empty:
        return RuleResult.not_applicable(NOTHING_MEASURED)
    has_none = few["low"].isna()
    enough = f"{len(rows) - len(few)} of {counted(len(rows), 'configuration')} have {MINIMUM_RUNS} runs or more"
    return RuleResult.of(
        bool(has_none.all()), enough, of_all("others without an interval", has_none) if len(few) else ""
    )


def _steadiness(dataset: Dataset) -> RuleResult:
    counts = context.completed_runs(dataset)["steadiness"].value_counts()
    if not counts.sum():
        return RuleResult.not_applicable("steadiness is not known of any run")
    parts = [f"{int(counts[answer])} {answer}" for answer in Answer if answer in counts]
    total, steady = int(counts.sum()), int(counts.get(Answer.STEADY, 0))
    return RuleResult.of(steady == total, f"of {counted(total, 'run')}: {listed(parts)}")


def _windows(dataset: Dataset) -> RuleResult:
    runs = context.completed_runs(dataset).dropna(subset=["steps_measured", "step_seconds"])
    if reason := why_not_measured(dataset, runs):
        return RuleResult.not_applicable(reason)
    steps = runs["steps_measured"].astype(float)
    seconds = steps * runs["step_seconds"].astype(float)
    is_long = (steps >= LEAST_STEPS) | (seconds >= LEAST_SECONDS)
    shortest = f"the fewest steps are {int(steps.min())}, the shortest time is {plain(float(seconds.min()))} s"
    return RuleResult.of(bool(is_long.all()), of_all("windows of that length", is_long), shortest)


def _quiet(dataset: Dataset) -> RuleResult:
    runs = context.completed_runs(dataset)
    if reason := why_not_measured(dataset, runs):
        return RuleResult.not_applicable(reason)
    disturbed = context.disturbed_runs(dataset)
    busy = f"background load disturbed {disturbed} of {counted(len(runs), 'run')}"
    return RuleResult.of(not disturbed, busy)


def _one_environment(dataset: Dataset) -> RuleResult:
    runs = context.completed_runs(dataset)
    if runs.empty:
        return RuleResult.not_applicable(NOTHING_MEASURED)
    compared = [name for name, metric in COLUMNS.items() if metric.same_within and runs[name].notna().any()]
    # Whether the code is committed is a rule of its own.
    compared = [name for name in compared if name != "git_dirty"]
    if not compared:
        return RuleResult.not_applicable("no fact of the machine or the code is known")
    mixed = [*mixed_environments(runs), *mixed_hosts(runs)]
    different = dict.fromkeys(diagnostic.subject for diagnostic in mixed if diagnostic.subject != "git_dirty")
    facts = f"{counted(len(compared), 'fact')} of device, machine, library and code compared"
    differing = f"different: {listed_columns(different)}" if different else "none differs"
    return RuleResult.of(not different, facts, differing)


def _committed(dataset: Dataset) -> RuleResult:
    runs = context.completed_runs(dataset)
    if reason := why_not_measured(dataset, runs):
        return RuleResult.not_applicable(reason)
    is_clean = runs["git_dirty"].eq(False).fillna(False).astype(bool)
    unknown = int(runs["git_dirty"].isna().sum())
    return RuleResult.of(
        bool(is_clean.all()),
        of_all("runs with a clean commit", is_clean),
        f"not known of {unknown}" if unknown else "",
    )


def _complete(dataset: Dataset) -> RuleResult:
    runs = dataset.runs
    if runs.empty:
        return RuleResult.not_applicable("there is no run")
    is_result = runs["outcome"].isin([Outcome.COMPLETED, Outcome.OUT_OF_MEMORY])
    has_reason = runs.loc[~is_result, "reason"].fillna("") != ""
    reasons = of_all("others that say why", has_reason) if len(has_reason) else ""
    return RuleResult.of(bool(is_result.all()), of_all("runs that count", is_result), reasons)


def _self_test(dataset: Dataset) -> RuleResult:
    runs = context.completed_runs(dataset).dropna(subset=["cores"])
    if reason := why_not_measured(dataset, runs):
        return RuleResult.not_applicable(reason)
    try:
        results = read_results()
    except EvidenceError as error:
        return RuleResult.of(False, f"not known: {error}")
    machines = runs[["host", "cpu_model", "cores"]].drop_duplicates().itertuples(index=False)
    passed = [last_passed(results, Machine(str(host), str(cpu), int(cores))) for host, cpu, cores in machines]
    count = sum(result is not None for result in passed)
    of_machines = f"{count} of {counted(len(passed), 'machine')} of the runs"
    return RuleResult.of(count == len(passed), f"the self-test passed on {of_machines}")


def _audited(dataset: Dataset) -> RuleResult:
    if len(dataset.configurations) > MOST_AUDITED:
        return RuleResult.not_applicable(f"not audited here with more than {MOST_AUDITED} configurations")
    results = own_results(dataset)
    examined = sum(result.examined for result in results)
    if not examined:
        return RuleResult.not_applicable(NOTHING_MEASURED)
    diagnostics = diagnostics_of(results)
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity == Severity.ERROR]
    severities = Counter(diagnostic.severity for diagnostic in diagnostics)
    checks = sum(result.examined > 0 for result in results)
    return RuleResult.of(
        not errors,
        f"{counted(checks, 'check')} of the audit examined {counted(examined, 'item')}",
        listed(counted(severities[severity], severity.value) for severity in reversed(Severity)),
        f"the first error, of {errors[0].check}: {errors[0].computation}" if errors else "",
    )


def _precision(dataset: Dataset) -> RuleResult:
    plan = dataset.plan
    if plan.precision is None:
        return RuleResult.not_applicable("the study asks for no precision")
    reached, total = reached_precisions(dataset), len(plan.runnable)
    if not reached:
        return RuleResult.not_applicable(NOTHING_MEASURED)
    narrow = len(reached) - len(missed_precisions(dataset))
    configurations, wanted = counted(total, "configuration"), f"± {100 * plan.precision:g} %"
    return RuleResult.of(narrow == total, f"{narrow} of {configurations} reached {wanted} in every interval")


def _physical(dataset: Dataset) -> RuleResult:
    rows, of_several = rates(dataset), with_speedup(dataset)
    shares, diagnostics = rows["mfu"].dropna(), dataset.diagnostics
    if shares.empty and of_several.empty:
        return RuleResult.not_applicable("neither a share of a peak nor a speedup is known")
    is_error = diagnostics["severity"].eq(Severity.ERROR) & diagnostics["subject"].isin(["mfu", "speedup"])
    impossible = int(is_error.sum())
    largest = f", the largest {plain(float(shares.max()))}" if len(shares) else ""
    return RuleResult.of(
        not impossible,
        f"{counted(len(shares), 'share')} of a peak{largest}",
        counted(len(of_several), "speedup"),
        f"{impossible} of these impossible",
    )


OWN_RULES = (
    Rule("Baseline", "A speedup is relative to a declared baseline that the same study measured.", _baselines),
    Rule("Rounds", "Runs are measured in shuffled rounds, and compared within them.", _rounds),
    Rule("Runs", f"With fewer than {MINIMUM_RUNS} runs nothing has an interval.", _few_runs),
    Rule("Steady state", "The window of every run is shown to be steady.", _steadiness),
    Rule("Window", f"A window has {LEAST_STEPS} steps or {LEAST_SECONDS:g} s at least.", _windows),
    Rule("Quiet machine", "No other program keeps cores busy.", _quiet),
    Rule("Environment", "What is compared was measured with the same devices, versions and code.", _one_environment),
    Rule("Commit", "All code that measured is in a commit.", _committed),
    Rule("Every run", "Every run that began counts, or did not fit in memory.", _complete),
    Rule("Self-test", "The instrument found known answers on the machine of the runs.", _self_test),
    Rule("Audit", "The numbers of the study do not contradict each other.", _audited),
    Rule("Precision", "Intervals are as narrow as the study asks.", _precision),
    Rule("Physics", "No rate is above what devices can do.", _physical),
)
