"""The tables of the page on the self-test, and what every report says about it."""

from collections.abc import Sequence
from datetime import datetime

from dlperf_study.core.errors import EvidenceError
from dlperf_study.core.user_commands import command_line, make_command
from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.formatting import format_bounded, listed
from dlperf_study.report.tables.table import Cell, Heading, Table
from dlperf_study.report.tables.table_builders import verdict_text
from dlperf_study.selftest.evaluation import analysis_code
from dlperf_study.selftest.result import Machine, SelftestResult, Status, last_not_passed, last_passed, read_results

#: A report keeps what was so when it was built.
NEVER = "never passed on {} before this report was built{}; `{}` runs it, and the next report says so"
UNKNOWN_MACHINE = "unknown on {}: its runs do not say how many cores it has"
_OF_MACHINE = ["host", "cpu_model", "cores", "measuring_code"]
_DIGEST = 12


def checks(result: SelftestResult) -> Table:
    """Return what each check requires, and what was seen."""
    headings = tuple(map(Heading, ("Check", "Result", "Requirement", "Seen")))
    rows = []
    for check in result.checks:
        rows.append((Cell(check.name), Cell(check.status), Cell(check.requirement), Cell(check.seen)))
    machine = result.machine
    form = ""
    if result.quick:
        form = " Quick mode: it shows that the checks work, not that the instrument is right."
    caption = (
        f"Ended {_time(result)} on {machine.host} ({machine.cpu_model}, {counted(machine.cores, 'core')}), measuring "
        f"code {result.code[:_DIGEST]}, analysis code {result.analysis_code[:_DIGEST] or 'not recorded'}.{form}"
    )
    return Table("checks", "Checks", caption, headings, tuple(rows))


def comparisons(result: SelftestResult) -> Table:
    """Return every measured ratio next to the true one, by check."""
    headings = (
        Heading("Study"),
        Heading("True ratio", "×", numeric=True),
        Heading("Measured ratio", "×", numeric=True, interval=True),
        Heading("Truth inside"),
        Heading("Verdict"),
    )
    rows, groups = [], []
    for check in result.checks:
        for comparison in check.comparisons:
            if not comparison.interval or not comparison.verdict:
                continue
            true = Cell(f"{comparison.true:.4f}")
            measured = Cell(*format_bounded(comparison.measured, *comparison.interval))
            is_inside = Cell("yes" if comparison.holds_truth else "no")
            verdict = comparison.verdict
            # Some results did not keep within what two sides are equal.
            if comparison.equal_within is not None:
                verdict = verdict_text(verdict, comparison.equal_within)
            rows.append((Cell(comparison.label), true, measured, is_inside, Cell(verdict)))
            groups.append(check.name)
    caption = "Throughput relative to that of the reference of its own study, from runs in shuffled rounds."
    return Table("comparisons", "Ratios and their truth", caption, headings, tuple(rows), groups=tuple(groups))


def not_passed(result: SelftestResult) -> Table:
    """Return the checks that failed or were skipped, and why."""
    rows = []
    for check in result.checks:
        if check.status is not Status.PASSED:
            rows.append((Cell(check.name), Cell(check.status), Cell(check.seen)))
    headings = tuple(map(Heading, ("Check", "Result", "Why")))
    caption = "A skipped check says nothing about the instrument."
    empty = "Every check passed, and none was skipped."
    return Table("not-passed", "Checks that did not pass", caption, headings, tuple(rows), empty=empty)


def selftest_note(dataset: Dataset) -> str:
    """Return when the self-test last passed on each machine, if measured."""
    if dataset.plan.ingested_from:
        return ""
    try:
        results = read_results()
    except EvidenceError as error:
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
    count = f"{len(passed.done)} of {counted(len(passed.done), 'check')}"
    skipped = passed.list_names(Status.SKIPPED)
    parts = [count]
    if skipped:
        parts.append(f"skipped: {listed(skipped)}")
    if passed.quick:
        parts.append("quick mode")
    measuring = "this" if codes == {passed.code} else "other"
    analysing = "this" if passed.analysis_code == analysis_code() else "other"
    code = f"with {measuring} measuring code and {analysing} analysis code"
    note = f"last passed on {machine.host} on {_time(passed)} ({', '.join(parts)}), {code}"
    if failure:
        return f"{note}; since then {_failure(failure)}"
    return note


def _failure(result: SelftestResult) -> str:
    parts = []
    for check in result.done:
        if check.status is not Status.PASSED:
            parts.append(f"{check.name}: {check.status}")
    if result.quick:
        parts.append("quick mode")
    return f"not passed on {_time(result)} ({', '.join(parts) or 'every check was skipped'})"


def _time(result: SelftestResult) -> str:
    return f"{datetime.fromisoformat(result.ended):%d %B %Y, %H:%M} UTC"
