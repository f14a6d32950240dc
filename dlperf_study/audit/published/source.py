"""A published source: metadata in YAML, one printed number per CSV line."""

import csv
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dlperf_study.core.errors import PublishedError, StudyFileError
from dlperf_study.core.wording import unknown_name
from dlperf_study.metrics.columns import COLUMNS, PRODUCTS, TableName, list_columns
from dlperf_study.metrics.published import CELL, NUMBER
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.strict_yaml import display_path, read_mapping
from dlperf_study.study.study import SOURCES_FOLDER, source_names
from dlperf_study.study.validation import Section, validate


@dataclass(frozen=True)
class PublishedMetric:
    """Unit and definition of a published metric."""

    unit: str
    definition: str


_TASK = "per task of a worker"
METRICS = {
    "throughput": PublishedMetric("samples/s", "samples per second"),
    "speedup": PublishedMetric("×", "throughput / baseline throughput"),
    "efficiency": PublishedMetric("", "speedup × baseline devices / devices; 1 is linear"),
    "mfu": PublishedMetric("", "model FLOPs per second / peak of the devices, as the source computes it"),
    "hfu": PublishedMetric("", "the same with recomputed activations, as the source computes it"),
    "device_flops": PublishedMetric("FLOP/s", "FLOPs of one device per second, as the source counts them"),
    "step_seconds": PublishedMetric("s", "time of one step"),
    "batch_per_device": PublishedMetric("samples", "samples per step and device"),
    "batches_per_task": PublishedMetric("", f"batches {_TASK}"),
    "samples_per_task": PublishedMetric("samples", f"samples {_TASK}"),
    "communication_share": PublishedMetric("", "fraction of the time spent on communication, as the source states it"),
    "computation_to_communication": PublishedMetric("", "computation / communication"),
    "task_process_seconds": PublishedMetric("s", f"time {_TASK}; a task is several steps"),
    "batch_process_seconds": PublishedMetric("s", f"time in batches {_TASK}"),
    "get_model_seconds": PublishedMetric("s", f"time to fetch the model {_TASK}"),
    "report_gradient_seconds": PublishedMetric("s", f"time to average gradients {_TASK}"),
    "tensor_numpy_seconds": PublishedMetric("s", f"time to copy gradients off the device {_TASK}"),
    "apply_gradients_seconds": PublishedMetric("s", f"time to apply gradients {_TASK}"),
    "forward_backward_seconds": PublishedMetric("s", f"time of both passes {_TASK}"),
}
ESTIMATORS = ("median", "mean", "run", "one value", "not stated")
SCOPES = ("job", "rank")
ROLES = ("result", "working")
IMAGES = MADE_UP, READ = "made up", "read from files"
#: What may be declared for a source, for a table or for one number; the most specific declaration counts.
FACTS = (
    "scope",
    "role",
    "estimator",
    *(c.name for c in list_columns(TableName.PUBLISHED) if c not in (*CELL, *NUMBER) and c.name != "repetition"),
)
NEEDED = ("table", "row", "column", "metric", "printed")
OPTIONAL = ("before", "after", "printed_unit", "repetition", "baseline", "runs_of")
_CHOICES = {"metric": tuple(METRICS), "estimator": ESTIMATORS, "scope": SCOPES, "role": ROLES}
NO_NUMBER = "-"
#: How many of a printed unit are one unit of the metric; any other printed unit is that of the metric.
UNIT_FACTORS = {"%": 100, "ms": 1000, "TFLOP/s": 1e-12}
#: A printed unit of throughputs, which are samples/s of all devices.
TOKENS_PER_DEVICE = "tokens/s/GPU"
_NUMBER = re.compile(r"\d+(?:\.(\d+))?")
_RATIO = re.compile(r"(\d+) ?: ?(0*[1-9]\d*)")


def _validate_facts(facts: dict[str, Scalar]) -> dict[str, Scalar]:
    """Reject unknown facts, and strings in number columns."""
    for name, value in facts.items():
        if name not in FACTS:
            raise ValueError(unknown_name("unknown fact", name, "facts", FACTS))
        if COLUMNS[name].is_number == isinstance(value, str):
            kind = "number" if COLUMNS[name].is_number else "string"
            raise ValueError(f"{name} is {value!r}; it must be a {kind}")
    return facts


Facts = Annotated[dict[str, Any], AfterValidator(_validate_facts)]
Text = Annotated[str, Field(min_length=1)]


class TableSection(Section):
    """Title, row heading and common facts of one table."""

    title: Text
    rows: Text
    facts: Facts = Field(default={})


class PublishedSource(Section):
    """One publication, with its tables by name.

    ``laboratory``: who measured; series of one laboratory are not independent. ``question``: the question of the
    publication, if a study repeats it.
    """

    title: Text
    authors: Text
    laboratory: Text
    url: Text
    licence: Text
    retrieved: Text
    year: int | None = None
    question: str = ""
    differs: str = ""
    facts: Facts = Field(default={})
    tables: dict[str, TableSection]


@cache
def read_source(name: str) -> PublishedSource:
    """Return the metadata of a source; raises PublishedError if it is invalid."""
    if name not in source_names():
        raise PublishedError(unknown_name("there is no published source", name, "sources", source_names()))
    path = SOURCES_FOLDER / f"{name}.yaml"
    keys = {"": tuple(PublishedSource.model_fields), "tables": tuple(TableSection.model_fields)}
    try:
        return validate(PublishedSource, read_mapping(path), display_path(path), keys)
    except StudyFileError as error:
        raise PublishedError(str(error)) from None


def read_lines(source: PublishedSource, path: Path) -> Iterator[dict[str, Any]]:
    """Yield each line of a CSV file as one number with its facts.

    Facts of a line override those of its table, and these override those of the source. Raises PublishedError for an
    unknown column, table or value, and for an empty field that is needed.
    """
    shown = display_path(path)
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        header = tuple(reader.fieldnames or ())
        columns = (*NEEDED, *OPTIONAL, *FACTS)
        wrong = [name for name in header if name not in columns] or [name for name in NEEDED if name not in header]
        if wrong:
            names = f"{', '.join(wrong)} is unknown or missing; the columns are {', '.join(columns)}"
            raise PublishedError(f"{shown}: {names}")
        for fields in reader:
            yield _line(source, fields, f"{shown}, line {reader.line_num}")


def _line(source: PublishedSource, fields: Mapping[str, str], location: str) -> dict[str, Any]:
    empty = [name for name in NEEDED if not fields[name]]
    if empty:
        raise PublishedError(f"{location}: {', '.join(empty)} is empty")
    table_name = fields["table"]
    if table_name not in source.tables:
        raise PublishedError(unknown_name(f"{location}: table is", table_name, "tables", source.tables))
    line = {**source.facts, **source.tables[table_name].facts}
    for name, field in fields.items():
        if not field or name == "printed_unit":
            continue
        try:
            line[name] = float(field) if COLUMNS[name].is_number else field
        except ValueError:
            raise PublishedError(f"{location}: {name} is {field!r}, which is not a number") from None
    for name, choices in _CHOICES.items():
        if line.get(name) not in choices:
            raise PublishedError(unknown_name(f"{location}: {name} is", str(line.get(name, "")), f"{name}s", choices))
    if line.get("images", MADE_UP) not in IMAGES:
        raise PublishedError(unknown_name(f"{location}: images is", str(line["images"]), "values", IMAGES))
    line = derive_sizes(line | {"unit": METRICS[line["metric"]].unit})
    printed, unit = fields["printed"], fields.get("printed_unit", "")
    try:
        factor = 1.0
        if unit == TOKENS_PER_DEVICE:
            missing = [name for name in ("sequence_length", "world_size") if not line.get(name)]
            if missing:
                raise PublishedError(f"{TOKENS_PER_DEVICE} need {' and '.join(missing)}")
            factor = float(line["sequence_length"] / line["world_size"])
        line |= {"value": parse_value(printed, unit) / factor, "resolution": parse_resolution(printed, unit) / factor}
    except PublishedError as error:
        raise PublishedError(f"{location}: {error}") from None
    return line


def parse_value(printed: str, unit: str = "") -> float:
    """Return a printed number in the metric's unit; nan for a dash.

    A ratio ``a : b`` is a / b. Raises PublishedError for anything else. ``unit`` is the printed unit.
    """
    if printed == NO_NUMBER:
        return math.nan
    if terms := parse_ratio_terms(printed):
        return terms[0] / terms[1]
    return float(_match_number(printed)[0]) / UNIT_FACTORS.get(unit, 1)


def parse_resolution(printed: str, unit: str = "") -> float:
    """Return one unit of the last printed digit; nan for a dash.

    For a ratio a : b it is the effect of one unit of b, to first order: a / b².
    """
    if printed == NO_NUMBER:
        return math.nan
    if terms := parse_ratio_terms(printed):
        return terms[0] / terms[1] ** 2
    decimals = len(_match_number(printed)[1] or "")
    return float(10.0**-decimals / UNIT_FACTORS.get(unit, 1))


def parse_ratio_terms(printed: str) -> tuple[int, int] | None:
    """Return both terms of a ratio like ``10 : 3``, else None."""
    if ratio := _RATIO.fullmatch(printed):
        return int(ratio[1]), int(ratio[2])
    return None


def _match_number(printed: str) -> re.Match[str]:
    if match := _NUMBER.fullmatch(printed):
        return match
    raise PublishedError(f"{printed!r} is neither a number nor a ratio like 10 : 3 nor {NO_NUMBER!r}")


def derive_sizes(line: Mapping[str, Any]) -> dict[str, Any]:
    """Add devices and global batch, if their factors are known."""
    sizes = dict(line)
    for product, factors in PRODUCTS.items():
        if product not in sizes and all(name in sizes for name in factors):
            sizes[product] = sizes[factors[0]] * sizes[factors[1]]
            sizes["inferred"] = ", ".join(filter(None, [sizes.get("inferred"), product]))
    return sizes
