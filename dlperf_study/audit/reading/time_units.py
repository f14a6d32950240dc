"""The unit of a step time that neither its name nor its cells say: that in which batch / rate is the time."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from dlperf_study.audit.reading.column_names import Meaning, Use
from dlperf_study.audit.reading.column_readings import ColumnReading
from dlperf_study.audit.reading.grid import Grid
from dlperf_study.audit.reading.numbers import number_of
from dlperf_study.audit.result_cell import SAMPLES_OF_DEVICE, THROUGHPUT

_UNITS = {"s": 1, "ms": 1e3, "us": 1e6}
#: How far the quotient may be from a unit: the times of most tables are within 3 % of batch / rate.
_NEAR = 0.1
_RATE_AND_BATCH = ((THROUGHPUT, "global_batch"), (SAMPLES_OF_DEVICE, "batch_per_device"))


def with_time_unit(grid: Grid, readings: Sequence[ColumnReading], decimal: str) -> list[ColumnReading]:
    """Return the readings with the unit of each step time, or without that column if the rates do not tell it."""
    return [_with_unit(grid, readings, reading, decimal) if reading.meaning.reason else reading for reading in readings]


def _with_unit(grid: Grid, readings: Sequence[ColumnReading], time: ColumnReading, decimal: str) -> ColumnReading:
    if time.meaning.name != "step_seconds":
        return time
    quotients = list(_quotients(grid, readings, time, decimal))
    for unit, per_second in _UNITS.items():
        if quotients and abs(median(quotients) / per_second - 1) < _NEAR:
            scope = f"unit inferred: {unit} as batch / rate"
            return replace(time, meaning=replace(time.meaning, unit=unit, scope=scope, reason=""))
    return replace(time, meaning=Meaning(Use.NONE, reason=time.meaning.reason))


def _quotients(grid: Grid, readings: Sequence[ColumnReading], time: ColumnReading, decimal: str) -> Iterator[float]:
    """Yield time × rate / batch of each row that has the three: 1 if the time is in seconds."""
    positions = {reading.meaning.name: reading.position for reading in readings}
    for rate, batch in _RATE_AND_BATCH:
        if rate not in positions or batch not in positions:
            continue
        for row in grid.rows:
            time_rate_batch = [
                number_of(row.fields[position], decimal)
                for position in (time.position, positions[rate], positions[batch])
            ]
            if all(time_rate_batch):
                yield time_rate_batch[0] * time_rate_batch[1] / time_rate_batch[2]
