"""Reads a log: recognises its format, then streams through it once."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dlperf_study.arrays import Integers, Mask, any_of, concatenated
from dlperf_study.errors import LogError
from dlperf_study.logs.blocks import Block, Blocks
from dlperf_study.logs.format import Fact, Format, JsonLine, Line
from dlperf_study.logs.format_detection import (
    others_at_end,
    others_at_start,
    read_block,
    recognised,
    resembling,
    the_one,
)
from dlperf_study.logs.formats import load, names
from dlperf_study.logs.json_layouts import UNREADABLE
from dlperf_study.logs.json_lines import object_behind
from dlperf_study.logs.lines import lines_with
from dlperf_study.logs.log_diagnostics import OddLines, diagnostics
from dlperf_study.logs.parsed_log import Reading
from dlperf_study.logs.records import Found, Records, joined
from dlperf_study.logs.sources import Source

# What a log itself states about the whole run: its batch, its devices, what it planned.


#: Programs state these things before they train.
HEAD_BYTES = 1 << 16


def facts_of(format_: Format, block: Block) -> Iterator[tuple[str, str]]:
    """Yield name and value of every statement near the start of a block; a name may come again with another value."""
    head = Block(block.data[: block.data.rfind(b"\n", 0, HEAD_BYTES) + 1], block.first_line)
    for fact in format_.facts:
        yield from _stated(fact, head.data)
    for line in format_.lines:
        if isinstance(line, JsonLine):
            yield from _stated_in_json(line, head)


def _stated(fact: Fact, data: bytes) -> Iterator[tuple[str, str]]:
    for match in re.finditer(fact.pattern.encode(), data):
        if not _is_end_of_word(data, match.start()):
            yield fact.name, match[1].decode(errors="replace")


def _is_end_of_word(data: bytes, start: int) -> bool:
    """Say whether the match starts within a longer name, as ``batch_size`` does in ``total_batch_size``."""
    return start > 0 and re.fullmatch(rb"\w\w", data[start - 1 : start + 1]) is not None


def _stated_in_json(line: JsonLine, head: Block) -> Iterator[tuple[str, str]]:
    candidates = lines_with(line.needles, head)
    for index in candidates.tolist():
        try:
            yield from line.facts(object_behind(line.needles, head.line(index))).items()
        except UNREADABLE:
            continue


# Lines of evaluation that look as those of training do: a number that is above 0 in training tells them apart.


def evaluation_apart(rows: Records, format_: Format) -> Records:
    """Return the rows of a log, those of evaluation being none of training."""
    printed = rows.values.get(format_.zero_in_evaluation)
    if printed is None or not (printed == 0).any():
        return rows
    return replace(rows, training=rows.training & ~_evaluating(rows, printed == 0))


def _evaluating(rows: Records, zero: Mask) -> Mask:
    """Say which rows are of evaluation: those without the number, from the first that falls back behind training on.

    One that goes on where training is may be of it: a rate of learning that grows from 0, or falls to it, prints as 0.
    """
    if zero.all():
        return zero
    reached = np.maximum.accumulate(np.where(zero, -1, rows.step))
    back = np.where(zero, rows.step <= reached, False)
    rows_so_far = np.arange(zero.size)
    last_back = np.maximum.accumulate(np.where(back, rows_so_far, -1))
    last_trained = np.maximum.accumulate(np.where(zero, -1, rows_so_far))
    return zero & (last_back > last_trained)


def read(source: Source | Path, format_name: str = "") -> Reading:
    """Read one log. Without a name its format is found in its lines.

    Raises:
        LogError: it can't be opened, or holds lines of no known format, or of several and none was named.

    """
    source = source if isinstance(source, Source) else Source(source)
    reader = _Reader(source, load(format_name) if format_name else None)
    with source.open() as file:
        blocks = Blocks(file)
        for block in blocks:
            reader.add(block)
    return reader.reading(blocks)


class _Reader:
    """Takes one block of a log after another."""

    def __init__(self, source: Source, format_: Format | None) -> None:
        self._source = source
        self._named = format_ is not None
        self._format = format_
        self._head: Block | None = None
        self._parts: list[Records] = []
        self._unusable, self._not_numbers = OddLines(), OddLines()
        self._usual: dict[int, set[str]] = {}
        self._is_cut = False

    def add(self, block: Block) -> None:
        """Read a block; those before the first line of training bear facts only."""
        self._head = self._head or block
        self._recognise(block)
        if self._format is None:
            return
        found = read_block(self._format, block)
        # An object that could be read is whole; its lines may differ in what they hold.
        cut = [block.is_cut and isinstance(line, Line) for line in self._format.lines]
        found = [self._whole(kind, one, is_cut) for kind, (one, is_cut) in enumerate(zip(found, cut, strict=True))]
        self._parts.append(joined([one.rows for one in found if len(one.rows)]))
        unused = _unused(found, block.ends.size)
        self._is_cut = block.is_cut and bool(unused.size)
        self._unusable.add(block, unused.tolist())
        self._not_numbers.add(block, concatenated(one.not_numbers for one in found).tolist())

    def _whole(self, kind: int, found: Found, is_cut: bool) -> Found:
        """Return what lines of one kind say; nothing where the last line lacks a number that others of it have."""
        usual = self._usual.setdefault(kind, found.usual_metrics)
        if is_cut and len(found.rows) and not usual <= found.usual_metrics:
            return Found.nothing(found.candidates)
        self._usual[kind] = usual | found.usual_metrics
        return found

    def _recognise(self, block: Block) -> None:
        if self._named:
            return
        found = recognised(block) if self._format is None else [self._format]
        if not found:
            return
        known = the_one(found, str(self._source))
        others = others_at_start(block, known) if self._format is None else []
        self._format = the_one([known, *(others or others_at_end(block, known))], str(self._source))

    def reading(self, blocks: Blocks) -> Reading:
        """Return all that was read; raises LogError when nothing was recognised."""
        rows = joined(self._parts)
        if self._format is None or self._head is None or not rows.has_numbers:
            seen = resembling(self._head) if self._head else ""
            raise LogError(f"{self._source}: holds no line of training in {_names(self._format)}{seen}")
        facts = _distinct(facts_of(self._format, self._head))
        stated = {name: values[0] for name, values in facts.items() if len(values) == 1}
        rows = _with_carried_steps(rows) if self._format.carries_steps else rows
        rows = evaluation_apart(rows, self._format)
        rows = rows.where(any_of((~np.isnan(column) for column in rows.values.values()), len(rows)))
        reading = Reading(self._source, self._format, rows, stated, (), blocks.lines)
        found = diagnostics(reading, self._unusable, self._not_numbers, blocks, facts, self._is_cut)
        return replace(reading, diagnostics=tuple(found))


def _unused(found: Sequence[Found], lines: int) -> Integers:
    """Return which of a block's lines hold a needle of some kind and were used by none; quicker than a difference."""
    unused = np.zeros(lines, dtype=bool)
    unused[concatenated(one.candidates for one in found)] = True
    unused[concatenated(one.used for one in found)] = False
    return np.flatnonzero(unused)


def _distinct(facts: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the values that are stated of each name, each once."""
    values = defaultdict[str, dict[str, None]](dict)
    for name, value in facts:
        values[name][value] = None
    return {name: list(stated) for name, stated in values.items()}


def _names(named: Format | None) -> str:
    return f"the format {named.name}" if named else f"a known format; the formats are {', '.join(names())}"


def _with_carried_steps(rows: Records) -> Records:
    """Give a row without a step the epoch and step of the last row before it that has one."""
    known = np.where(rows.step >= 0, np.arange(len(rows)), -1)
    last = np.maximum.accumulate(known) if len(rows) else known
    carried = (rows.step < 0) & (last >= 0)
    return replace(
        rows,
        step=np.where(carried, rows.step[last], rows.step),
        epoch=np.where(carried & (rows.epoch < 0), rows.epoch[last], rows.epoch),
    )
