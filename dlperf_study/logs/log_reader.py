"""Reads a log: detects its format, then streams through it once."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dlperf_study.arrays import Integers, Mask, any_of, concatenated
from dlperf_study.errors import LogError
from dlperf_study.logs.blocks import Block, Blocks
from dlperf_study.logs.format import Fact, Format, JsonLine, Line
from dlperf_study.logs.format_detection import (
    detect_formats,
    only_format,
    other_formats_at_start,
    other_formats_later,
    read_block,
    similar_line,
)
from dlperf_study.logs.formats import load, names
from dlperf_study.logs.json_lines import UNREADABLE, parse_json_object
from dlperf_study.logs.log_diagnostics import LineExamples, log_diagnostics
from dlperf_study.logs.log_source import LogSource
from dlperf_study.logs.parsed_log import ParsedLog
from dlperf_study.logs.records import Matches, Records, merge_records
from dlperf_study.logs.text_lines import lines_with

#: Programs state facts about the whole run before they train.
_FACT_BYTES = 1 << 16


def read_log(source: LogSource | Path, format_name: str = "") -> ParsedLog:
    """Read one log. If no format is named, it is detected from the lines.

    Raises:
        LogError: it can't be opened, or has lines of no known format, or of several and none was named.

    """
    source = source if isinstance(source, LogSource) else LogSource(source)
    reader = _LogReader(source, load(format_name) if format_name else None)
    with source.open() as file:
        blocks = Blocks(file)
        for block in blocks:
            reader.add(block)
    return reader.parsed_log(blocks)


class _LogReader:
    """Reads the blocks of a log one after the other."""

    def __init__(self, source: LogSource, format_: Format | None) -> None:
        self._source = source
        self._format_is_named = format_ is not None
        self._format = format_
        self._first_block: Block | None = None
        self._parts: list[Records] = []
        self._unusable, self._nan_lines = LineExamples(), LineExamples()
        self._usual_metrics: dict[int, set[str]] = {}
        self._is_cut = False

    def add(self, block: Block) -> None:
        """Read a block; those before the first line of training only have facts."""
        self._first_block = self._first_block or block
        if not self._format_is_named:
            self._detect_format(block)
        if self._format is None:
            return
        matches = []
        for kind, (line, line_matches) in enumerate(
            zip(self._format.lines, read_block(self._format, block), strict=True)
        ):
            # A JSON object that could be parsed is complete; its lines may have different metrics.
            may_be_cut = block.is_cut and isinstance(line, Line)
            matches.append(self._without_cut_line(kind, line_matches, may_be_cut))
        self._parts.append(merge_records([part.records for part in matches if len(part.records)]))
        unused = _unused_lines(matches, block.ends.size)
        self._is_cut = block.is_cut and bool(unused.size)
        self._unusable.add(block, unused.tolist())
        self._nan_lines.add(block, concatenated(part.nan_lines for part in matches).tolist())

    def _detect_format(self, block: Block) -> None:
        """Detect the format; raises LogError if there is a second one in the block."""
        formats = detect_formats(block) if self._format is None else [self._format]
        if not formats:
            return
        format_ = only_format(formats, str(self._source))
        second_formats = other_formats_at_start(block, format_) if self._format is None else []
        self._format = only_format(
            [format_, *(second_formats or other_formats_later(block, format_))], str(self._source)
        )

    def _without_cut_line(self, kind: int, matches: Matches, may_be_cut: bool) -> Matches:
        """Return the lines of one kind; none if the last line has no number that the others of its kind have."""
        usual = self._usual_metrics.setdefault(kind, matches.usual_metrics)
        if may_be_cut and len(matches.records) and not usual <= matches.usual_metrics:
            return Matches.none_of(matches.candidates)
        self._usual_metrics[kind] = usual | matches.usual_metrics
        return matches

    def parsed_log(self, blocks: Blocks) -> ParsedLog:
        """Return all that was read; raises LogError if nothing was recognised."""
        records = merge_records(self._parts)
        if self._format is None or self._first_block is None or not records.has_numbers:
            raise LogError(f"{self._source}: {self._why_nothing()}")
        if self._format.carries_steps:
            records = _carry_steps(records)
        records = mark_evaluation(records, self._format)
        records = records.select(any_of((~np.isnan(column) for column in records.values.values()), len(records)))
        facts = _facts_by_name(self._format, self._first_block)
        consistent = {name: values[0] for name, values in facts.items() if len(values) == 1}
        log = ParsedLog(self._source, self._format, records, consistent, (), blocks.lines)
        diagnostics = log_diagnostics(log, blocks, self._unusable, self._nan_lines, facts, self._is_cut)
        return replace(log, diagnostics=tuple(diagnostics))

    def _why_nothing(self) -> str:
        named = self._format
        where = f"the format {named.name}" if named else f"a known format; the formats are {', '.join(names())}"
        similar = similar_line(self._first_block) if self._first_block else ""
        return f"no line of training in {where}" + (f"; {similar}" if similar else "")


def _unused_lines(matches: Sequence[Matches], lines: int) -> Integers:
    """Return the lines of a block with a needle of some kind that no kind used; quicker than a set difference."""
    unused = np.zeros(lines, dtype=bool)
    unused[concatenated(part.candidates for part in matches)] = True
    unused[concatenated(part.used for part in matches)] = False
    return np.flatnonzero(unused)


def _carry_steps(records: Records) -> Records:
    """Give a row without a step the epoch and step of the last row before it that has one."""
    rows_with_step = np.where(records.step >= 0, np.arange(len(records)), -1)
    last = np.maximum.accumulate(rows_with_step) if len(records) else rows_with_step
    is_carried = (records.step < 0) & (last >= 0)
    step = np.where(is_carried, records.step[last], records.step)
    epoch = np.where(is_carried & (records.epoch < 0), records.epoch[last], records.epoch)
    return replace(records, step=step, epoch=epoch)


def mark_evaluation(records: Records, format_: Format) -> Records:
    """Return the records with lines of evaluation marked as such, if they look like those of training.

    A metric that is above 0 in training tells them apart: see ``zero_in_evaluation``.
    """
    values = records.values.get(format_.zero_in_evaluation)
    if values is None or not (values == 0).any():
        return records
    return replace(records, training=records.training & ~_is_evaluation(records, values == 0))


def _is_evaluation(records: Records, is_zero: Mask) -> Mask:
    """Return which rows are of evaluation: those with 0, from the first whose step goes back behind training on.

    A row with 0 that continues the steps may be of training: a learning rate that grows from 0, or falls to it, is
    printed as 0.
    """
    if is_zero.all():
        return is_zero
    reached_step = np.maximum.accumulate(np.where(is_zero, -1, records.step))
    goes_back = np.where(is_zero, records.step <= reached_step, False)
    rows = np.arange(is_zero.size)
    last_back = np.maximum.accumulate(np.where(goes_back, rows, -1))
    last_training = np.maximum.accumulate(np.where(is_zero, -1, rows))
    return is_zero & (last_back > last_training)


def _facts_by_name(format_: Format, block: Block) -> Mapping[str, list[str]]:
    """Return the facts near the start of a block: the different values of each."""
    start = Block(block.data[: block.data.rfind(b"\n", 0, _FACT_BYTES) + 1], block.first_line)
    values = defaultdict[str, dict[str, None]](dict)
    for fact in format_.facts:
        for value in _fact_values(fact, start.data):
            values[fact.name][value] = None
    for line in format_.lines:
        if isinstance(line, JsonLine):
            for name, value in _json_facts(line, start):
                values[name][value] = None
    return {name: list(distinct) for name, distinct in values.items()}


def _fact_values(fact: Fact, data: bytes) -> Iterator[str]:
    for match in re.finditer(fact.pattern.encode(), data):
        # Not within a longer name, as ``batch_size`` is in ``total_batch_size``.
        before = data[match.start() - 1 : match.start() + 1] if match.start() else b""
        if not re.fullmatch(rb"\w\w", before):
            yield match[1].decode(errors="replace")


def _json_facts(line: JsonLine, block: Block) -> Iterator[tuple[str, str]]:
    for index in lines_with(line.needles, block).tolist():
        try:
            yield from line.facts(parse_json_object(line.needles, block.line(index))).items()
        except UNREADABLE:
            continue
