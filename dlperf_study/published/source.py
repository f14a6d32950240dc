"""What is known of a published source: who printed it, where, under which licence, and what holds for its numbers."""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dlperf_study.columns import COLUMNS, Table, columns_of
from dlperf_study.columns.published import NUMBER, PLACE
from dlperf_study.errors import PublishedError, StudyFileError
from dlperf_study.study.configuration import Scalar
from dlperf_study.study.strict_yaml import display_path, read_mapping
from dlperf_study.study.study import SOURCES_FOLDER, source_names
from dlperf_study.study.validation import Section, validate
from dlperf_study.wording import unknown

# What a published number may be, and in which unit its value is kept.


@dataclass(frozen=True)
class PublishedMetric:
    """One kind of number; the name is that of our own column wherever it is the same thing."""

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


#: What may hold for a source, for a table or for one number: the nearest counts.
FACTS = (
    "scope",
    "role",
    "estimator",
    *(c.name for c in columns_of(Table.PUBLISHED) if c not in (*PLACE, *NUMBER) and c.name != "repetition"),
)


def _known(facts: dict[str, Scalar]) -> dict[str, Scalar]:
    """Refuse a fact that is no column, or a text where the column holds numbers."""
    for name, value in facts.items():
        if name not in FACTS:
            raise ValueError(unknown("unknown fact", name, "facts", FACTS))
        if COLUMNS[name].is_number == isinstance(value, str):
            raise ValueError(f"{name} is {value!r}; it must be a {'number' if COLUMNS[name].is_number else 'text'}")
    return facts


Facts = Annotated[dict[str, Any], AfterValidator(_known)]
Text = Annotated[str, Field(min_length=1)]


class TableSection(Section):
    """One table of a source: its title, the head of its row labels, and what holds for all its numbers."""

    title: Text
    rows: Text
    facts: Facts = Field(default={})


class PublishedSource(Section):
    """One publication, with its tables by name."""

    title: Text
    authors: Text
    url: Text
    licence: Text
    retrieved: Text
    year: int | None = None
    differs: str = ""
    facts: Facts = Field(default={})
    tables: dict[str, TableSection]


_KEYS = {
    "": tuple(PublishedSource.model_fields),
    "tables": tuple(TableSection.model_fields),
}


@cache
def read_source(name: str) -> PublishedSource:
    """Return what is known of a source.

    Raises:
        PublishedError: there is no such source, or its file can't be read as one.

    """
    if name not in source_names():
        raise PublishedError(unknown("there is no published source", name, "sources", source_names()))
    path = SOURCES_FOLDER / f"{name}.yaml"
    try:
        return validate(PublishedSource, read_mapping(path), display_path(path), _KEYS)
    except StudyFileError as error:
        raise PublishedError(str(error)) from None
