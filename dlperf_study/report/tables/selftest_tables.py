"""The tables of the page on the self-test, and what every report says about it."""

from collections.abc import Sequence
from datetime import datetime

from dlperf_study.core.errors import RecordError
from dlperf_study.core.user_commands import command_line, make_command
from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.formatting import format_bounded, listed
from dlperf_study.report.say import caption
from dlperf_study.report.tables.table import Cell, Heading, Table, make_table
from dlperf_study.report.tables.table_builders import significance_text
from dlperf_study.selftest.evaluation import analysis_code
from dlperf_study.selftest.result import Machine, SelftestResult, Status, last_not_passed, last_passed, read_results

#: A report keeps what was so when it was built.
NEVER = "never passed on {} before this report was built{}; `{}` runs it, and the next report says so"
UNKNOWN_MACHINE = "unknown on {}: its runs do not say how many cores it has"
_OF_MACHINE = ["host", "cpu_model", "cores", "measuring_code"]
_DIGEST = 12


def checks(result: SelftestResult) -> Table:
    """Return what each check requires, and what was seen."""
    rows = [(check.name, check.status, check.requirement, check.seen) for check in result.checks]
    machine = result.machine
    about = (
        f"Ended {_time(result)} on {machine.host} ({machine.cpu_model}, {counted(machine.cores, 'core')}), measuring "
        f"code {result.code[:_DIGEST]}, analysis code {result.analysis_code[:_DIGEST] or 'not recorded'}."
    )
    if result.quick:
        about += f" {caption('checks', 'quick')}"
    return make_table("checks", ("Check", "Result", "Requirement", "Seen"), rows, about)


def comparisons(result: SelftestResult) -> Table:
    """Return every measured ratio next to the true one, by check."""
    ratios = Heading.number("True ratio", "×"), Heading.number("Measured ratio", "×", interval=True)
    rows, groups = [], []
    for check in result.checks:
        for comparison in check.comparisons:
            if not comparison.interval or not comparison.significance:
                continue
            measured = Cell(*format_bounded(comparison.measured, *comparison.interval))
            is_inside = "yes" if comparison.holds_truth else "no"
            significance = comparison.significance
            # Some results did not keep within what two sides are equal.
            if comparison.equal_within is not None:
                significance = significance_text(significance, comparison.equal_within)
            rows.append((comparison.label, f"{comparison.true:.4f}", measured, is_inside, significance))
            groups.append(check.name)
    headings = ("Study", *ratios, "Truth inside", "Significance")
    return make_table("comparisons", headings, rows, caption("comparisons"), groups=groups)


def not_passed(result: SelftestResult) -> Table:
    """Return the checks that failed or were skipped, and why."""
    checks = (check for check in result.checks if check.status is not Status.PASSED)
    rows = [(check.name, check.status, check.seen) for check in checks]
    return make_table("not-passed", ("Check", "Result", "Why"), rows, caption("not-passed"))


def selftest_note(dataset: Dataset) -> str:
    """Return when the self-test last passed on each machine, if measured."""
    if dataset.plan.ingested_from:
        return ""
    try:
        results = read_results()
    except RecordError as error:
        return f"unknown: {error}"
    runs = dataset.completed_runs[_OF_MACHINE]
    codes: dict[Machine, set[str]] = {}
    for host, cpu_model, cores, code in runs.dropna(subset="cores").drop_duplicates().itertuples(index=False):
        codes.setdefault(Machine(str(host), str(cpu_model), int(cores)), set()).add(str(code))
    # Make is called in the checkout, and the study of a user's program is elsewhere.
    command = command_line("selftest") if dataset.plan.is_program else make_command("selftest")
    notes = [_note_on_machine(results, machine, codes[machine], command) for machine in codes]
    notes += map(UNKNOWN_MACHINE.format, runs.loc[runs["cores"].isna(), "host"].unique())
    return "; ".join(notes)


def _note_on_machine(results: Sequence[SelftestResult], machine: Machine, codes: set[str], command: str) -> str:
    passed = last_passed(results, machine)
    failure = last_not_passed(results, machine, passed)
    if passed is None:
        return NEVER.format(machine.host, f"; {_failure(failure)}" if failure else "", command)
    skipped = passed.list_names(Status.SKIPPED)
    parts = [f"{len(passed.done)} of {counted(len(passed.done), 'check')}"]
    if skipped:
        parts.append(f"skipped: {listed(skipped)}")
    if passed.quick:
        parts.append("quick mode")
    measuring = "this" if codes == {passed.code} else "other"
    analysing = "this" if passed.analysis_code == analysis_code() else "other"
    code = f"with {measuring} benchmark code and {analysing} analysis code"
    note = f"last passed on {machine.host} on {_time(passed)} ({', '.join(parts)}), {code}"
    if failure:
        return f"{note}; since then {_failure(failure)}"
    return note


def _failure(result: SelftestResult) -> str:
    parts = [f"{check.name}: {check.status}" for check in result.done if check.status is not Status.PASSED]
    if result.quick:
        parts.append("quick mode")
    return f"not passed on {_time(result)} ({', '.join(parts) or 'every check was skipped'})"


def _time(result: SelftestResult) -> str:
    return f"{datetime.fromisoformat(result.ended):%d %B %Y, %H:%M} UTC"
