"""Detects the format of a log from its lines, never from its name."""

import re
from collections.abc import Sequence

from dlperf_study.core.errors import LogError
from dlperf_study.logs.blocks import Block
from dlperf_study.logs.format import Format, JsonLine, Line
from dlperf_study.logs.formats import all_formats
from dlperf_study.logs.json_lines import read_json_lines
from dlperf_study.logs.layouts import group_by_layout
from dlperf_study.logs.records import Matches
from dlperf_study.logs.text_lines import LONGEST_RECORD, candidate_lines, lines_with, read_lines

#: How many bytes of a block are searched first; most logs have a line of training in them.
_START_BYTES = (1 << 12, 1 << 16)
#: After its start a block is searched for a second program in samples: their distance, and their length.
_SAMPLE_DISTANCE, _SAMPLE_BYTES = 1 << 16, 1 << 9
#: How many lines of a kind are searched for one that is similar, and how many of its characters are shown.
_SEARCHED_LINES, _SHOWN_CHARACTERS = 3, 200
_MOST_FORMATS = 3


def read_block(format_: Format, block: Block) -> list[Matches]:
    """Return the content of a block for each kind of line."""
    needles: set[str] = set()
    for line in format_.lines:
        if isinstance(line, Line):
            needles.update(line.needles)
    layouts = group_by_layout(block, candidate_lines(needles, block)) if needles else []
    matches = []
    for line in format_.lines:
        if isinstance(line, JsonLine):
            matches.append(read_json_lines(line, block))
        else:
            matches.append(read_lines(line, block, layouts))
    return matches


def detect_formats(block: Block) -> list[Format]:
    """Return the formats with a training line in a block."""
    for size in _START_BYTES:
        if size < len(block.data) and (formats := _formats_in(_first_lines(block, size))):
            return formats
    return _formats_in(block)


def other_formats_at_start(block: Block, known: Format) -> list[Format]:
    """Return other formats in the first lines of a block."""
    if len(block.data) > _START_BYTES[-1]:
        block = _first_lines(block, _START_BYTES[-1])
    return _formats_in(block, known)


def other_formats_later(block: Block, known: Format) -> list[Format]:
    """Return other formats in the last lines of a block and in samples."""
    last = max(0, len(block.data) - _START_BYTES[0])
    starts = range(_SAMPLE_DISTANCE, last, _SAMPLE_DISTANCE)
    samples = [_whole_lines(block.data, start, _SAMPLE_BYTES) for start in starts]
    samples.append(_whole_lines(block.data, last, _START_BYTES[0]))
    return _formats_in(Block(b"".join(samples), block.first_line), known)


def only_format(formats: Sequence[Format], source: str) -> Format:
    """Return the only format detected; raises LogError if there are several."""
    if len(formats) == 1:
        return formats[0]
    names = ", ".join(format_.name for format_ in formats)
    raise LogError(f"{source}: contains lines of several formats ({names}); state which format to read")


def similar_line(block: Block) -> str:
    """Describe the first unusable line that resembles a training line."""
    for format_ in all_formats():
        for line in format_.lines:
            if not isinstance(line, Line) or not line.metrics:
                continue
            for index in lines_with(line.needles, block)[:_SEARCHED_LINES].tolist():
                text = block.line(index)[:LONGEST_RECORD]
                if re.search(line.head.encode(), text):
                    shown = text[:_SHOWN_CHARACTERS].decode(errors="replace")
                    return f"line {block.first_line + index} looks like {format_.name}, but can't be used: {shown!r}"
    return ""


def suggest_formats(block: Block) -> list[str]:
    """Return up to three formats whose literals are in a block."""
    line_counts = {}
    for format_ in all_formats():
        line_counts[format_.name] = int(lines_with(tuple(_needles(format_)), block).size)
    names = sorted(filter(line_counts.__getitem__, line_counts), key=line_counts.__getitem__, reverse=True)
    return names[:_MOST_FORMATS]


def _formats_in(block: Block, known: Format | None = None) -> list[Format]:
    """Return the formats with a training line in a block, except ``known``."""
    formats = []
    for format_ in all_formats():
        if format_ is known or not any(needle.encode() in block.data for needle in _needles(format_)):
            continue
        for matches in read_block(format_, block):
            if matches.records.values and matches.records.training.any():
                formats.append(format_)
                break
    return formats


def _needles(format_: Format) -> set[str]:
    return {needle for line in format_.lines for needle in line.needles}


def _first_lines(block: Block, size: int) -> Block:
    return Block(block.data[: block.data.rfind(b"\n", 0, size) + 1], block.first_line)


def _whole_lines(data: bytes, start: int, size: int) -> bytes:
    """Return the lines that are completely within these bytes."""
    first = data.find(b"\n", max(0, start - 1)) + 1 if start else 0
    return data[first : data.rfind(b"\n", first, start + size) + 1]
