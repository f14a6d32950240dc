"""Diagnostics about one log that was read, each with what was seen. None changes a number; an error refuses the log."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dlperf_study.diagnostic import Diagnostic
from dlperf_study.logs.blocks import Block, Blocks
from dlperf_study.logs.completeness import losses
from dlperf_study.logs.parsed_log import Reading
from dlperf_study.logs.step_index import restarts
from dlperf_study.wording import counted

#: How many lines are shown of each kind of warning, and how much of each.
SHOWN_LINES, SHOWN_CHARACTERS = 3, 160


@dataclass
class OddLines:
    """Lines of one kind of warning: how many, and the first of them."""

    count: int = 0
    shown: list[str] = field(default_factory=list)

    def add(self, block: Block, indices: Sequence[int]) -> None:
        """Add some lines of a block, counted from 0."""
        self.count += len(indices)
        for index in indices[: SHOWN_LINES - len(self.shown)]:
            text = block.line(index)[:SHOWN_CHARACTERS].decode(errors="replace")
            self.shown.append(f"line {block.first_line + index}: {text!r}")


def diagnostics(
    reading: Reading,
    unusable: OddLines,
    not_numbers: OddLines,
    blocks: Blocks,
    facts: Mapping[str, Sequence[str]],
    is_cut: bool,
) -> list[Diagnostic]:
    """Return every warning about a log; ``is_cut``: its last line has no end, and could not be used."""
    messages = (
        *_seen(unusable, "looks like its format but could not be used", "look like its format but could not be used"),
        *_seen(not_numbers, "prints a number that is none (nan)", "print a number that is none (nan)"),
        *_bytes(blocks),
        *_contradictions(facts),
        *_numbers(reading),
        *_restarts(reading),
    )
    source = str(reading.source)
    return [
        *losses(reading, blocks, unusable.count, is_cut),
        *(Diagnostic(source, message) for message in messages),
    ]


def _seen(lines: OddLines, one: str, several: str) -> Iterator[str]:
    if lines.count == 1:
        yield f"1 line {one}: {lines.shown[0]}"
    elif lines.count:
        yield f"{lines.count} lines {several}, as {'; '.join(lines.shown)}"


def _bytes(blocks: Blocks) -> Iterator[str]:
    shown = ", ".join(map(str, blocks.skipped[:SHOWN_LINES]))
    if len(blocks.skipped) == 1:
        yield f"1 line is too long to be a log's and was skipped: line {shown}"
    elif shown:
        yield f"{len(blocks.skipped)} lines are too long to be a log's and were skipped, as lines {shown}"
    if blocks.undecodable:
        lines = counted(blocks.undecodable, "line")
        yield f"{lines} with bytes that are no text (UTF-8), the first: {blocks.first_undecodable}"


def _contradictions(facts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, values in facts.items():
        if len(values) > 1:
            yield f"it states {name} as {', '.join(values)}: none of them is used"


def _numbers(reading: Reading) -> Iterator[str]:
    for name, column in reading.records.values.items():
        infinite = np.flatnonzero(np.isinf(column))
        if infinite.size:
            first = reading.records.line[infinite[0]]
            yield f"{name} is infinite in {counted(infinite.size, 'line')}, the first: {first}"
    for name in reading.format.rates:
        rows = reading.records
        holding = rows.holding(name)
        wrong = rows.line[holding & (rows.values[name] <= 0)] if holding.any() else rows.line[:0]
        if wrong.size:
            yield f"{name} is not above 0 in {counted(wrong.size, 'line')}, the first: {wrong[0]}"


def _restarts(reading: Reading) -> Iterator[str]:
    lines = restarts(reading.records)
    if lines.size:
        shown = ", ".join(map(str, lines[:SHOWN_LINES].tolist()))
        said = "several runs in one log, or resumed ones"
        yield f"steps start over {counted(lines.size, 'time')}, at line {shown}: {said}"
