"""column_names.Meaning, unit and scope of each column, or why it is not used."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from dlperf_study.audit import quantities
from dlperf_study.audit.reading import column_names
from dlperf_study.audit.reading.files import Grid
from dlperf_study.audit.reading.numbers import (
    is_no_number,
    parse_digits,
    require_one_sign,
    written_duration,
    written_number,
)
from dlperf_study.audit.result_frames import METRIC_COLUMNS
from dlperf_study.audit.vocabulary import WORDS
from dlperf_study.core.errors import TableError
from dlperf_study.metrics.columns import COLUMNS

#: Columns of numbers that checks use, besides metrics and the conditions that tell configurations apart.
_USED = {*quantities.CONFIGURATION, *quantities.SIZES, "batches_per_task", "samples_per_task", "flops_per_sample"}
_USED |= {"device_peak_flops", "threads_per_device", "repetition", "runs", "runs_counted", "runs_completed"}
_USED |= {"tokens_per_sample", "tokens_per_step", "resolution", "low", "high", "value"}
#: Names with a meaning of their own that are no columns of the dataset.
_RESERVED = ("baseline_id", "reference_id", "tokens_per_sample", "tokens_per_step")
BASELINE_RATIOS = (quantities.SPEEDUP, quantities.EFFICIENCY)
_SEVERAL_MEANINGS = (
    "only compared with times of steps, because the table does not say whether it is per device or per job; name it "
    "batch_per_device or global_batch"
)
_UNIT_MISSING = "neither its name nor its cells have a unit"
_READ_AS_OF_DEVICE = "not declared, read as of one device"
#: The values of our column ``device``; in a column of a person it is a name, or a number of devices.
_DEVICES = {"cpu", "gpu", ""}
#: Results that are of training whatever is above their table.
_OF_TRAINING = {quantities.STEP, quantities.DEVICE_FLOPS, quantities.MFU, quantities.HFU}
_INTERVAL_FIELD = re.compile(r"[\[(].*[\])]|")
#: The throughput per device by the throughput of the job.
_THROUGHPUTS_OF_DEVICE = {
    quantities.THROUGHPUT: quantities.SAMPLES_OF_DEVICE,
    quantities.TOKENS: quantities.TOKENS_OF_DEVICE,
}
#: The scope of a batch in a table that counts no devices.
NO_DEVICES = "not declared, no column counts devices"
OWN_NUMBERS = "its numbers only tell rows apart"
_INFERRED_UNIT = "unit inferred"
#: No device has more TFLOP/s.
_LARGEST_TERAFLOPS = 1e5
#: A share of a peak is larger only where the peak is of another device, and never so in most rows.
_LARGEST_SHARE = 4
_UNITS = {"s": 1, "ms": 1e3, "us": 1e6}
#: How far the quotient may be from a unit: the times of most tables are within 3 % of batch / throughput.
_NEAR = 0.1
_THROUGHPUT_AND_BATCH = ((quantities.THROUGHPUT, "global_batch"), (quantities.SAMPLES_OF_DEVICE, "batch_per_device"))


@dataclass(frozen=True)
class ColumnReading:
    """How a column is read; ``numbers`` counts its numeric fields."""

    table: str
    header: str
    position: int
    meaning: column_names.Meaning
    numbers: int

    @property
    def is_metric(self) -> bool:
        """Whether the column holds results, or runs of them."""
        return self.meaning.use in (column_names.Use.METRIC, column_names.Use.RUN, column_names.Use.SUMMARY)

    @property
    def prints_step_unit(self) -> bool:
        """Whether it is a step time with a printed unit."""
        if self.meaning.name != quantities.STEP or not self.meaning.unit or is_canonical(self.header):
            return False
        return not self.meaning.scope.startswith(_INFERRED_UNIT)

    @property
    def unused_numbers(self) -> str:
        """Why no check uses the numbers of the column; else empty."""
        is_used = self.is_metric or self.meaning.use is column_names.Use.BASELINE
        if not self.numbers or is_used or self.meaning.name == "parallel":
            return ""
        if self.meaning.reason or self.meaning.use is column_names.Use.CONDITION:
            return self.meaning.reason
        return "unknown to all checks"


def read_columns(grid: Grid, has_devices: bool, decimal: str = "") -> list[ColumnReading]:
    """Return how each column is read.

    ``has_devices``: the text around the table counts the devices. ``decimal``: the declared decimal sign, or empty. A
    column of results with different units or decimal signs is not used.
    """
    readings = []
    for position, (header, fields) in enumerate(grid.columns()):
        count = sum(map(bool, map(written_number, fields)))
        meaning = _meaning_or_reason(header, fields, count, decimal)
        readings.append(ColumnReading(grid.name, header, position, meaning, count))
    throughputs_of_job = [each for each in readings if each.meaning.name in _THROUGHPUTS_OF_DEVICE and each.is_metric]
    if len(throughputs_of_job) == 1:
        readings = [_declare_throughput_of_device(reading, throughputs_of_job[0]) for reading in readings]
    readings = _declare_times(grid, _declare_by_neighbours(readings, has_devices))
    is_of_training = any(reading.meaning.name in _OF_TRAINING for reading in readings if reading.is_metric)
    title = {*column_names.split_words(f"{grid.heading} {grid.header[0]}").split()}
    if WORDS.evaluation & title and not is_of_training:
        for index, reading in enumerate(readings):
            if reading.is_metric:
                not_training = column_names.Meaning(
                    column_names.Use.NONE, reason="the table shows evaluation, not training"
                )
                readings[index] = replace(reading, meaning=not_training)
    return _each_once(readings)


def _declare_by_neighbours(readings: Sequence[ColumnReading], has_devices: bool) -> list[ColumnReading]:
    """Decide ambiguous batches, FLOP/s, baselines and deviations by the other columns."""
    names = {reading.meaning.name for reading in readings}
    metrics = {reading.meaning.name for reading in readings if reading.is_metric}
    has_devices = has_devices or bool(names & {"world_size", "nodes"})
    has_runs = any(reading.meaning.use is column_names.Use.RUN for reading in readings)
    throughputs = metrics & {*quantities.THROUGHPUTS}
    declared = []
    for reading in readings:
        meaning = reading.meaning
        if meaning.name == "batch" and has_devices:
            meaning = replace(meaning, name=quantities.UNCLEAR_BATCH, reason=_SEVERAL_MEANINGS)
        elif meaning.name == "batch":
            meaning = replace(meaning, name="global_batch", scope=NO_DEVICES)
        elif (
            meaning.reason == column_names.FLOPS_SCOPE
            and throughputs
            and throughputs <= {*quantities.THROUGHPUTS_OF_DEVICE}
        ):
            meaning = column_names.Meaning(
                column_names.Use.METRIC, quantities.DEVICE_FLOPS, meaning.unit, _READ_AS_OF_DEVICE
            )
        elif meaning.name in throughputs and metrics & {*BASELINE_RATIOS} and WORDS.baseline & {*meaning.label.split()}:
            meaning = replace(meaning, use=column_names.Use.BASELINE)
        elif meaning.use is column_names.Use.SUMMARY and meaning.name == column_names.DEVIATION and not has_runs:
            meaning = column_names.Meaning(column_names.Use.NONE, reason="its runs are not in the table")
        declared.append(replace(reading, meaning=meaning))
    return declared


def _declare_times(grid: Grid, readings: list[ColumnReading]) -> list[ColumnReading]:
    """Read two columns of times next to a speedup as the times before and after."""
    metrics = [reading.meaning.name for reading in readings if reading.is_metric]
    times = [reading for reading in readings if not reading.is_metric and _holds_times(grid, reading)]
    if metrics != [quantities.SPEEDUP] or len(times) != 2:
        return readings
    declared = []
    for reading in readings:
        if reading in times:
            unit = WORDS.time_units.get(column_names.split_words(column_names.unit_in_name(reading.header)), "s")
            label = column_names.split_words(reading.header)
            meaning = column_names.Meaning(column_names.Use.METRIC, quantities.DURATION, unit, "", label)
            reading = replace(reading, meaning=meaning)
        declared.append(reading)
    return declared


def _holds_times(grid: Grid, reading: ColumnReading) -> bool:
    """Return whether each field of a column is a time, by its own unit or that of the column."""
    fields = [field for field in grid.column(reading.position) if not is_no_number(field)]
    unit = column_names.unit_in_name(reading.header)
    for field in fields:
        written = written_number(field)
        if written is None and not written_duration(field):
            return False
        if written and not WORDS.time_units.get(column_names.split_words(written.unit or unit)):
            return False
    return bool(fields)


def is_canonical(name: str) -> bool:
    """Return whether a column has a name of this package."""
    bare = re.sub(r"_(?:low|high)$", "", name)
    return name in COLUMNS or name in _RESERVED or name in METRIC_COLUMNS or bare in METRIC_COLUMNS


def _meaning_or_reason(header: str, fields: Sequence[str], numbers: int, decimal: str) -> column_names.Meaning:
    """Return the meaning of a column, or why it is not used."""
    try:
        require_one_sign(header, fields, decimal)
        meaning = _meaning(header, fields, numbers, decimal)
    except TableError as error:
        named = column_names.interpret_name(header, fields, column_names.unit_in_name(header))
        if named.use is column_names.Use.CONDITION:
            return named
        return column_names.Meaning(column_names.Use.NONE, reason=str(error))
    # A column of shares of a peak may leave out the sign of per cent; its numbers tell.
    is_share = meaning.use is column_names.Use.METRIC and meaning.name in (quantities.MFU, quantities.HFU)
    if is_share and not meaning.unit and not is_canonical(header):
        shares = []
        for field in fields:
            if written_number(field):
                shares.append(abs(parse_digits(field, decimal)))
        if shares and median(shares) > _LARGEST_SHARE:
            return replace(meaning, unit="%", scope=f"{_INFERRED_UNIT}: % as its numbers say")
    return meaning


def _meaning(header: str, fields: Sequence[str], numbers: int, decimal: str) -> column_names.Meaning:
    is_ours = is_canonical(header)
    if header == "device":
        is_ours = {*fields} <= _DEVICES
    if header == quantities.THROUGHPUT:
        is_ours = "tokens" not in column_names.split_words(_unit_of_cells(header, fields)).split()
    if is_ours and header in METRIC_COLUMNS:
        return column_names.Meaning(column_names.Use.METRIC, header, COLUMNS[header].unit if header in COLUMNS else "")
    if is_ours:
        value, _, end = header.rpartition("_")
        # The ends of an interval are compared with the value that they are of.
        is_used = header in _USED or (end in ("low", "high") and value in METRIC_COLUMNS)
        is_number = header in COLUMNS and COLUMNS[header].is_number
        return column_names.Meaning(
            column_names.Use.CONDITION, header, reason="no check uses it" if is_number and not is_used else ""
        )
    name = column_names.split_words(header)
    # The bounds of an interval are read from columns of their own alone.
    is_interval = WORDS.interval.fullmatch(name) and all(map(_INTERVAL_FIELD.fullmatch, fields))
    if is_interval or WORDS.about_results.fullmatch(name):
        return column_names.Meaning(column_names.Use.NONE)
    unit = column_names.unit_in_name(header) or _unit_of_cells(header, fields)
    meaning = column_names.interpret_name(header, fields, unit)
    if meaning.name == "step_seconds" and not meaning.unit:
        return replace(meaning, unit="", reason=_UNIT_MISSING)
    if meaning.use is not column_names.Use.NONE or meaning.reason:
        return meaning
    if WORDS.model_flops.fullmatch(name) and numbers:
        largest = max(parse_digits(field, decimal) for field in fields)
        unit = "FLOP/s" if largest > _LARGEST_TERAFLOPS else "TFLOP/s"
        return column_names.Meaning(column_names.Use.METRIC, quantities.DEVICE_FLOPS, unit, _READ_AS_OF_DEVICE)
    if {*name.split()} & WORDS.other_results:
        return column_names.Meaning(column_names.Use.NONE, reason="unknown to all checks" if numbers else "")
    written = [field for field in fields if not is_no_number(field)]
    if numbers < len(written) or not written:
        return column_names.Meaning(column_names.Use.CONDITION, header)
    if any(re.search(rf"\d{re.escape(decimal or '.')}\d", field) for field in fields):
        return meaning
    return column_names.Meaning(column_names.Use.CONDITION, header, reason=OWN_NUMBERS)


def _unit_of_cells(header: str, fields: Sequence[str]) -> str:
    """Return the unit after the numbers; raises TableError if there are several."""
    if fields and all(map(written_duration, fields)):
        return "s"
    units = Counter(written.unit for written in map(written_number, fields) if written and written.unit)
    meanings = {column_names.split_words(unit) or unit for unit in units}
    if len(meanings) > 1 and len(units) < sum(units.values()):
        raise TableError(f"column {header} has numbers in {' and in '.join(units)}; write one unit in a column")
    return next(iter(units)) if len(meanings) == 1 else ""


def _declare_throughput_of_device(reading: ColumnReading, throughput: ColumnReading) -> ColumnReading:
    """Let an unnamed throughput per device count what the job's throughput counts."""
    if not reading.numbers or not WORDS.unnamed_throughput_of_device.fullmatch(
        column_names.split_words(reading.header)
    ):
        return reading
    unit = f"{throughput.meaning.unit.partition(',')[0]}, as in {throughput.header}"
    return replace(
        reading,
        meaning=column_names.Meaning(
            column_names.Use.METRIC, _THROUGHPUTS_OF_DEVICE[throughput.meaning.name], unit, "one device"
        ),
    )


def _each_once(readings: Sequence[ColumnReading]) -> list[ColumnReading]:
    """Keep one column for each meaning: our name, else the first."""
    ranked = sorted(readings, key=lambda reading: not is_canonical(reading.header))
    first: dict[tuple[column_names.Use, str, str], ColumnReading] = {}
    for reading in ranked:
        first.setdefault((reading.meaning.use, reading.meaning.name, reading.meaning.label), reading)
    kept = {reading.position for reading in first.values()}
    unique = []
    for reading in readings:
        meaning = reading.meaning
        if reading.position not in kept and meaning.use is not column_names.Use.NONE and meaning.name != "parallel":
            repeated = first[meaning.use, meaning.name, meaning.label].header
            reason = f"{repeated} means the same"
            if meaning.name == quantities.DURATION:
                reason = f"only {repeated} is compared with speedups"
            reading = replace(reading, meaning=column_names.Meaning(column_names.Use.NONE, reason=reason))
        unique.append(reading)
    return unique


def infer_time_units(grid: Grid, readings: Sequence[ColumnReading], decimal: str) -> list[ColumnReading]:
    """Infer the unit of each step time from throughputs; else drop the column."""
    positions = {reading.meaning.name: reading.position for reading in readings}
    inferred = list(readings)
    for index, reading in enumerate(readings):
        if reading.meaning.reason == _UNIT_MISSING:
            inferred[index] = _infer_time_unit(grid, positions, reading, decimal)
    return inferred


def _infer_time_unit(grid: Grid, positions: Mapping[str, int], time: ColumnReading, decimal: str) -> ColumnReading:
    """Return a step time with its unit; ``positions``: columns by meaning."""
    # Time × throughput / batch of each row that has the three is 1 if the time is in seconds.
    quotients = []
    for throughput, batch in _THROUGHPUT_AND_BATCH:
        if throughput not in positions or batch not in positions:
            continue
        for row in grid.rows:
            seconds = parse_digits(row.fields[time.position], decimal)
            samples_per_second = parse_digits(row.fields[positions[throughput]], decimal)
            samples = parse_digits(row.fields[positions[batch]], decimal)
            if seconds and samples_per_second and samples:
                quotients.append(seconds * samples_per_second / samples)
    for unit, per_second in _UNITS.items():
        if quotients and abs(median(quotients) / per_second - 1) < _NEAR:
            scope = f"{_INFERRED_UNIT}: {unit} as batch / throughput"
            return replace(time, meaning=replace(time.meaning, unit=unit, scope=scope, reason=""))
    return replace(time, meaning=column_names.Meaning(column_names.Use.NONE, reason=time.meaning.reason))
