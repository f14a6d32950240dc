"""Rows of a table with our column names, one per variant or run."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from dlperf_study.audit import quantities
from dlperf_study.audit.published.source import NO_NUMBER, parse_resolution
from dlperf_study.audit.reading import column_readings
from dlperf_study.audit.reading.column_names import DEVIATION, Use, interpret_name, split_words, unit_in_name
from dlperf_study.audit.reading.column_readings import ColumnReading
from dlperf_study.audit.reading.files import Grid, GridRow
from dlperf_study.audit.reading.numbers import (
    FACTORS,
    is_no_number,
    parse_digits,
    plain_digits,
    written_duration,
    written_number,
)
from dlperf_study.audit.results import grouped
from dlperf_study.audit.vocabulary import WORDS
from dlperf_study.core.errors import TableError
from dlperf_study.metrics.columns import COLUMNS

_LONGEST_SETTINGS = 500
_SETTINGS = {*quantities.SPLITTING, quantities.COPIES, quantities.MICRO_BATCH, quantities.ACCUMULATION}
_SETTINGS |= {"batch_per_device", "global_batch", "sequence_length"}
#: The column with the line number of a row; the header is line 1.
LINE = "line of the file"
VARIANT = "variant"
#: Conditions that are no columns of the dataset and hold numbers.
NUMBER_CONDITIONS = {"tokens_per_sample", "tokens_per_step", quantities.MICRO_BATCH, quantities.ACCUMULATION}
NUMBER_CONDITIONS |= {
    quantities.UNCLEAR_BATCH,
    quantities.LAYERS,
    quantities.HIDDEN,
    quantities.VOCABULARY,
    quantities.PARAMETERS_STEP,
}
#: Numbers without which nothing is known of a row.
_SIZES = ("world_size", "nodes", "devices_per_node")
#: Metrics whose only units are signs of ratios.
_RATIOS = (quantities.SPEEDUP, quantities.EFFICIENCY, quantities.RELATIVE, quantities.MFU, quantities.HFU)
_SCALES = {"k": "k", "K": "k", "M": "M"}
#: The columns that name the row a ratio is relative to: one of two variants, and a speedup or an efficiency.
_REFERENCE, _BASELINE = "reference_id", "baseline_id"
#: The key of a row for the throughput of its baseline, until the row with that throughput is known.
_BASELINE_THROUGHPUT = "throughput of the baseline"
_SECTION = "section"
_ONE = re.compile(r"1(?:\.0*)?(?: ?[x×])?|100(?:\.0*)?%")


def read_heading(heading: str) -> dict[str, str]:
    """Return devices, device name and model of a heading."""
    facts = {}
    if match := WORDS.model.search(heading):
        facts["model"] = match["model"].strip()
    matches = list(WORDS.devices.finditer(heading))
    if len(matches) == 1:
        facts["world_size"] = matches[0]["devices"]
        name = matches[0]["name"]
        if not WORDS.any_device.fullmatch(name):
            facts["device_name"] = name
    return facts


def read_label(label: str) -> Mapping[str, str]:
    """Return devices, device name and nodes of a label: ``8xH100``, ``A100 (2x8)``."""
    match = WORDS.node_label.search(label) or WORDS.card_label.search(label)
    if not match:
        return read_heading(label) if WORDS.devices.fullmatch(label) else {}
    sizes = {"world_size": match["devices"]}
    if match["nodes"]:
        sizes = {"nodes": match["nodes"], "devices_per_node": match["devices"]}
    if named := WORDS.labelled_device.match(label):
        sizes["device_name"] = named["name"]
    return sizes


class RowReader:
    """Reads the rows of one table; ``facts`` come from the text around."""

    def __init__(self, grid: Grid, readings: Sequence[ColumnReading], facts: Mapping[str, str], decimal: str) -> None:
        self._grid, self._facts, self._decimal = grid, dict(facts), decimal
        by_use = grouped(readings, lambda reading: reading.meaning.use)
        self._metrics, self._conditions = by_use.get(Use.METRIC, []), by_use.get(Use.CONDITION, [])
        self._baselines_of_rows = by_use.get(Use.BASELINE, [])
        columns = Counter(reading.meaning.name for reading in self._metrics)
        if any(reading.prints_step_unit for reading in self._metrics):
            self._facts[quantities.STEP_UNIT] = "printed"
        self._has_variants = max(columns.values(), default=0) > 1
        self._throughputs = [reading for reading in self._metrics if reading.meaning.name in quantities.THROUGHPUTS]
        self._has_times = not self._throughputs
        if self._has_times:
            # A speedup of times is that of the variant with the shorter ones.
            self._throughputs = [reading for reading in self._metrics if reading.meaning.name in quantities.TIMES]
        self._throughput_labels = list(dict.fromkeys(throughput.meaning.label for throughput in self._throughputs))
        self._comparing = self._comparing_column()
        self._faster = self._compared_variant()

    def _comparing_column(self) -> ColumnReading | None:
        """Return the column with the ratio of two variants, if unambiguous."""
        if not self._has_variants or len(self._throughput_labels) != 2:
            return None
        ratio_names = (quantities.SPEEDUP, quantities.RELATIVE)
        ratios = [reading for reading in self._metrics if reading.meaning.name in ratio_names]
        if len(ratios) > 1:
            ratios = [reading for reading in ratios if reading.meaning.label not in self._throughput_labels]
        if len(ratios) != 1:
            return None
        return ratios[0]

    def _compared_variant(self) -> str:
        """Return the variant in the numerator of the ratios."""
        if self._comparing is None:
            return ""
        if self._comparing.meaning.label in self._throughput_labels:
            return self._comparing.meaning.label
        first, second = self._throughput_labels
        by_label = {throughput.meaning.label: throughput for throughput in reversed(self._throughputs)}
        columns = (by_label[first], by_label[second], self._comparing)
        distances = []
        for row in self._grid.rows:
            throughput, second_throughput, ratio = (
                self._value(column, row.fields[column.position]) for column in columns
            )
            if min(throughput, second_throughput, ratio) > 0:
                step, printed = math.log(second_throughput / throughput), math.log(ratio)
                distances.append(abs(step - printed) - abs(-step - printed))
        is_of_first = bool(distances) and median(distances) > 0
        if is_of_first != self._has_times:
            return first
        return second

    def _value(self, reading: ColumnReading, field: str) -> float:
        """Return the number in a field in the unit of its metric; 0 without one."""
        digits, _, unit = self._metric_field(reading, field).partition(" ")
        return parse_digits(digits, self._decimal) / FACTORS.get(unit, 1)

    def rows(self, row: GridRow, label: str) -> Iterator[dict[str, Any]]:
        """Yield a row for each variant; ``label`` is its identity."""
        label_of_rows = row.fields[0]
        if label_of_rows and len(row.fields) > 2 and not any(field.strip("-") for field in row.fields[1:]):
            self._facts[_SECTION] = label_of_rows
            return
        conditions = self._read_conditions(row)
        conditions |= {LINE: row.line, "configuration_id": conditions.get("configuration_id", label)}
        throughputs_of_baselines: dict[str, str] = {}
        for reading in self._baselines_of_rows:
            of_throughput = [part for part in reading.meaning.label.split() if part not in WORDS.baseline]
            # The last baseline is that of variants without one.
            conditions[_BASELINE_THROUGHPUT] = self._metric_field(reading, row.fields[reading.position])
            throughputs_of_baselines[" ".join(of_throughput)] = conditions[_BASELINE_THROUGHPUT]
        metrics: dict[str, dict[str, str]] = {}
        for reading in self._metrics:
            field, name, variant = row.fields[reading.position], reading.meaning.name, ""
            if not field:
                continue
            if reading is self._comparing:
                name, variant = quantities.RELATIVE, self._faster
            elif self._has_variants:
                variant = reading.meaning.label
            if name == quantities.TOKENS and (formula := WORDS.tokens_of_device.fullmatch(field)):
                name = quantities.TOKENS_OF_DEVICE
                conditions = {"sequence_length": formula["length"], "world_size": formula["devices"]} | conditions
            metrics.setdefault(variant, {})[name] = self._metric_field(reading, field)
        if not self._has_variants:
            yield conditions | metrics.get("", {})
            return
        label = str(conditions["configuration_id"])
        for variant, results in metrics.items():
            named = {VARIANT: variant, "configuration_id": f"{label}, {variant}"} if variant else {}
            if self._comparing is not None and quantities.RELATIVE in results:
                slower = next(name for name in self._throughput_labels if name != variant)
                named[_REFERENCE] = ", ".join(filter(None, (label, slower)))
            if variant in throughputs_of_baselines:
                named[_BASELINE_THROUGHPUT] = throughputs_of_baselines[variant]
            yield conditions | named | results

    def _read_conditions(self, row: GridRow) -> dict[str, Any]:
        conditions: dict[str, Any] = dict(self._facts)
        for reading in self._conditions:
            field, name = row.fields[reading.position], reading.meaning.name
            if not field:
                continue
            if name == "parallel":
                name = reading.header
            conditions |= self._numbered(name, reading.header, field)
            if name == reading.header and len(field) <= _LONGEST_SETTINGS:
                conditions |= self._settings_in(field)
            if reading.meaning.scope == column_readings.NO_DEVICES:
                # A global batch grows along a curve of more devices; here it tells rows apart.
                conditions[reading.header] = field
        if "nodes" in conditions and self._facts.get("world_size") == conditions.get("world_size"):
            # The heading counts the devices of a node, or of the smallest job.
            conditions.pop("world_size", None)
        if quantities.ACCUMULATION in conditions and "batch_per_device" in conditions:
            conditions.setdefault(quantities.MICRO_BATCH, conditions.pop("batch_per_device"))
        sizes = read_label(row.fields[0])
        if sizes and not {"world_size", "nodes"} & conditions.keys():
            # The label says the size of the row, and separates no curves.
            first = self._grid.header[0]
            conditions = {name: field for name, field in conditions.items() if name != first} | dict(sizes)
        return conditions

    def _numbered(self, name: str, header: str, field: str) -> dict[str, Any]:
        """Return a condition with plain digits; text under its own heading."""
        if name == "device_name" and (match := WORDS.devices.match(field)):
            return {"world_size": match["devices"], name: field[match.start("name") :]}
        is_number = name in NUMBER_CONDITIONS or (name in COLUMNS and COLUMNS[name].is_number)
        written = written_number(field)
        if not is_number or (written is None and name in _SIZES) or is_no_number(field):
            return {name: field}
        own_name = name
        if name not in _SIZES:
            own_name = header
        if written is None or written.deviation:
            return {own_name: field}
        units = {*split_words(f"{written.unit} {unit_in_name(header)}").split()}
        if name in _SIZES:
            # ``4×`` are four devices.
            units -= WORDS.ratio_signs
        if units - WORDS.counted - {*WORDS.factors, "t"} and name != quantities.LAYERS:
            return {own_name: field}
        scale = written.scale or next(filter(WORDS.factors.get, units), "")
        digits = _plain(written.digits, self._decimal)
        if not scale and name != "parameters":
            return {name: digits}
        factor = WORDS.factors.get(scale, 1)
        value = f"{parse_digits(field, self._decimal) * factor:.0f}"
        if name == "parameters":
            return {name: value, quantities.PARAMETERS_STEP: str(parse_resolution(digits) * factor)}
        if name == "global_batch":
            return {"tokens_per_step": value}
        return {name: value}

    def _settings_in(self, field: str) -> dict[str, Any]:
        """Return degrees, batches and tokens in a cell."""
        settings: dict[str, Any] = {match["name"].lower(): match["value"] for match in WORDS.degree.finditer(field)}
        for match in WORDS.setting.finditer(field):
            name = interpret_name(match["name"].strip(), (match["value"],), "").name
            if name == "batch":
                name = "batch_per_device"
            if name in _SETTINGS:
                settings |= self._numbered(name, name, match["value"])
        return settings

    def _metric_field(self, reading: ColumnReading, field: str) -> str:
        """Return a result with plain digits and its unit."""
        if is_no_number(field):
            return NO_NUMBER
        if reading.meaning.name in quantities.TIMES and (duration := written_duration(field)):
            return duration
        written = written_number(field)
        if written is None:
            return field
        unit_of_time = WORDS.time_units.get(split_words(written.unit))
        if reading.meaning.name in quantities.TIMES and unit_of_time:
            return f"{_plain(written.digits, self._decimal)} {unit_of_time}".removesuffix(" s")
        is_sign = written.unit.lower() in WORDS.ratio_signs
        if is_sign and reading.meaning.name in quantities.THROUGHPUTS:
            return field
        if written.unit and not is_sign and reading.meaning.name in _RATIOS:
            return field
        digits = _plain(written.digits, self._decimal)
        if column_readings.is_canonical(reading.header) and not {*split_words(written.unit).split()} & WORDS.counted:
            return field.replace(written.digits, digits)
        if written.scale:
            return f"{digits} {_SCALES[written.scale]}"
        if written.unit == "%" or reading.meaning.unit == "%":
            return f"{digits}%"
        if reading.meaning.unit in FACTORS:
            return f"{digits} {reading.meaning.unit}"
        return digits


def _plain(digits: str, decimal: str) -> str:
    """Return digits with a decimal point; unchanged if separators are wrong."""
    try:
        return plain_digits(digits, decimal)
    except TableError:
        return digits


def name_baselines(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Add to each row its baseline: the only row with that throughput."""
    configuration_ids: dict[str, set[str]] = {}
    for row in rows:
        if any(_ONE.fullmatch(row.get(name, "")) for name in column_readings.BASELINE_RATIOS):
            for throughput in filter(None, map(row.get, quantities.THROUGHPUTS)):
                configuration_ids.setdefault(throughput, set()).add(row["configuration_id"])
    named = []
    for row in rows:
        named_row = dict(row)
        baselines = configuration_ids.get(named_row.pop(_BASELINE_THROUGHPUT, ""), set())
        if len(baselines) == 1:
            [named_row[_BASELINE]] = baselines
        named.append(named_row)
    return named


def find_runs_metric(readings: Sequence[ColumnReading], heading: str) -> str:
    """Return the metric of run columns, by names, heading or throughput column."""
    of_runs = [reading for reading in readings if reading.meaning.use in (Use.RUN, Use.SUMMARY)]
    for naming in (*(unit_in_name(reading.header) for reading in of_runs), unit_in_name(heading), heading):
        meaning = interpret_name(naming, (), "")
        if naming and meaning.use is Use.METRIC:
            return meaning.name
    throughputs = {reading.meaning.name for reading in readings if reading.meaning.use is Use.METRIC} & {
        *quantities.THROUGHPUTS
    }
    if len(throughputs) != 1:
        return quantities.UNNAMED
    return throughputs.pop()


def run_cells(
    row: GridRow, readings: Sequence[ColumnReading], conditions: dict[str, Any], metric: str, source: str, decimal: str
) -> Iterator[dict[str, Any]]:
    """Yield the summaries, runs and deviations of a row.

    The runs belong to the first summary: a mean, a median, or the result in a column of its own.
    """
    label = str(conditions["configuration_id"])
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
            yield shared | _cell(reading, row, quantities.STANDARD_DEVIATION, key, decimal) | {"runs_of": summary_key}


def _cell(reading: ColumnReading, row: GridRow, metric: str, key: str, decimal: str) -> dict[str, Any]:
    value = row.fields[reading.position]
    if not value or is_no_number(value):
        value = NO_NUMBER
    elif written := written_number(value):
        value = _plain(written.digits, decimal)
    return {"cell": key, "column": reading.header, "metric": metric, "value": value}
