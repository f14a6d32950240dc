"""What changed between two measurements, and over all measurements of a study: tables, and sentences made from them."""

from collections.abc import Iterator, Sequence

from dlperf_study.core.errors import EvidenceError
from dlperf_study.core.wording import first_of
from dlperf_study.dataset.history import Measurement
from dlperf_study.dataset.measurement_comparison import Change, MeasurementComparison, compare_measurements
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.drift import MINIMUM_DATES
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.report import formatting, page_findings
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.table import Cell, Heading, Table, as_text
from dlperf_study.report.tables.table_builders import verdict_text

MOST_DATES = 6
_MOST_NAMED = 6
_SHORT = {"measuring_code": 12, "git_commit": 12, "library_settings": 120, "host": 120}
WITHIN_DATES = (
    "The 95 % CI of a change covers the variation between runs of the two measurements, and not the variation between "
    "measurements: an idle machine is not equally fast on two days."
)
DATES_UNKNOWN = (
    f"The variation between measurements is known from {MINIMUM_DATES} earlier measurements on. With fewer, no "
    "throughput is called faster, slower or equal, and no speedup higher or lower."
)
OVER_DATES = (
    "Departure: after / mean of all earlier measurements, with the 95 % CI of one further measurement. Verdicts are of "
    "departures, corrected together (Holm): with a probability of at least 95 % none wrongly says faster, slower, "
    "higher or lower."
)
_CHANGE = Heading("Change", "×", numeric=True, interval=True)
_DEPARTURE = (Heading("Departure", "×", numeric=True, interval=True), Heading("Verdict"))
_NOT_ENOUGH_RUNS = f"fewer than {MINIMUM_RUNS} completed runs in one of the two, or equal runs: no interval"
_TOO_FEW_DATES = f"fewer than {MINIMUM_DATES} earlier measurements have this value"
_EQUAL_DATES = "all earlier measurements have the same value: no interval"
_NO_INTERVAL_OF_SPEEDUP = "the speedup of one of the two has no interval"
NOTHING_RECORDED = (
    "No recorded setting, version or machine differs between them: a change comes from the state of the machine, such "
    "as other programs, or from something that is not recorded."
)

NOTHING_IN_COMMON = "No configuration has completed runs in both."


def throughput_changes(comparison: MeasurementComparison) -> Table:
    """Return each configuration's throughput in both measurements and its change."""
    caption = f"Before: {comparison.before.title}. After: {comparison.after.title}."
    rates = _rates(comparison.before), _rates(comparison.after)
    rows = _change_rows(comparison, comparison.throughputs, rates, _NOT_ENOUGH_RUNS)
    headings = _change_headings(comparison.throughputs, COLUMNS[comparison.after.dataset.rate].unit)
    notes = (WITHIN_DATES, _note(comparison.throughputs), *_not_compared(comparison))
    return Table("throughput-changes", "Changes of throughput", caption, headings, rows, notes, NOTHING_IN_COMMON)


def speedup_changes(comparison: MeasurementComparison) -> Table:
    """Return each configuration's speedup in both measurements and its change."""
    caption = (
        "Each speedup is against the baseline of its own measurement, so what makes a whole measurement faster or "
        "slower cancels. A speedup is higher or lower if its configuration or its baseline changed."
    )
    speedups = _speedups(comparison.before), _speedups(comparison.after)
    rows = _change_rows(comparison, comparison.speedups, speedups, _NO_INTERVAL_OF_SPEEDUP)
    headings, empty = _change_headings(comparison.speedups, "×"), "The two have no speedup in common."
    notes = (_note(comparison.speedups),)
    return Table("speedup-changes", "Changes of speedup", caption, headings, rows, notes, empty)


def _change_headings(changes: Sequence[Change], unit: str) -> tuple[Heading, ...]:
    return (*_headings(("Before", "After"), unit), _CHANGE, *(_DEPARTURE if _has_departure(changes) else ()))


def _headings(columns: Sequence[str], unit: str) -> tuple[Heading, ...]:
    return (Heading("Configuration"), *(Heading(name, unit, numeric=True, interval=True) for name in columns))


def _note(changes: Sequence[Change]) -> str:
    if _has_departure(changes):
        return OVER_DATES
    return DATES_UNKNOWN


def _has_departure(changes: Sequence[Change]) -> bool:
    return any(change.dates.departure is not None for change in changes)


def condition_changes(comparison: MeasurementComparison) -> Table:
    """Return the recorded conditions that differ between two measurements."""
    headings = tuple(map(Heading, ("Recorded", "Before", "After")))
    rows = []
    for change in comparison.conditions:
        column, cells = change.column, [Cell(COLUMNS[change.column].label)]
        for levels in (change.before, change.after):
            if column in _SHORT:
                names = [level[: _SHORT[column]] for level in levels]
            else:
                names = list(map(formatting.display_name, levels))
            cells.append(Cell(formatting.listed(names) or "not recorded"))
        rows.append(tuple(cells))
    caption = "Of the completed runs of the configurations that both have; any of it may explain a change."
    empty = NOTHING_IN_COMMON
    if comparison.has_common_configurations:
        empty = NOTHING_RECORDED
    return Table("condition-changes", "What differs", caption, headings, tuple(rows), empty=empty)


def dates(measurements: Sequence[Measurement]) -> Table:
    """Return the throughput of each configuration in the last MOST_DATES measurements."""
    shown, labels = measurements[-MOST_DATES:], configuration_labels(measurements[-1].dataset)
    rates, rows = [_rates(measurement) for measurement in shown], []
    # Of two dates, the table of the last change has all of it.
    for identity in measurements[-1].throughputs if len(measurements) > 2 else ():
        cells = []
        for rate in rates:
            cells.append(rate.get(identity, Cell.missing("no throughput was measured in that measurement")))
        rows.append((Cell(labels[identity]), *cells))
    caption = "In brackets: 95 % intervals over the runs of a measurement."
    headings = _headings([measurement.begun for measurement in shown], COLUMNS[shown[-1].dataset.rate].unit)
    return Table("dates", "All measurements", caption, headings, tuple(rows))


def _change_rows(
    comparison: MeasurementComparison,
    changes: Sequence[Change],
    values: tuple[dict[str, Cell], dict[str, Cell]],
    no_interval: str,
) -> tuple[tuple[Cell, ...], ...]:
    labels, (before, after), rows = comparison_labels(comparison), values, []
    for change in changes:
        both = before[change.identity], after[change.identity]
        ratio = Cell.of(change.dates.log_ratio.bounded_factor, no_interval, decision=1)
        row = [Cell(labels[change.identity]), *both, ratio]
        if _has_departure(changes):
            row += _departure_cells(change)
        rows.append(tuple(row))
    return tuple(rows)


def _departure_cells(change: Change) -> tuple[Cell, Cell]:
    if change.dates.departure is None:
        missing = Cell.missing(_TOO_FEW_DATES)
        return missing, missing
    departure = Cell.of(change.dates.departure.bounded_factor, _EQUAL_DATES, decision=1)
    if change.verdict.word is None or change.verdict.equal_within is None:
        return departure, Cell.missing(_EQUAL_DATES)
    return departure, Cell(verdict_text(change.verdict.word, change.verdict.equal_within))


def _not_compared(comparison: MeasurementComparison) -> Iterator[str]:
    """Yield the configurations that cannot be compared, by reason."""
    labels = comparison_labels(comparison)
    for reason, identities in (
        (f"Only in {comparison.before.name}", comparison.only_before),
        (f"Only in {comparison.after.name}", comparison.only_after),
        ("Not compared, because the two trained different numbers of parameters", comparison.other_networks),
    ):
        if identities:
            yield f"{reason}: {first_of([labels[identity] for identity in identities], _MOST_NAMED, '; ')}."


def comparison_labels(comparison: MeasurementComparison) -> dict[str, str]:
    """Return what each configuration of two measurements is called, by identity."""
    return configuration_labels(comparison.before.dataset) | configuration_labels(comparison.after.dataset)


def _rates(measurement: Measurement) -> dict[str, Cell]:
    few = f"fewer than {MINIMUM_RUNS} completed runs, or equal ones: no interval"
    return _cells(measurement, measurement.dataset.rate, few)


def _speedups(measurement: Measurement) -> dict[str, Cell]:
    return _cells(measurement, "speedup", "no interval: see the report of that measurement")


def _cells(measurement: Measurement, column: str, no_interval: str) -> dict[str, Cell]:
    rows = measurement.dataset.configurations.dropna(subset=column)
    cells = {}
    for row in rows.itertuples():
        printed, interval = formatting.format_column(row, column)
        cells[row.identity] = Cell(printed, interval, "" if interval else no_interval)
    return cells


def last_comparison(measurements: Sequence[Measurement]) -> MeasurementComparison:
    """Return the last change; raises EvidenceError for one measurement."""
    if len(measurements) < 2:
        plan = measurements[-1].dataset.plan
        remedy = ""
        if not plan.ingested_from:
            remedy = f": `{plan.command_again}` does so again"
        raise EvidenceError(f"study {plan.study} was measured once{remedy}")
    return compare_measurements(measurements[-2], measurements[-1])


def describe(comparison: MeasurementComparison) -> str:
    """Return the changes between two measurements as text."""
    parts = ["\n".join(page_findings.history(comparison).sentences), WITHIN_DATES]
    for table in (throughput_changes(comparison), speedup_changes(comparison), condition_changes(comparison)):
        if table.rows:
            parts.append(f"{table.title}\n{as_text(table)}")
    return "\n\n".join(parts)
