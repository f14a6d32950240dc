"""Diagnostics about one log that was read. None changes a number; an error refuses the log."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dlperf_study.diagnostic import Diagnostic
from dlperf_study.logs.blocks import Block, Blocks
from dlperf_study.logs.completeness import completeness_diagnostics
from dlperf_study.logs.parsed_log import ParsedLog
from dlperf_study.wording import counted

#: How many lines are shown for each diagnostic, and how many characters of each.
_SHOWN_LINES, _SHOWN_CHARACTERS = 3, 160


@dataclass
class LineExamples:
    """Lines that one diagnostic is about: how many, and the first of them."""

    count: int = 0
    shown: list[str] = field(default_factory=list)

    def add(self, block: Block, indices: Sequence[int]) -> None:
        """Add lines of a block, counted from 0."""
        self.count += len(indices)
        for index in indices[: _SHOWN_LINES - len(self.shown)]:
            text = block.line(index)[:_SHOWN_CHARACTERS].decode(errors="replace")
            self.shown.append(f"line {block.first_line + index}: {text!r}")

    def message(self, singular: str, plural: str) -> Iterator[str]:
        """Yield what is true of these lines, if there are any, with the examples."""
        if self.count == 1:
            yield f"1 line {singular}: {self.shown[0]}"
        elif self.count:
            yield f"{self.count} lines {plural}, as {'; '.join(self.shown)}"


def log_diagnostics(
    log: ParsedLog,
    blocks: Blocks,
    unusable: LineExamples,
    nan_lines: LineExamples,
    facts: Mapping[str, Sequence[str]],
    is_cut: bool,
) -> list[Diagnostic]:
    """Return every diagnostic about a log.

    ``facts``: all values that it states for each fact; ``is_cut``: its last line has no newline and could not be used.
    """
    messages = (
        *unusable.message("looks like its format but could not be used", "look like its format but could not be used"),
        *nan_lines.message("prints a number as nan", "print a number as nan"),
        *_skipped_lines(blocks),
        *_contradictory_facts(facts),
        *_infinite_numbers(log),
        *_rates_not_above_zero(log),
        *_restarts(log),
    )
    source = str(log.source)
    return [
        *completeness_diagnostics(log, blocks, unusable.count, is_cut),
        *(Diagnostic(source, message) for message in messages),
    ]


def _skipped_lines(blocks: Blocks) -> Iterator[str]:
    shown = ", ".join(map(str, blocks.skipped[:_SHOWN_LINES]))
    if len(blocks.skipped) == 1:
        yield f"1 line was skipped because it is too long for a log: line {shown}"
    elif blocks.skipped:
        yield f"{len(blocks.skipped)} lines were skipped because they are too long for a log, as lines {shown}"
    if blocks.undecodable:
        lines = counted(blocks.undecodable, "line")
        yield f"{lines} with bytes that are not text (UTF-8), the first: {blocks.first_undecodable}"


def _contradictory_facts(facts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, values in facts.items():
        if len(values) > 1:
            yield f"it states {name} as {', '.join(values)}: none of them is used"


def _infinite_numbers(log: ParsedLog) -> Iterator[str]:
    for name, column in log.records.values.items():
        infinite = np.flatnonzero(np.isinf(column))
        if infinite.size:
            first = log.records.line[infinite[0]]
            yield f"{name} is infinite in {counted(infinite.size, 'line')}, the first: {first}"


def _rates_not_above_zero(log: ParsedLog) -> Iterator[str]:
    records = log.records
    for name in log.format.rates:
        rows = records.has_metric(name)
        lines = records.line[rows & (records.values[name] <= 0)] if rows.any() else records.line[:0]
        if lines.size:
            yield f"{name} is not above 0 in {counted(lines.size, 'line')}, the first: {lines[0]}"


def _restarts(log: ParsedLog) -> Iterator[str]:
    if log.restarts.size:
        shown = ", ".join(map(str, log.restarts[:_SHOWN_LINES].tolist()))
        reason = "several runs in one log, or resumed ones"
        yield f"steps start over {counted(log.restarts.size, 'time')}, at line {shown}: {reason}"
