"""The metadata of a published source: authors, address, licence, tables, and the facts of its numbers."""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dlperf_study.columns import COLUMNS, TableName, columns_of
from dlperf_study.columns.published import CELL, NUMBER
from dlperf_study.errors import PublishedError, StudyFileError
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.strict_yaml import display_path, read_mapping
from dlperf_study.study.study import SOURCES_FOLDER, source_names
from dlperf_study.study.validation import Section, validate
from dlperf_study.wording import unknown_name


@dataclass(frozen=True)
class PublishedMetric:
    """The unit and the definition of a metric; it has the name of our own column for the same quantity."""

    unit: str
    definition: str


_TASK = "of one worker for one task, which is several steps"
METRICS = {
    "throughput": PublishedMetric("samples/s", "samples per second"),
    "speedup": PublishedMetric("×", "throughput / that of the baseline"),
    "efficiency": PublishedMetric("", "speedup × baseline devices / devices; 1 is linear"),
    "mfu": PublishedMetric("", "share of the devices' peak that is used, as its source computes it"),
    "device_flops": PublishedMetric(
        "FLOP/s", "floating-point operations of one device per second, as its source counts them"
    ),
    "step_seconds": PublishedMetric("s", "time of one step"),
    "batch_per_device": PublishedMetric("samples", "samples per step and device"),
    "batches_per_task": PublishedMetric("", "batches of one worker in one task"),
    "samples_per_task": PublishedMetric("samples", "samples of one worker in one task"),
    "communication_share": PublishedMetric("", "share of the time spent on exchange, as its source states it"),
    "computation_to_communication": PublishedMetric("", "computation / communication"),
    "task_process_seconds": PublishedMetric("s", f"time {_TASK}"),
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
    *(c.name for c in columns_of(TableName.PUBLISHED) if c not in (*CELL, *NUMBER) and c.name != "repetition"),
)


def _validate_facts(facts: dict[str, Scalar]) -> dict[str, Scalar]:
    """Refuse a fact that is no column, or a string where the column holds numbers."""
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
    """One table of a source: its title, the heading of its row labels, and the facts of all its numbers."""

    title: Text
    rows: Text
    facts: Facts = Field(default={})


class PublishedSource(Section):
    """One publication, with its tables by name; ``question`` is what it asked, where a study asks it again."""

    title: Text
    authors: Text
    url: Text
    licence: Text
    retrieved: Text
    year: int | None = None
    question: str = ""
    differs: str = ""
    facts: Facts = Field(default={})
    tables: dict[str, TableSection]


_KEYS = {
    "": tuple(PublishedSource.model_fields),
    "tables": tuple(TableSection.model_fields),
}


@cache
def read_source(name: str) -> PublishedSource:
    """Return the metadata of a source.

    Raises:
        PublishedError: the source is unknown, or its file is invalid.

    """
    if name not in source_names():
        raise PublishedError(unknown_name("there is no published source", name, "sources", source_names()))
    path = SOURCES_FOLDER / f"{name}.yaml"
    try:
        return validate(PublishedSource, read_mapping(path), display_path(path), _KEYS)
    except StudyFileError as error:
        raise PublishedError(str(error)) from None
