"""What changed between two measurements, and over all measurements of a study: tables, and sentences made from them."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from dlperf_study.core.errors import RecordError
from dlperf_study.core.wording import list_first
from dlperf_study.dataset.history import Measurement
from dlperf_study.dataset.measurement_comparison import Change, MeasurementComparison, compare_measurements
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.drift import MINIMUM_DATES
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.report import formatting, page_findings
from dlperf_study.report.formatting import text_if
from dlperf_study.report.say import caption
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.table import Cell, Heading, Table, as_text, make_table
from dlperf_study.report.tables.table_builders import significance_text

MOST_DATES = 6
_MOST_NAMED = 6
_SHORT = {"measuring_code": 12, "git_commit": 12, "library_settings": 120, "host": 120}
_CHANGE = Heading.number("Change", "×", interval=True)
_AGAINST_MEAN = (Heading.number("Change against the mean", "×", interval=True), Heading("Significance"))


def throughput_changes(comparison: MeasurementComparison) -> Table:
    """Return each configuration's throughput in both measurements and its change."""
    about = caption("throughput-changes", before=comparison.before.title, after=comparison.after.title)
    throughputs = _throughputs(comparison.before), _throughputs(comparison.after)
    rows = _change_rows(comparison, comparison.throughputs, throughputs, _words("too_few_runs", MINIMUM_RUNS))
    headings = _change_headings(comparison.throughputs, COLUMNS[comparison.after.dataset.throughput_column].unit)
    notes = (_words("within"), _note(comparison.throughputs), *_not_compared(comparison))
    return make_table("throughput-changes", headings, rows, about, notes=notes)


def speedup_changes(comparison: MeasurementComparison) -> Table:
    """Return each configuration's speedup in both measurements and its change."""
    speedups = _speedups(comparison.before), _speedups(comparison.after)
    rows = _change_rows(comparison, comparison.speedups, speedups, "the speedup of one of the two has no interval")
    headings, notes = _change_headings(comparison.speedups, "×"), [_note(comparison.speedups)]
    return make_table("speedup-changes", headings, rows, caption("speedup-changes"), notes=notes)


def _words(part: str, needed: int = MINIMUM_DATES) -> str:
    return caption("throughput-changes", part, needed=needed)


def _change_headings(changes: Sequence[Change], unit: str) -> tuple[Heading, ...]:
    return (
        *_headings(("Before", "After"), unit),
        _CHANGE,
        *(_AGAINST_MEAN if _is_against_mean(changes) else ()),
    )


def _headings(columns: Sequence[str], unit: str) -> tuple[Heading, ...]:
    return (Heading("Configuration"), *(Heading.number(name, unit, interval=True) for name in columns))


def _note(changes: Sequence[Change]) -> str:
    if _is_against_mean(changes):
        return _words("over_dates")
    return _words("dates_unknown")


def _is_against_mean(changes: Sequence[Change]) -> bool:
    return any(change.dates.change_against_mean is not None for change in changes)


def condition_changes(comparison: MeasurementComparison) -> Table:
    """Return the recorded conditions that differ between two measurements."""
    rows = []
    for change in comparison.conditions:
        column, cells = change.column, [COLUMNS[change.column].label]
        for values in (change.before, change.after):
            if column in _SHORT:
                names = [value[: _SHORT[column]] for value in values]
            else:
                names = list(map(formatting.display_name, values))
            cells.append(formatting.listed(names) or "not recorded")
        rows.append(cells)
    nothing_in_common = text_if(not comparison.has_common_configurations, caption("throughput-changes", "empty"))
    headings, about = ("Recorded", "Before", "After"), caption("condition-changes")
    return make_table("condition-changes", headings, rows, about, empty=nothing_in_common)


def dates(measurements: Sequence[Measurement]) -> Table:
    """Return the throughput of each configuration in the last MOST_DATES measurements."""
    shown, labels = measurements[-MOST_DATES:], configuration_labels(measurements[-1].dataset)
    throughputs, rows = list(map(_throughputs, shown)), []
    missing = Cell.missing(caption("dates", "missing"))
    # Of two dates, the table of the last change has all of it.
    for configuration_id in measurements[-1].throughputs if len(measurements) > 2 else ():
        rows.append(
            (labels[configuration_id], *(throughput.get(configuration_id, missing) for throughput in throughputs))
        )
    headings = _headings(list(map(attrgetter("begun"), shown)), COLUMNS[shown[-1].dataset.throughput_column].unit)
    return make_table("dates", headings, rows, caption("dates"))


def _change_rows(
    comparison: MeasurementComparison,
    changes: Sequence[Change],
    values: tuple[dict[str, Cell], dict[str, Cell]],
    no_interval: str,
) -> list[list[Any]]:
    labels, (before, after) = comparison_labels(comparison), values
    rows = []
    for change in changes:
        ratio = Cell.of(change.dates.log_ratio.bounded_factor, no_interval, decision=1)
        row = [labels[change.configuration_id], before[change.configuration_id], after[change.configuration_id], ratio]
        if _is_against_mean(changes):
            row += _cells_against_mean(change)
        rows.append(row)
    return rows


def _cells_against_mean(change: Change) -> tuple[Cell, Cell]:
    if change.dates.change_against_mean is None:
        return (Cell.missing(_words("too_few_dates")),) * 2
    change_against_mean = Cell.of(change.dates.change_against_mean.bounded_factor, _words("equal_dates"), decision=1)
    if change.significance.word is None or change.significance.equal_within is None:
        return change_against_mean, Cell.missing(_words("equal_dates"))
    return change_against_mean, Cell(significance_text(change.significance.word, change.significance.equal_within))


def _not_compared(comparison: MeasurementComparison) -> Iterator[str]:
    """Yield the configurations that cannot be compared, by reason."""
    labels = comparison_labels(comparison)
    for reason, configuration_ids in (
        (f"Only in {comparison.before.name}", comparison.only_before),
        (f"Only in {comparison.after.name}", comparison.only_after),
        ("Not compared, because the two trained different numbers of parameters", comparison.other_networks),
    ):
        if configuration_ids:
            names = [labels[name] for name in configuration_ids]
            yield f"{reason}: {list_first(names, _MOST_NAMED, '; ')}."


def comparison_labels(comparison: MeasurementComparison) -> dict[str, str]:
    """Return what each configuration of two measurements is called, by identity."""
    return configuration_labels(comparison.before.dataset) | configuration_labels(comparison.after.dataset)


def _throughputs(measurement: Measurement) -> dict[str, Cell]:
    return _cells(
        measurement, measurement.dataset.throughput_column, caption("dates", "no_interval", needed=MINIMUM_RUNS)
    )


def _speedups(measurement: Measurement) -> dict[str, Cell]:
    return _cells(measurement, "speedup", "no interval: see the report of that measurement")


def _cells(measurement: Measurement, column: str, no_interval: str) -> dict[str, Cell]:
    rows = measurement.dataset.configurations.dropna(subset=column)
    cells = {}
    for row in rows.itertuples():
        printed, interval = formatting.format_column(row, column)
        cells[row.configuration_id] = Cell(printed, interval, text_if(not interval, no_interval))
    return cells


def last_comparison(measurements: Sequence[Measurement]) -> MeasurementComparison:
    """Return the last change; raises RecordError for one measurement."""
    if len(measurements) < 2:
        plan = measurements[-1].dataset.plan
        remedy = text_if(not plan.ingested_from, f": `{plan.rerun_command}` does so again")
        raise RecordError(f"study {plan.study} was measured once{remedy}")
    return compare_measurements(measurements[-2], measurements[-1])


def describe(comparison: MeasurementComparison) -> str:
    """Return the changes between two measurements as text."""
    parts = ["\n".join(page_findings.history(comparison).sentences), _words("within")]
    for table in (throughput_changes(comparison), speedup_changes(comparison), condition_changes(comparison)):
        if table.rows:
            parts.append(f"{table.title}\n{as_text(table)}")
    return "\n\n".join(parts)
