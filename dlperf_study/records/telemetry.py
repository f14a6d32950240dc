"""What the node agent of one node sampled during a run, read as ``docs/files.md`` describes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from dlperf_study.core.errors import RecordError
from dlperf_study.records.lines import FirstLine, LastLine, NodeSample
from dlperf_study.study.validation import lines_of_log, validate_record

_FIRST, _SAMPLE, _LAST = TypeAdapter(FirstLine), TypeAdapter(NodeSample), TypeAdapter(LastLine)


@dataclass(frozen=True)
class NodeTelemetry:
    """The samples of one node, in order of time.

    ``not_reported`` has, by UUID of the GPU and name of the value, why there is none.
    """

    facts: FirstLine
    before: NodeSample
    samples: tuple[NodeSample, ...]
    not_reported: Mapping[str, Mapping[str, str]]

    @property
    def node(self) -> int:
        """The index of the node."""
        return self.facts["node"]

    def between(self, begin_ns: int, end_ns: int) -> tuple[NodeSample, ...]:
        """Return the samples of a time, on the clock of the node."""
        return tuple(sample for sample in self.samples if begin_ns <= sample["clock_ns"] <= end_ns)


def read_telemetry(path: Path) -> NodeTelemetry:
    """Read the telemetry of one node; raises RecordError if invalid."""
    source, lines = str(path), lines_of_log(path, first=("telemetry", "before"), repeated="sample")
    first, *sample_lines, last = lines
    facts = validate_record(_FIRST, first, f"{source}: line 1")
    end = validate_record(_LAST, last, f"{source}: line {len(lines)}")
    if end["samples"] != len(sample_lines):
        raise RecordError(f"{source}: truncated, it has {len(sample_lines)} of {end['samples']} samples")
    samples: list[NodeSample] = []
    for line_number, line in enumerate(sample_lines, 2):
        sample = validate_record(_SAMPLE, line, f"{source}: line {line_number}")
        if len(sample["gpus"]) != len(facts["gpus"]):
            gpus = f"{len(sample['gpus'])} GPUs, but the first line {len(facts['gpus'])}"
            raise RecordError(f"{source}: line {line_number} has {gpus}")
        if samples and sample["clock_ns"] < samples[-1]["clock_ns"]:
            raise RecordError(f"{source}: line {line_number} is earlier than the line before it")
        samples.append(sample)
    return NodeTelemetry(facts, samples[0], tuple(samples[1:]), end["not_reported"])
