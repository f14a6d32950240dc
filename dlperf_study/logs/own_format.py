"""Formats that users declare in a file next to logs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations, product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from dlperf_study.core.errors import MetadataError, StudyFileError
from dlperf_study.core.wording import closest
from dlperf_study.logs import format, line_template, printed
from dlperf_study.logs.blocks import LogSource, read_whole
from dlperf_study.logs.formats import names
from dlperf_study.logs.json_lines import CSV_ROW, JSON_ROW, is_tracker_file
from dlperf_study.logs.log_files import LogFile
from dlperf_study.logs.mlflow_database import MlflowDatabaseRun
from dlperf_study.logs.records import POSITION_COLUMNS
from dlperf_study.logs.tracker_files import MlflowRun
from dlperf_study.study.strict_yaml import MAX_BYTES, parse_mapping
from dlperf_study.study.validation import Section, validate

FORMAT_FILE = "log_format.yaml"
#: Units of throughputs, and of times with their size in seconds.
_THROUGHPUTS = ("samples/s", "tokens/s")
_TIMES = {"s/step": 1.0, "ms/step": 1e-3, "us/step": 1e-6}
_STEPS_THROUGHPUT = "steps/s"
_CLOCKS = {"s since start": 1.0, "ms since start": 1e-3}
_KNOWN_METRICS = {"loss": printed.LOSS, "unix_time": printed.UNIX_TIME}
_KNOWN = (*POSITION_COLUMNS, *_KNOWN_METRICS)
#: Names that users give to such a file and that are not read.
_MISNAMED = ("log_format.yml", "log-format.yaml", "log-format.yml", "logformat.yaml", "log_format.json")
Unit = Literal["samples/s", "tokens/s", "steps/s", "s/step", "ms/step", "us/step", "s since start", "ms since start"]
_OTHER_UNITS = dict.fromkeys(("img/s", "imgs/s", "images/s", "images/sec", "img/sec", "examples/s"), "samples/s")
_OTHER_SCOPES = {"all": "job"}


def _translate_unit(written: Any) -> Any:
    if isinstance(written, str):
        return _OTHER_UNITS.get(written, written)
    return written


def _translate_scope(written: Any) -> Any:
    if isinstance(written, str):
        return _OTHER_SCOPES.get(written, written)
    return written


class OwnNumber(Section):
    """A number; ``steps``: the steps of a time; ``thousands``: has commas."""

    unit: Annotated[Unit, BeforeValidator(_translate_unit)]
    of: Annotated[Literal["job", "rank", "device"], BeforeValidator(_translate_scope)]
    mean_since: Literal["start", "epoch"] | None = None
    steps: int = Field(default=1, ge=1)
    thousands: bool = False

    @model_validator(mode="after")
    def _fits(self) -> "OwnNumber":
        if self.of == "device" and self.unit not in _THROUGHPUTS:
            raise ValueError(f"of: device needs the unit {' or '.join(_THROUGHPUTS)}")
        if self.mean_since and self.unit in _CLOCKS:
            raise ValueError("a time since the start is not a mean; leave out mean_since")
        if self.steps > 1 and self.unit not in _TIMES:
            raise ValueError(f"steps is for step times only, in {', '.join(_TIMES)}")
        return self

    def metric(self, name: str) -> printed.PrintedMetric:
        """Return it as a metric, with ``name`` in the metric's name."""
        if self.unit in _CLOCKS:
            return replace(printed.ELAPSED, factor=_CLOCKS[self.unit], has_thousands=self.thousands)
        kind = "throughput" if self.unit in _THROUGHPUTS else "step_seconds"
        return printed.PrintedMetric(
            name=f"{name}_{kind}" if name else kind,
            unit=self.unit if self.unit in _THROUGHPUTS else "s",
            scope=printed.MetricScope(self.of),
            factor=_TIMES.get(self.unit, 1.0) / self.steps,
            cumulative=self.mean_since is not None,
            restarts_each_epoch=self.mean_since == "epoch",
            inverse=self.unit == _STEPS_THROUGHPUT,
            has_thousands=self.thousands,
        )


class OwnFormat(Section):
    """The whole file."""

    name: str
    lines: list[str] = Field(default=[], min_length=1)
    columns: dict[str, str] = Field(default={}, min_length=1)
    evaluation: list[str] = Field(default=[], min_length=1)
    numbers: dict[str, OwnNumber] = Field(default={}, min_length=1)
    ranks_step_together: bool = True

    @property
    def names(self) -> list[str]:
        """The names of all numbers that its lines or columns have."""
        return list(dict.fromkeys(chain(self.columns, *map(line_template.placeholders, self.lines))))

    @cached_property
    def metrics(self) -> dict[str, printed.PrintedMetric]:
        """The metrics by number; the first of a kind has its name."""
        metrics = dict(_KNOWN_METRICS)
        # A clock gives the time of a step.
        has_clock = any(declaration.unit in _CLOCKS for declaration in self.numbers.values())
        taken_names = {printed.INTERVALS[printed.ELAPSED.name].name} if has_clock else set()
        for name, declaration in self.numbers.items():
            metric = declaration.metric("")
            metrics[name] = declaration.metric(name) if metric.name in taken_names else metric
            taken_names.add(metric.name)
        return metrics

    def as_format(self, source: str) -> format.Format:
        """Return it as a format; ``source``: the file."""
        metrics = [self.metrics[name] for name in self.numbers]
        throughputs = [printed.INTERVALS.get(metric.name, metric).name for metric in metrics]
        # Ranks merge by the first number, as formats of programs declare it.
        if metrics[0].scope is not printed.MetricScope.RANK:
            merge = format.Merge.COPIES
        elif self.ranks_step_together and metrics[0].name == "step_seconds":
            merge = format.Merge.SLOWEST
        else:
            merge = format.Merge.SUM
        return format.Format(
            name=self.name,
            title=self.name,
            program=source,
            lines=tuple(self._lines()),
            throughput_metrics=tuple(dict.fromkeys(throughputs)),
            merge=merge,
            steps="as the program counts",
            counts_updates=False,
            synchronous=self.ranks_step_together,
        )

    def _lines(self) -> Iterator[format.Line | format.JsonLine]:
        if self.columns:
            used = {}
            for name in self.columns:
                if name in self.metrics:
                    used[name] = self.metrics[name]
            record = _ColumnsReader(self.columns, used)
            yield format.JsonLine((CSV_ROW, JSON_ROW), record, metrics=tuple(used.values()))
        for template in self.lines:
            yield line_template.template_line(template, self.metrics, self.evaluation)
        if self.evaluation:
            yield line_template.evaluation_line(self.lines, self.evaluation)


def read_own_format(data: bytes, file: str) -> format.Format:
    """Return the format that a file declares; ``file``: for messages."""
    keys = {"": tuple(OwnFormat.model_fields), "numbers": tuple(OwnNumber.model_fields)}
    own_format = validate(OwnFormat, parse_mapping(data, file), file, keys)
    problems = [*_structure_problems(own_format), *_number_problems(own_format)]
    # Of templates without any of these.
    problems = problems or [*_overlaps(own_format)]
    if problems:
        raise StudyFileError("\n".join(f"{file}: {problem}" for problem in problems))
    return own_format.as_format(file)


def _structure_problems(own_format: OwnFormat) -> Iterator[str]:
    """Yield problems of the name, the lines or the columns."""
    if not re.fullmatch(r"[a-zA-Z]\w*", own_format.name):
        yield f"name is {own_format.name!r}; it must begin with a letter and have letters, digits and _ only"
    if own_format.name in names():
        yield f"name is {own_format.name!r}, which is an existing format; choose a different name"
    if bool(own_format.lines) == bool(own_format.columns):
        yield "must have either lines (for text) or columns (for a table or JSON objects)"
    if own_format.columns and own_format.evaluation:
        yield "evaluation is for lines; with columns, leave evaluation columns out"
    for index, line in enumerate(own_format.lines):
        for problem in line_template.template_problems(line):
            yield f"lines[{index}] is {line!r}; {problem}"
    for (index, excluded), (line_index, line) in product(enumerate(own_format.evaluation), enumerate(own_format.lines)):
        if excluded.strip() in line_template.literal_text(line):
            contradiction = f"which is in every line of lines[{line_index}]: no line would be read"
            yield f"evaluation[{index}] is {excluded!r}, {contradiction}"


def _overlaps(own_format: OwnFormat) -> Iterator[str]:
    """Yield templates that match each other's lines."""
    templates = own_format.lines
    lines = []
    for template in templates:
        lines.append(line_template.template_line(template, own_format.metrics, own_format.evaluation))
    for first, second in combinations(range(len(templates)), 2):
        for sample in (line_template.sample_line(templates[first]), line_template.sample_line(templates[second])):
            if _matches(lines[first], sample) and _matches(lines[second], sample):
                remedy = "leave one out, or add text that tells their lines apart"
                yield f"lines[{first}] and lines[{second}] both match {sample!r}, which would be read twice; {remedy}"
                break


def _matches(line: format.Line, text: str) -> bool:
    return line.needles[0] in text and re.search(line.head, text) is not None


def _number_problems(own_format: OwnFormat) -> Iterator[str]:
    """Yield which numbers have no meaning, two, or none to have."""
    declared, names_in_lines = own_format.numbers, own_format.names
    for name in names_in_lines:
        if name not in declared and name not in _KNOWN:
            remedy = f"the names that need no entry are {', '.join(_KNOWN)}; write {{*}} for text to skip"
            yield f"numbers has no entry {name!r}; {closest(name, (*_KNOWN, *declared))}{remedy}"
    for name in declared:
        if name in _KNOWN:
            yield f"numbers.{name} is a reserved name, like {', '.join(_KNOWN)}; choose a different name"
        elif name not in names_in_lines:
            yield f"numbers.{name} is in none of the {'columns' if own_format.columns else 'lines'}"
    if not declared:
        yield "numbers is missing; declare at least a throughput or a time"
    if [entry.unit in _CLOCKS for entry in declared.values()].count(True) > 1:
        yield f"several numbers have a unit of {', '.join(_CLOCKS)}; one clock is enough"
    if any(entry.mean_since == "epoch" for entry in declared.values()) and "epoch" not in names_in_lines:
        yield "mean_since: epoch needs the number epoch"


@dataclass(frozen=True)
class _ColumnsReader:
    """Reads a row; ``columns`` by name, ``metrics`` without positions."""

    columns: Mapping[str, str]
    metrics: Mapping[str, printed.PrintedMetric]

    def __call__(self, row: Mapping[str, Any]) -> format.JsonRecord | None:
        """Return the numbers of a row, or None without any."""
        columns = {}
        for name, key in self.columns.items():
            if row.get(key) not in (None, ""):
                columns[name] = key
        values = {}
        for name in filter(self.metrics.__contains__, columns):
            metric = self.metrics[name]
            number = _number(row[columns[name]], metric)
            if metric.inverse and number == 0:
                raise ValueError("0 steps/s")
            values[metric.name] = 1 / number if metric.inverse else number * metric.factor
        time_seconds = values.pop(printed.UNIX_TIME.name, float("nan"))
        epoch, step, rank = (int(float(row[columns[name]])) if name in columns else -1 for name in POSITION_COLUMNS)
        if values:
            return format.JsonRecord(values, epoch, step, rank, time_seconds)
        return None


def _number(value: Any, metric: printed.PrintedMetric) -> float:
    """Return the number in a cell, with commas if declared."""
    has_commas = metric.has_thousands and isinstance(value, str) and re.fullmatch(f"[-+]?{printed.THOUSANDS}", value)
    return float(value.replace(",", "") if has_commas else value)


def assign_own_formats(files: Sequence[LogFile]) -> list[LogFile]:
    """Assign declared formats to logs; return the logs alone.

    The nearest declaration above a log counts. Files of trackers have formats of their own. Raises LogError for an
    unreadable file, StudyFileError for an invalid one, and MetadataError for two formats with equal or similar names.
    """
    for file in files:
        if file.name != FORMAT_FILE and file.name.lower() in (FORMAT_FILE, *_MISNAMED):
            raise MetadataError(f"{file.relative_path}: is not read; name it {FORMAT_FILE}")
    formats: dict[tuple[str, ...], format.Format] = {}
    by_name: dict[str, format.Format] = {}
    for file in files:
        if file.name != FORMAT_FILE:
            continue
        format_ = read_own_format(read_whole(file.source, MAX_BYTES), file.relative_path)
        formats[file.parts[:-1]] = format_
        # A study could not tell the runs of two formats of one name apart.
        first = by_name.setdefault(format_.name, format_)
        if replace(format_, program=first.program) != first:
            both = f"{first.program} and {format_.program} are both named {format_.name!r} and differ"
            raise MetadataError(f"{both}: give one a different name")
    logs = [file for file in files if file.name != FORMAT_FILE]
    if formats:
        return [_assign_nearest(file, formats) for file in logs]
    return logs


def _assign_nearest(file: LogFile, formats: dict[tuple[str, ...], format.Format]) -> LogFile:
    folders = [file.parts[:end] for end in range(len(file.parts))]
    nearest = next(filter(formats.__contains__, reversed(folders)), None)
    if nearest is None or is_tracker_file(file.name) or isinstance(file.source, MlflowRun | MlflowDatabaseRun):
        return file
    return replace(file, source=replace(file.source, own_format=formats[nearest]))


def format_file_next_to(path: Path) -> list[LogFile]:
    """Return the format file next to a single log, if any."""
    file = path.with_name(FORMAT_FILE)
    if path.is_file() and file.is_file():
        return [LogFile(LogSource(file), (FORMAT_FILE,), 0)]
    return []
