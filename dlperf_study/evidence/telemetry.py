"""What the guard of one node sampled during a run, read as ``docs/evidence.md`` describes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from dlperf_study.errors import EvidenceError
from dlperf_study.evidence.records import WallAnchor
from dlperf_study.evidence.telemetry_writer import TELEMETRY_FORMAT
from dlperf_study.study.json_record import (
    RECORD,
    Count,
    PositiveCount,
    Seconds,
    format_number,
    lines_to_end,
    record_of,
)
from dlperf_study.wording import first_of

Amount = Annotated[float, Field(ge=0, le=1e18)]
Share = Annotated[float, Field(ge=0, le=1)]
Celsius = Annotated[int, Field(ge=-273, le=1000)]
Megahertz = Annotated[int, Field(ge=0, le=1_000_000)]


@with_config(RECORD)
class GpuFacts(TypedDict):
    """A GPU that ranks of the node use, and what limits it."""

    uuid: str
    name: NotRequired[str]
    memory_bytes: NotRequired[Count]
    power_limit_watts: NotRequired[Amount]
    default_power_limit_watts: NotRequired[Amount]
    largest_sm_clock_mhz: NotRequired[Megahertz]
    largest_memory_clock_mhz: NotRequired[Megahertz]


@with_config(RECORD)
class GpuSample(TypedDict, total=False):
    """The state of a GPU; what it does not report is left out."""

    utilisation: Share
    memory_used_bytes: Count
    power_watts: Amount
    energy_joules: Amount
    sm_clock_mhz: Megahertz
    memory_clock_mhz: Megahertz
    temperature_celsius: Celsius
    clock_limits: Count
    process_ids: list[Count]
    run_process_ids: list[Count]


@with_config(RECORD)
class Sample(TypedDict):
    """The state of a node at one time."""

    kind: Literal["before", "sample"]
    clock_ns: Count
    sampling_seconds: Seconds
    memory_used_bytes: Count
    cpu_energy_joules: dict[str, Amount]
    gpus: list[GpuSample]


@with_config(RECORD)
class FirstLine(TypedDict):
    """Whose telemetry it is."""

    kind: Literal["telemetry"]
    format: Annotated[int, format_number(TELEMETRY_FORMAT)]
    node: Count
    host: str
    interval_seconds: Seconds
    wall_anchor: WallAnchor
    gpus: list[GpuFacts]
    obstacles: dict[str, str]


@with_config(RECORD)
class LastLine(TypedDict):
    """How many samples there are, and what was not reported."""

    kind: Literal["end"]
    samples: PositiveCount
    not_reported: dict[str, dict[str, str]]


_FIRST, _SAMPLE, _LAST = TypeAdapter(FirstLine), TypeAdapter(Sample), TypeAdapter(LastLine)


@dataclass(frozen=True)
class NodeTelemetry:
    """The samples of one node, in order of time: ``before`` is of the node before anything was started.

    ``not_reported`` has, by UUID of the GPU and name of the value, why there is none.
    """

    facts: FirstLine
    before: Sample
    samples: tuple[Sample, ...]
    not_reported: Mapping[str, Mapping[str, str]]

    @property
    def node(self) -> int:
        """The index of the node."""
        return self.facts["node"]

    def between(self, begin_ns: int, end_ns: int) -> tuple[Sample, ...]:
        """Return the samples of a time, on the clock of the node."""
        return tuple(sample for sample in self.samples if begin_ns <= sample["clock_ns"] <= end_ns)


def read_telemetry(path: Path) -> NodeTelemetry:
    """Read the telemetry of one node.

    Raises:
        EvidenceError: the file is missing, truncated, or contradicts itself.

    """
    lines = lines_to_end(path)
    kinds = [str(line.get("kind")) for line in lines]
    if kinds[:2] != ["telemetry", "before"] or set(kinds[2:-1]) - {"sample"}:
        raise EvidenceError(f"{path}: its lines are {first_of(kinds)}, not telemetry, before, sample, …, end")
    return _telemetry(lines, str(path))


def _telemetry(lines: Sequence[dict[str, Any]], source: str) -> NodeTelemetry:
    first, *sample_lines, last = lines
    facts = record_of(_FIRST, first, f"{source}: line 1")
    end = record_of(_LAST, last, f"{source}: line {len(lines)}")
    if end["samples"] != len(sample_lines):
        raise EvidenceError(f"{source}: truncated, it has {len(sample_lines)} of {end['samples']} samples")
    samples: list[Sample] = []
    for line_number, line in enumerate(sample_lines, 2):
        sample = record_of(_SAMPLE, line, f"{source}: line {line_number}")
        if len(sample["gpus"]) != len(facts["gpus"]):
            gpus = f"{len(sample['gpus'])} GPUs, but the first line {len(facts['gpus'])}"
            raise EvidenceError(f"{source}: line {line_number} has {gpus}")
        if samples and sample["clock_ns"] < samples[-1]["clock_ns"]:
            raise EvidenceError(f"{source}: line {line_number} is earlier than the line before it")
        samples.append(sample)
    return NodeTelemetry(facts, samples[0], tuple(samples[1:]), end["not_reported"])
