"""What ``plan.json`` holds: the type and the bounds of every key."""

from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from pydantic import TypeAdapter

from dlperf_study.study.configuration import FIELD_NAMES
from dlperf_study.study.plan import FORMAT
from dlperf_study.study.record_types import FormatNumber, Integer, Positive, PositiveCount, TypedDict, record_type
from dlperf_study.study.study import FORMER_QUESTIONS, QUESTIONS
from dlperf_study.study.study_file import SourceName, one_of
from dlperf_study.study.validation import object_of, record_of, text_of

ParameterName = Annotated[str, one_of("parameters", lambda: FIELD_NAMES)]


#: An earlier version may have written a plan with pages that there are no more.
QuestionName = Annotated[str, one_of("questions", lambda: (*QUESTIONS, *FORMER_QUESTIONS))]


@record_type
class EntryRecord(TypedDict):
    """One configuration of a plan."""

    identity: str
    configuration: dict[str, Any]
    baseline_identity: str
    unsupported: str | None
    reference_identity: str | None
    unstated: NotRequired[list[ParameterName]]
    is_extra: NotRequired[bool]
    is_searched: NotRequired[bool]


@record_type
class PlanRecord(TypedDict):
    """A plan, as ``Plan`` describes it."""

    format: Annotated[int, FormatNumber(FORMAT)]
    study: str
    cluster: str
    title: str
    about: str
    scaling: Literal["weak", "strong"]
    questions: list[QuestionName]
    factors: list[str]
    published: list[SourceName]
    quick: bool
    order: Literal["rounds", "blocks", ""]
    order_seed: Integer
    precision: Positive | None
    max_repeats: PositiveCount | None
    time_budget_minutes: Positive | None
    largest_batch: NotRequired[PositiveCount | None]
    ingested_from: str
    device: NotRequired[Literal["cpu", "gpu", ""]]
    why_not_gpu: NotRequired[str]
    rate: NotRequired[Literal["samples", "tokens"]]
    entries: list[EntryRecord]


_PLAN_RECORD = TypeAdapter(PlanRecord)


def read_record(path: Path) -> PlanRecord:
    """Return the content of a plan; raises EvidenceError when it is missing or not as ``PlanRecord`` says."""
    return record_of(_PLAN_RECORD, object_of(text_of(path), str(path)), str(path))
