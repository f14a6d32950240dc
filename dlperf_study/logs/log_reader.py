"""Reads a log: detects its format, streams its lines, yields diagnostics.

No diagnostic changes a number; one of severity error rejects the log.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from dlperf_study.core.arrays import unite_masks
from dlperf_study.core.errors import Diagnostic, LogError
from dlperf_study.core.wording import counted
from dlperf_study.logs import format_detection, parsed_log
from dlperf_study.logs.blocks import Block, Blocks, LogSource
from dlperf_study.logs.format import Format, JsonLine, Line
from dlperf_study.logs.formats import load
from dlperf_study.logs.json_lines import UNREADABLE, as_lines, parse_json_object
from dlperf_study.logs.line_template import TemplateLine
from dlperf_study.logs.log_checks import completeness_diagnostics
from dlperf_study.logs.parsed_log import ParsedLog
from dlperf_study.logs.records import GrowingRecords, Matches, Records
from dlperf_study.logs.text_lines import lines_with

#: Programs state facts about the whole run before they train.
_FACT_BYTES = 1 << 16
#: How many lines are shown for each diagnostic, and how many characters of each.
_SHOWN_LINES, _SHOWN_CHARACTERS = 3, 160


def read_log(source: LogSource | Path, format_name: str = "", part: int = 0) -> ParsedLog:
    """Read one log, in the named, declared or detected format.

    ``part``: which of its consecutive runs, from 1; 0: all of it. Raises LogError if it can't be opened, or has lines
    of no known format, or of several and none was named.
    """
    source = source if isinstance(source, LogSource) else LogSource(source)
    format_ = source.own_format
    if format_name and not (format_ and format_.name == format_name):
        format_ = load(format_name)
    reader = _LogReader(source, format_)
    with source.open() as file:
        blocks = Blocks(as_lines(str(source), file))
        for block in blocks:
            reader.add(block)
    return reader.parsed_log(blocks, part)


def other_formats(log: ParsedLog) -> list[Format]:
    """Return other formats near the start of a log."""
    with log.source.open() as file:
        block = next(iter(Blocks(as_lines(str(log.source), file))), None)
    if block:
        return format_detection.other_formats_at_start(block, log.format)
    return []


@dataclass
class _LineExamples:
    """Lines of one diagnostic: their number and the first of them."""

    count: int = 0
    shown: list[str] = field(default_factory=list)
    first: str = ""

    def add(self, block: Block, indices: Sequence[int]) -> None:
        """Add lines of a block, counted from 0."""
        self.count += len(indices)
        for index in indices[: _SHOWN_LINES - len(self.shown)]:
            text = block.line(index)[:_SHOWN_CHARACTERS].decode(errors="replace")
            self.shown.append(f"line {block.first_line + index}: {text!r}")
        if indices and not self.first:
            self.first = block.line(indices[0]).decode(errors="replace")

    def message(self, singular: str, plural: str) -> Iterator[str]:
        """Yield the message with examples, if there are lines."""
        if self.count == 1:
            yield f"1 line {singular}: {self.shown[0]}"
        elif self.count:
            yield f"{self.count} lines {plural}, as {'; '.join(self.shown)}"


class _LogReader:
    """Reads the blocks of a log one after the other."""

    def __init__(self, source: LogSource, format_: Format | None) -> None:
        self._source = source
        self._format_is_named = format_ is not None
        self._format = format_
        self._first_block: Block | None = None
        self._records = GrowingRecords()
        self._unusable, self._nan_lines = _LineExamples(), _LineExamples()
        self._usual_metrics: dict[int, set[str]] = {}
        self._is_cut = self._has_started = False

    def add(self, block: Block) -> None:
        """Read a block; before the first training line only facts."""
        self._first_block = self._first_block or block
        if not self._format_is_named:
            self._detect_format(block)
        if self._format is None:
            return
        matches = format_detection.read_block(self._format, block)
        for kind, line in enumerate(self._format.lines):
            # A JSON object that could be parsed is complete; its lines may have different metrics.
            may_be_cut = block.is_cut and isinstance(line, Line)
            matches[kind] = self._remove_cut_line(kind, matches[kind], may_be_cut)
        of_all_kinds = Matches.merged(matches)
        self._records.append(of_all_kinds.records)
        is_unused = np.zeros(block.ends.size, dtype=bool)
        is_unused[of_all_kinds.candidates] = True
        is_unused[of_all_kinds.used] = False
        if self._format is not self._source.own_format:
            # Before training, programs print their configuration or code, which may have the same words.
            used = of_all_kinds.used if not self._has_started else [0]
            is_unused[: used[0] if len(used) else None] = False
        self._is_cut = block.is_cut and bool(is_unused.any())
        self._unusable.add(block, np.flatnonzero(is_unused).tolist())
        self._nan_lines.add(block, of_all_kinds.nan_lines.tolist())
        self._has_started = self._has_started or bool(of_all_kinds.used.size)

    def _detect_format(self, block: Block) -> None:
        """Detect the format; raises LogError for a second format."""
        format_, second_formats = self._format, list[Format]()
        if format_ is None:
            formats = format_detection.detect_formats(block)
            if not formats:
                return
            format_ = format_detection.only_format(formats, str(self._source))
            second_formats = format_detection.other_formats_at_start(block, format_)
        second_formats = second_formats or format_detection.other_formats_later(block, format_)
        self._format = format_detection.only_format([format_, *second_formats], str(self._source))

    def _remove_cut_line(self, kind: int, matches: Matches, may_be_cut: bool) -> Matches:
        """Drop an incomplete last line."""
        usual = self._usual_metrics.setdefault(kind, matches.usual_metrics)
        if may_be_cut and len(matches.records) and not usual <= matches.usual_metrics:
            return Matches.reject_all(matches.candidates)
        self._usual_metrics[kind] = usual | matches.usual_metrics
        return matches

    def parsed_log(self, blocks: Blocks, part: int) -> ParsedLog:
        """Return the log or one part; raises LogError if nothing was recognised."""
        records = self._records.end()
        if self._first_block is None and blocks.damage:
            raise LogError(f"{self._source}: its bytes end in an error before any line: {blocks.damage}")
        if self._format is None or self._first_block is None or not records.has_numbers:
            raise LogError(f"{self._source}: no line of training in {self._expected()}")
        records = self._completed(records, self._format)
        records = records.select(unite_masks((~np.isnan(column) for column in records.values.values()), len(records)))
        # What is stated before a later run is not told from what was stated before the first.
        facts = _facts_by_name(self._format, self._first_block) if part < 2 else {}
        consistent = {}
        for name, values in facts.items():
            if len(values) == 1:
                consistent[name] = values[0]
        log = ParsedLog(self._source, self._format, records, consistent, (), blocks.lines)
        if part:
            log = log.part(part)
        return replace(log, diagnostics=tuple(self._diagnostics(log, blocks, facts)))

    def _expected(self) -> str:
        """Return the expected lines, and the most similar text."""
        if self._format and self._format is self._source.own_format:
            return f"the format {self._format.name} of {self._format.program}; {self._unlike_own_format(self._format)}"
        similar = ""
        if self._first_block:
            similar = format_detection.similar_line(self._first_block)
        if self._format:
            return "; ".join(filter(None, (f"the format {self._format.name}", similar)))
        formats = format_detection.suggest_formats(self._first_block) if self._first_block else []
        shared = "no word belongs to a format"
        if formats:
            shared = f"some words belong to {', '.join(formats)}"
        remedy = "docs/log-formats.md lists all formats, and shows how to declare your own"
        return f"a known format; {similar or shared}; {remedy}"

    def _unlike_own_format(self, format_: Format) -> str:
        """Describe how the lines differ from those that the user declared."""
        differing = next(self._unusable.message("has its text and differs", "have its text and differ"), "")
        if differing:
            templates = (line for line in format_.lines if isinstance(line, TemplateLine))
            beginning = max((line.matched_beginning(self._unusable.first) for line in templates), key=len, default="")
            if beginning:
                return f"{differing}; the first is as declared up to {beginning!r}"
            return differing
        if not self._first_block:
            return "the log is empty"
        wanted = "line with " + " or ".join(repr(needle) for line in format_.lines for needle in line.needles)
        if any(isinstance(line, JsonLine) for line in format_.lines):
            wanted = "row of a table (.csv) or of JSON objects (.json, .jsonl) with one of its columns"
        first = self._first_block.line(0)[:_SHOWN_CHARACTERS].decode(errors="replace")
        return f"no {wanted} has a number; line 1: {first!r}"

    def _completed(self, records: Records, format_: Format) -> Records:
        """Return completed records; raises LogError if no step has a time."""
        if format_.carries_steps:
            records = parsed_log.carry_steps(records)
        if format_.carries_epochs:
            records = parsed_log.carry_epochs(records)
        records = parsed_log.remove_false_steps(parsed_log.add_intervals(records), format_)
        if not len(records):
            steps = f"has only steps before {format_.first_true_step}"
            raise LogError(f"{self._source}: {steps}, for which {format_.title} prints no valid time")
        return parsed_log.mark_evaluation(records, format_)

    def _diagnostics(self, log: ParsedLog, blocks: Blocks, facts: Mapping[str, Sequence[str]]) -> list[Diagnostic]:
        """Return every diagnostic; ``facts``: all stated values by name."""
        messages = [
            *self._unusable.message(
                "looks like its format but could not be used", "look like its format but could not be used"
            ),
            *self._nan_lines.message("prints a number as nan", "print a number as nan"),
        ]
        shown = ", ".join(map(str, blocks.skipped[:_SHOWN_LINES]))
        if len(blocks.skipped) == 1:
            messages.append(f"1 line was skipped because it is too long for a log: line {shown}")
        elif blocks.skipped:
            count = len(blocks.skipped)
            messages.append(f"{count} lines were skipped because they are too long for a log, as lines {shown}")
        if blocks.undecodable:
            lines = counted(blocks.undecodable, "line")
            messages.append(f"{lines} with bytes that are not text (UTF-8), the first: {blocks.first_undecodable}")
        for name, values in facts.items():
            if len(values) > 1:
                messages.append(f"states {name} as {', '.join(values)}: not used")
        messages += _impossible_numbers(log)
        if log.restarts.size:
            shown = ", ".join(map(str, log.restarts[:_SHOWN_LINES].tolist()))
            reason = "several runs in one log, or resumed runs"
            messages.append(f"steps start over {counted(log.restarts.size, 'time')}, at line {shown}: {reason}")
        diagnostics = list(completeness_diagnostics(log, blocks, self._unusable.count, self._is_cut))
        return diagnostics + [Diagnostic(str(log.source), message) for message in messages]


def _facts_by_name(format_: Format, block: Block) -> Mapping[str, list[str]]:
    """Return the distinct values of each fact near the start."""
    start = Block(block.data[: block.data.rfind(b"\n", 0, _FACT_BYTES) + 1], block.first_line)
    values = defaultdict[str, dict[str, None]](dict)
    for fact in format_.facts:
        for match in re.finditer(fact.pattern.encode(), start.data):
            # Not within a longer name, as ``batch_size`` is in ``total_batch_size``.
            before = b""
            if match.start():
                before = start.data[match.start() - 1 : match.start() + 1]
            if not re.fullmatch(rb"\w\w", before):
                values[fact.name][match[1].decode(errors="replace")] = None
    for line in format_.lines:
        if not isinstance(line, JsonLine) or not line.facts:
            continue
        for index in lines_with(line.needles, start).tolist():
            with suppress(*UNREADABLE):
                for name, value in line.facts(parse_json_object(line.needles, start.line(index))).items():
                    values[name][value] = None
    return {name: list(distinct) for name, distinct in values.items()}


def _impossible_numbers(log: ParsedLog) -> Iterator[str]:
    """Yield infinite metrics and throughputs that are not positive."""
    records = log.records
    for name, column in records.values.items():
        lines = records.line[np.isinf(column)]
        if lines.size:
            yield f"{name} is infinite in {counted(lines.size, 'line')}, the first: {lines[0]}"
    for name in log.format.throughput_metrics:
        rows = records.has_metric(name)
        lines = records.line[rows & (records.values[name] <= 0)] if rows.any() else records.line[:0]
        if lines.size:
            yield f"{name} is not above 0 in {counted(lines.size, 'line')}, the first: {lines[0]}"
