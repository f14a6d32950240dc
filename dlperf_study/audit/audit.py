"""All checks over a table of results, and their diagnostics as text, frame and JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from itertools import chain
from statistics import median
from typing import Any

import pandas as pd

from dlperf_study.audit import quantities, result_frames
from dlperf_study.audit.checks import (
    AuditDiagnostic,
    AuditResult,
    Check,
    list_diagnostics,
    load_all,
)
from dlperf_study.audit.reading.column_names import Use
from dlperf_study.audit.reading.column_readings import ColumnReading, is_canonical
from dlperf_study.audit.reading.numbers import MOST_ERRORS
from dlperf_study.audit.reading.table_file import TablesOfFile, read_frame
from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results, grouped
from dlperf_study.core.errors import Severity, TableError
from dlperf_study.core.terminal import text_table
from dlperf_study.core.wording import counted, list_first
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset

MOST_CELLS, MOST_COLUMNS = 3, 8
#: What a line says of one diagnostic, of two, and else "all" of them.
_ALL_OF = {1: "", 2: "both "}
#: How many of the numbers that have the same diagnostic it shows: those that deviate most.
MOST_NUMBERS = 3
_MOST_TABLES = 3
_RATIOS = (quantities.SPEEDUP, quantities.RELATIVE)
_HEADINGS = ("column", "read as", "unit", "scope", "tables")


def audit(results: Results, each_number: bool = False) -> list[AuditResult]:
    """Run every check."""
    return [_examine(check, results, each_number) for check in load_all()]


def _examine(check: Check, results: Results, each_number: bool) -> AuditResult:
    diagnostics: list[AuditDiagnostic] = []
    compared: set[str] = set()
    examined = 0
    for outcome in check.examine(results):
        examined += 1
        if isinstance(outcome, AuditDiagnostic):
            diagnostics.append(replace(outcome, check=check.name))
            cells = outcome.cells if outcome.compared is None else outcome.compared
        else:
            cells = outcome or ()
        if check.compares:
            compared.update(cell.key for cell in cells)
    # Several tables may have the same numbers: diagnostics with the same computation become one, with all cells.
    groups = list(grouped(diagnostics, lambda diagnostic: diagnostic.computation).values())
    merged = [replace(group[0], cells=_unique_cells(group)) for group in groups]
    if not each_number:
        merged = [_summary(group) for group in grouped(merged, _kind).values()]
    return AuditResult(check, examined, tuple(merged), frozenset(compared))


@kept_with_dataset
def own_results(dataset: Dataset) -> list[AuditResult]:
    """Return the checks of the configurations and runs of a study."""
    return audit(result_frames.read_dataset_results(dataset))


@kept_with_dataset
def published_results(dataset: Dataset) -> list[AuditResult]:
    """Return the checks of the published sources of a study, if any."""
    names = dataset.plan.published
    if names:
        return audit(result_frames.read_published_results(names))
    return []


def _unique_cells(diagnostics: Iterable[AuditDiagnostic]) -> tuple[ResultCell, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(diagnostic.cells for diagnostic in diagnostics)))


def _kind(diagnostic: AuditDiagnostic) -> tuple[object, ...]:
    """Return the key that similar diagnostics of one column share."""
    cell = diagnostic.cells[0]
    return diagnostic.severity, cell.get("source"), cell.metric, diagnostic.explanations


def _summary(group: Sequence[AuditDiagnostic]) -> AuditDiagnostic:
    """Merge diagnostics of a column; show the largest deviations."""
    ordered = sorted(group, key=lambda diagnostic: -(diagnostic.deviation or 0))
    computation = "; ".join(diagnostic.computation for diagnostic in ordered[:MOST_NUMBERS])
    if len(group) > MOST_NUMBERS:
        computation = f"{counted(len(group), 'number')}: {computation}; …"
    deviations = [diagnostic.deviation for diagnostic in group if diagnostic.deviation]
    if len(deviations) > 1:
        computation += f". They deviate by {median(deviations):.2%} typically, and by {max(deviations):.2%} at most"
    return replace(ordered[0], cells=_unique_cells(ordered), computation=computation)


def _compared(check_results: Iterable[AuditResult]) -> set[str]:
    """Return the keys of all compared results."""
    return set(chain.from_iterable(result.compared for result in check_results))


def uncompared_tables(results: Results, check_results: Iterable[AuditResult]) -> list[str]:
    """Return the names of tables without a comparison."""
    compared, names = _compared(check_results), []
    for name, cells in grouped(results.cells, lambda cell: str(cell.get("table") or cell.get("source") or "")).items():
        if compared.isdisjoint(cell.key for cell in cells):
            names.append(name)
    return names


def describe(check_results: Sequence[AuditResult]) -> str:
    """Return the diagnostics, errors first; then what each check examined."""
    paragraphs = []
    for diagnostic in list_diagnostics(check_results):
        paragraph = f"{diagnostic.severity} ({diagnostic.check}): {diagnostic.computation}\n"
        paragraph += f"  cells: {cited_cells(diagnostic)}"
        if diagnostic.explanations:
            paragraph += f"\n  possible explanations: {'; or '.join(diagnostic.explanations)}"
        paragraphs.append(paragraph)
    rows: list[tuple[str, ...]] = []
    idle = []
    for result in check_results:
        check = result.check
        if result.examined:
            rows.append((check.name, check.question, str(result.examined), check.examines, severity_counts(result)))
        else:
            idle.append(check.name)
    examined = []
    if rows:
        examined.append(text_table(("check", "question", "examined", "examines", "result"), rows))
    if idle:
        examined.append(f"nothing to examine: {', '.join(idle)}")
    return "\n\n".join([*paragraphs, "\n".join(examined)])


def significance(check_results: Sequence[AuditResult], source: str) -> str:
    """Return one line: the diagnostics of a source and the most severe rows."""
    diagnostics = list_diagnostics(check_results)
    if not diagnostics:
        return f"{source}: no number contradicts the others"
    counts = _count_severities(diagnostics)
    most_severe = [diagnostic for diagnostic in diagnostics if diagnostic.severity is diagnostics[0].severity]
    rows: dict[str, None] = {}
    for diagnostic in most_severe:
        # The row of ``table.csv/row 3/speedup`` is ``row 3``.
        row, _, metric = diagnostic.cells[0].key.removeprefix(f"{source}/").rpartition("/")
        rows[row or metric] = None
    about = " about"
    if len(rows) == 1:
        about = f", {_ALL_OF.get(len(most_severe), 'all ')}about"
    counts[0] += f"{about} {list_first(list(rows), MOST_CELLS)}"
    return f"{source}: {'; '.join(counts)}"


def content(check_results: Sequence[AuditResult]) -> dict[str, Any]:
    """Return what each check examined and every diagnostic, for JSON."""
    listed = []
    for diagnostic in list_diagnostics(check_results):
        described = {
            "severity": diagnostic.severity,
            "check": diagnostic.check,
            "computation": diagnostic.computation,
            "explanations": diagnostic.explanations,
            "cells": diagnostic.keys,
        }
        listed.append(described)
    examined = []
    for result in check_results:
        examined.append({"check": result.check.name, "examined": result.examined})
    return {"checks": examined, "diagnostics": listed}


def cited_cells(diagnostic: AuditDiagnostic) -> str:
    """Return the keys of the first cells of a diagnostic."""
    return list_first(diagnostic.keys, MOST_CELLS, "; ")


def severity_counts(result: AuditResult) -> str:
    """Return the diagnostics of a check by severity: ``1 error, 2 notes``."""
    if not result.examined:
        return "nothing to examine"
    return ", ".join(_count_severities(result.diagnostics)) or "nothing found"


def _count_severities(diagnostics: Iterable[AuditDiagnostic]) -> list[str]:
    by_severity = grouped(diagnostics, lambda diagnostic: diagnostic.severity)
    return [counted(len(by_severity[each]), each.value) for each in reversed(Severity) if each in by_severity]


def describe_columns(tables: TablesOfFile, check_results: Sequence[AuditResult]) -> str:
    """Return how columns were read, warnings, and compared results."""
    rows = []
    for columns in grouped(tables.columns, lambda column: (column.header, column.meaning)).values():
        meaning = columns[0].meaning
        names = dict.fromkeys(column.table.partition(" (")[0].removeprefix("table ") for column in columns)
        tables_phrase = list_first(list(names), _MOST_TABLES)
        rows.append((columns[0].header, read_as(columns[0]), meaning.unit, meaning.scope, tables_phrase))
    warnings = "\n".join(map("warning: {}".format, reading_warnings(tables, check_results)))
    shown = len(_HEADINGS)
    if len({column.table for column in tables.columns}) == 1:
        shown -= 1
    table = ""
    if rows:
        table = text_table(_HEADINGS[:shown], [row[:shown] for row in rows])
    counts = count_compared(tables, check_results)
    of_columns = [f"{column} {compared} of {read}" for column, (compared, read) in counts.items()]
    compared, read = _totals(counts)
    line = f"{compared} of {counted(read, 'result')} were recomputed from other results"
    if of_columns:
        line += f": {list_first(of_columns, MOST_COLUMNS)}"
    return "\n\n".join(filter(None, (table, warnings, line)))


def count_compared(tables: TablesOfFile, check_results: Iterable[AuditResult]) -> dict[str, tuple[int, int]]:
    """Return how many results of each column were compared, and read."""
    headers: dict[str, dict[str, None]] = {}
    for column in tables.columns:
        if column.is_metric:
            headers.setdefault(column.meaning.name, {})[column.header] = None
    compared = _compared(check_results)
    counts: dict[str, tuple[int, int]] = {}
    for cell in tables.results.cells:
        column_name = str(cell.get("column") or cell.metric)
        if column_name == cell.metric:
            # The ratio of two variants is in a column of speedups.
            named = headers.get(cell.metric) or headers.get(quantities.SPEEDUP if cell.metric in _RATIOS else "")
            column_name = ", ".join(named or [column_name])
        of_column, read = counts.get(column_name, (0, 0))
        counts[column_name] = of_column + (cell.key in compared), read + 1
    return counts


def _totals(counts: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    return sum(compared for compared, _ in counts.values()), sum(read for _, read in counts.values())


def reading_warnings(tables: TablesOfFile, check_results: Iterable[AuditResult]) -> Iterator[str]:
    """Yield rejected cells, unchecked columns and tables without results."""
    if tables.refused:
        yield f"rejected: {list_first(tables.refused, MOST_ERRORS, '; ')}"
    for reason, columns in grouped(tables.columns, lambda column: column.unused_numbers).items():
        if reason:
            headers = ", ".join(dict.fromkeys(column.header for column in columns))
            yield f"numbers not checked: {headers}: {reason}"
    if tables.tables_without_results:
        yield f"no column of results: {'; '.join(tables.tables_without_results)}"
    if uncompared := uncompared_tables(tables.results, check_results):
        yield f"no result follows from other results, so only limits and curves were checked: {'; '.join(uncompared)}"


def columns_content(tables: TablesOfFile, check_results: Sequence[AuditResult]) -> dict[str, Any]:
    """Return how each column was read, and the warnings, for JSON."""
    columns = []
    for column in tables.columns:
        meaning = column.meaning
        declared = {"unit": meaning.unit, "scope": meaning.scope, "why_not_checked": column.unused_numbers}
        columns.append({"table": column.table, "column": column.header, "read_as": read_as(column), **declared})
    of_columns = {}
    counts = count_compared(tables, check_results)
    for name, (compared, read) in counts.items():
        of_columns[name] = {"compared": compared, "read": read}
    compared, read = _totals(counts)
    counted_results = {"compared": compared, "read": read, "columns": of_columns}
    warnings = list(reading_warnings(tables, check_results))
    return {"columns": columns, "numbers": counted_results, "refused": tables.refused, "warnings": warnings}


def read_as(column: ColumnReading) -> str:
    """Return what a column is read as, in words."""
    meaning = column.meaning
    if meaning.use is Use.METRIC:
        if meaning.label:
            return f"{meaning.name} ({meaning.label})"
        return meaning.name
    if meaning.use is Use.CONDITION:
        is_own = meaning.name in (column.header, "parallel", "micro batch")
        if is_own and not is_canonical(column.header):
            return "condition"
        return meaning.name
    if meaning.use is Use.NONE:
        return str(meaning.use)
    if meaning.use is Use.BASELINE:
        return f"{meaning.name} of the baseline"
    if meaning.use is Use.SUMMARY:
        return f"{meaning.name} of the runs"
    return "one run"


class FrameAudit:
    """The audit of a frame: ``diagnostics``, errors first, and all ``results``."""

    def __init__(self, results: list[AuditResult], tables: TablesOfFile | None = None) -> None:
        self.results, self.warnings, self._columns = results, list[str](), ""
        if tables:
            self.warnings = list(reading_warnings(tables, results))
            self._columns = describe_columns(tables, results)

    @cached_property
    def diagnostics(self) -> pd.DataFrame:
        """One row per diagnostic; ``cells`` and ``explanations`` are tuples of texts."""
        columns = ["severity", "check", "cells", "computation", "explanations"]
        frame = pd.DataFrame(content(self.results)["diagnostics"], columns=columns)
        return frame.assign(severity=frame["severity"].map(str), cells=frame["cells"].map(tuple))

    def __repr__(self) -> str:
        return "\n\n".join(filter(None, (self._columns, describe(self.results))))

    def _repr_html_(self) -> str:
        examined = sum(result.examined for result in self.results)
        warnings = "".join(f"<p>warning: {escape(warning)}</p>" for warning in self.warnings)
        counts = f"<p>{examined} items examined by {len(self.results)} checks</p>"
        return f"{warnings}{counts}{self.diagnostics.to_html(index=False)}"


def audit_frame(frame: pd.DataFrame) -> FrameAudit:
    """Recompute a table of results from its own numbers.

    ``frame``: as ``published`` returns it, with a number in each row, or with a row for each configuration and a column
    for each metric and condition, named as in any table that the command ``audit`` reads. Numbers that are texts keep
    the zeros they were printed with.

    Raises TableError if it is no frame or has no metric, or fields that are no numbers.
    """
    if not isinstance(frame, pd.DataFrame):
        raise TableError(
            f"audit needs a pandas DataFrame, not {type(frame).__name__}; use `dlperf-study audit` for a file"
        )
    if {result_frames.METRIC, result_frames.VALUE} <= set(frame.columns):
        return FrameAudit(audit(result_frames.read_results_frame(frame)))
    tables = read_frame(frame)
    return FrameAudit(audit(tables.results), tables)
