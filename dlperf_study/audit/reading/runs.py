"""Columns of repetitions: ``run1 … run5, mean, std`` are the runs of one result, its summary and their deviation."""

from collections.abc import Iterator, Sequence
from typing import Any

from dlperf_study.audit.reading.column_names import DEVIATION, Use, meaning_of, unit_in_name
from dlperf_study.audit.reading.column_readings import ColumnReading
from dlperf_study.audit.reading.grid import GridRow
from dlperf_study.audit.reading.numbers import is_no_number, plain_digits, written_number
from dlperf_study.audit.result_cell import RATES, STANDARD_DEVIATION, UNNAMED
from dlperf_study.published.source_lines import NO_NUMBER


def metric_of_runs(readings: Sequence[ColumnReading], heading: str) -> str:
    """Return the metric that run columns repeat: as their names, the heading or the one column of rates say."""
    of_runs = [reading for reading in readings if reading.meaning.use in (Use.RUN, Use.SUMMARY)]
    for naming in (*(unit_in_name(reading.header) for reading in of_runs), unit_in_name(heading), heading):
        meaning = meaning_of(naming, (), "")
        if naming and meaning.use is Use.METRIC:
            return meaning.name
    rates = {reading.meaning.name for reading in readings if reading.meaning.use is Use.METRIC} & {*RATES}
    return rates.pop() if len(rates) == 1 else UNNAMED


def run_cells(
    row: GridRow, readings: Sequence[ColumnReading], conditions: dict[str, Any], metric: str, source: str, decimal: str
) -> Iterator[dict[str, Any]]:
    """Yield the summaries, runs and deviations of a row as rows of a long table; ``conditions`` are those of the row.

    The runs are those of the first summary: a mean, a median, or the result that the row has in a column of its own.
    """
    label = str(conditions["identity"])
    summaries = [reading for reading in readings if reading.meaning.use is Use.SUMMARY]
    means = [reading for reading in summaries if reading.meaning.name != DEVIATION]
    shared = conditions | {"source": source, "row": label}
    row_key = f"{source}/{label}/{metric}"
    has_own_column = any(reading.is_metric and reading.meaning.name == metric for reading in readings)
    summary_key = f"{row_key}/{means[0].meaning.name}" if means and has_own_column else row_key
    for position, reading in enumerate(means):
        key = summary_key if position == 0 else f"{row_key}/{reading.meaning.name}"
        yield shared | _cell(reading, row, metric, key, decimal) | {"estimator": reading.meaning.name}
    for reading in readings:
        key = f"{row_key}/{reading.header}"
        if reading.meaning.use is Use.RUN:
            yield shared | _cell(reading, row, metric, key, decimal) | {"estimator": "run", "runs_of": summary_key}
        elif reading.meaning.use is Use.SUMMARY and reading.meaning.name == DEVIATION:
            yield shared | _cell(reading, row, STANDARD_DEVIATION, key, decimal) | {"runs_of": summary_key}


def _cell(reading: ColumnReading, row: GridRow, metric: str, key: str, decimal: str) -> dict[str, Any]:
    field = row.fields[reading.position]
    written = written_number(field)
    is_missing = not field or is_no_number(field)
    plain = plain_digits(written.digits, decimal) if written else field
    return {"cell": key, "column": reading.header, "metric": metric, "value": NO_NUMBER if is_missing else plain}
