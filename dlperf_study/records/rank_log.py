"""The log of one rank, read as ``docs/files.md`` describes it: which process measured, and every timed window."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, NotRequired, cast, get_type_hints

import numpy as np
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from dlperf_study.core.arrays import Floats
from dlperf_study.core.errors import RecordError
from dlperf_study.records import lines
from dlperf_study.study import renamed, validation
from dlperf_study.study.communication import COLLECTIVES, CollectiveKind
from dlperf_study.study.record_types import Rule, record_type

_RANK_LINE, _END_LINE = TypeAdapter(lines.RankLine), TypeAdapter(lines.EndLine)
_PROGRAM_RANK_LINE, _PROGRAM_END_LINE = TypeAdapter(lines.ProgramRankLine), TypeAdapter(lines.ProgramEndLine)
_INCOMPLETE_LINE = TypeAdapter(lines.IncompleteLine)
#: By how much the steps of a window may exceed it: the clocks of a device and of its host differ a little.
CLOCK_TOLERANCE = 0.01
#: Seconds of the unit of that clock.
NANO = 1e-9


@dataclass(frozen=True)
class Window(lines.MeasuredWindow[Floats]):
    """A window that was read; ``input_seconds`` are 0 without ``has_input``."""

    input_seconds: Floats = field(default_factory=lambda: np.zeros(0))
    has_input: bool = True

    @property
    def mean_seconds(self) -> float:
        """Seconds of the window / its steps."""
        return self.seconds / self.steps

    @property
    def work_seconds(self) -> Floats:
        """What each step took without waiting for its batch."""
        return self.step_seconds - self.input_seconds


def _window_line() -> TypeAdapter[Mapping[str, Any]]:
    """Return the type of a window's line, from its declaration."""
    types: dict[str, Any] = {"kind": Literal["window"]}
    hints = get_type_hints(lines.MeasuredWindow, include_extras=True)
    for entry in fields(lines.MeasuredWindow):
        kind = hints[entry.name]
        [metadata] = getattr(kind, "__metadata__", (None,))
        if not isinstance(metadata, Rule | None):
            kind = metadata
        types[entry.name] = kind if entry.default is MISSING else NotRequired[kind]
    return TypeAdapter(record_type(TypedDict("WindowLine", types)))  # type: ignore[operator]


_WINDOW_LINE = _window_line()


@dataclass(frozen=True)
class RankLog:
    """The complete log of one rank: first line, windows, last line."""

    rank: int
    facts: lines.RankLine | lines.ProgramRankLine
    windows: Mapping[str, Window]
    end: lines.EndLine | lines.ProgramEndLine

    @property
    def recorded_by(self) -> lines.RecordedBy:
        """Who measured."""
        return lines.RecordedBy(self.facts.get("recorded_by", lines.RecordedBy.WORKER))

    @property
    def is_of_program(self) -> bool:
        """Whether a user's program was measured."""
        return self.recorded_by is not lines.RecordedBy.WORKER

    @property
    def is_of_job(self) -> bool:
        """Whether it is the only log of all ranks."""
        return self.facts.get("scope") == lines.Scope.JOB

    @property
    def process(self) -> tuple[str, int, int]:
        """The process that wrote it: host, id, and begin in ns."""
        return self.facts["host"], self.facts["pid"], self.facts["wall_anchor"]["unix_ns"]


def read_rank_log(path: Path) -> RankLog:
    """Read the log of one rank; raises RecordError if it is invalid."""
    source = str(path)
    first, *window_lines, last = validation.lines_of_log(path, ("rank",), "window", why_unended=_explain_incomplete)
    first, *window_lines, last = renamed.rename_log([first, *window_lines, last])
    is_of_worker = first.get("recorded_by", lines.RecordedBy.WORKER) == lines.RecordedBy.WORKER
    first_source, last_source = f"{source}: line 1", f"{source}: line {len(window_lines) + 2}"
    facts: lines.RankLine | lines.ProgramRankLine
    end: lines.EndLine | lines.ProgramEndLine
    if is_of_worker:
        facts, end = (
            validation.validate_record(_RANK_LINE, first, first_source),
            validation.validate_record(_END_LINE, last, last_source),
        )
    else:
        facts = validation.validate_record(_PROGRAM_RANK_LINE, first, first_source)
        end = validation.validate_record(_PROGRAM_END_LINE, last, last_source)
    if end["windows"] != len(window_lines):
        raise RecordError(f"{source}: truncated, it has {len(window_lines)} of {end['windows']} windows")
    _check_input(window_lines, source)
    windows: dict[str, Window] = {}
    for line_number, line in enumerate(window_lines, 2):
        window = _window(validation.validate_record(_WINDOW_LINE, line, f"{source}: line {line_number}"), source)
        windows[window.name] = window
    if len(windows) < len(window_lines) or lines.TRAINING not in windows:
        raise RecordError(f"{source}: needs one {lines.TRAINING} window and no window twice, has {', '.join(windows)}")
    for window in windows.values():
        if window.name.startswith(lines.COMMUNICATION_ALONE):
            _check_bytes(window, facts, source)
    return RankLog(facts["rank"], facts, windows, end)


def _explain_incomplete(last_line: dict[str, Any]) -> str:
    if last_line.get("kind") != lines.INCOMPLETE:
        return ""
    line = validation.validate_record(_INCOMPLETE_LINE, last_line, lines.INCOMPLETE)
    return f"the program took {line['steps']} of {line['requested']} steps ({line['reason']})"


def _check_input(window_lines: Sequence[Mapping[str, Any]], source: str) -> None:
    """Check that all windows with batches have input times, or none."""
    with_batches = [line for line in window_lines if line.get("name") in lines.WITH_BATCHES]
    names_without = [line["name"] for line in with_batches if "input_seconds" not in line]
    if 0 < len(names_without) < len(with_batches):
        windows_without = ", ".join(names_without)
        raise RecordError(f"{source}: input_seconds is missing in {windows_without}, but not in all windows")


def _check_bytes(window: Window, facts: lines.RankLine | lines.ProgramRankLine, source: str) -> None:
    """Check that a transfer moved the bytes of its name."""
    gradient_bytes = facts.get("gradient_bytes", 0)
    if facts["communication"] == COLLECTIVES:
        _check_collectives(window, facts, source)
        return
    size = gradient_bytes if window.name == lines.COMMUNICATION_ALONE else window.bytes
    if window.bytes is None or window.bytes != size or not 0 < size <= gradient_bytes:
        sizes = f"{window.bytes} bytes, but the gradients have {gradient_bytes}"
        raise RecordError(f"{source}: window {window.name} transferred {sizes}")
    if window.name not in (lines.COMMUNICATION_ALONE, lines.part_of_communication(size)):
        raise RecordError(f"{source}: window {window.name} transferred {size} bytes, so that is not its name")


def _check_collectives(window: Window, facts: lines.RankLine | lines.ProgramRankLine, source: str) -> None:
    """Check that a transfer moved the bytes of its collectives."""
    collectives = cast(lines.RankLine, facts).get("collective_operations", [])
    parts: list[tuple[CollectiveKind | None, str | None]] = [(None, None)]
    for line in collectives:
        parts.append((line["kind"], None))
        # Ranks that differ in no dimension alone, such as the ends of a pipeline, have no window of their own.
        parts += [(None, group)] if (group := line.get("group")) else []
    sizes = {lines.communication_window_name(*part): lines.size_of_collectives(collectives, *part) for part in parts}
    if window.bytes != sizes.get(window.name):
        step = f"those of a step have {sizes.get(window.name, 'no such')} bytes"
        raise RecordError(f"{source}: window {window.name} transferred {window.bytes} bytes, but {step}")


def _window(line: Mapping[str, Any], source: str) -> Window:
    name, steps, seconds, ended_by = line["name"], line["steps"], line["seconds"], line.get("ended_by")
    step_seconds = np.array(line["step_seconds"], dtype=np.float64)
    losses = np.array(line["losses"], dtype=np.float64)
    per_value = line.get("steps_per_value", 1)
    if step_seconds.size * per_value != steps or losses.size not in (steps, 0):
        raise RecordError(f"{source}: window {name} does not have one time and one loss for each step")
    if not steps and name != lines.WARMUP:
        raise RecordError(f"{source}: window {name} has no step")
    # Of numbers that are not from this writer numpy would print a warning.
    total = sum(line["step_seconds"]) * per_value
    if not abs(total - seconds) <= seconds * CLOCK_TOLERANCE:
        raise RecordError(f"{source}: window {name} lasts {seconds} s but its steps {total} s")
    if (ended_by is None) == (name == lines.WARMUP):
        choices = f"each {lines.WARMUP} has that, one of {', '.join(lines.WarmupEnd)}, and no other window"
        raise RecordError(f"{source}: window {name}: ended_by is {ended_by or 'missing'}; {choices}")
    input_seconds = _input_seconds(line, step_seconds, source)
    skipped_steps = line.get("skipped_steps")
    if skipped_steps is not None and skipped_steps > losses.size:
        raise RecordError(f"{source}: window {name} skipped {skipped_steps} steps, but trained {losses.size}")
    values = {key: value for key, value in line.items() if key in Window.__dataclass_fields__}
    for key in ("samples", "tokens"):
        if key in line:
            values[key] = np.array(line[key], dtype=np.float64)
            if values[key].size != steps:
                raise RecordError(f"{source}: window {name} does not have one of {key} for each step")
    values |= {"step_seconds": step_seconds, "losses": losses, "input_seconds": input_seconds}
    return Window(**values, has_input="input_seconds" in line)


def _input_seconds(line: Mapping[str, Any], step_seconds: Floats, source: str) -> Floats:
    """Return how long each step of a window waited for its batch."""
    if "input_seconds" not in line:
        return np.zeros_like(step_seconds)
    name, input_seconds = line["name"], np.array(line["input_seconds"], dtype=np.float64)
    if name not in lines.WITH_BATCHES:
        raise RecordError(f"{source}: window {name} has input_seconds, but its steps take no batch")
    if input_seconds.size != step_seconds.size:
        raise RecordError(f"{source}: window {name} does not have one of input_seconds for each step")
    if (input_seconds > step_seconds).any():
        step = int(np.argmax(input_seconds > step_seconds))
        waited = f"waited {input_seconds[step]} s for its batch, but took {step_seconds[step]} s"
        raise RecordError(f"{source}: step {step} of window {name} {waited}")
    return input_seconds
