"""Which program printed a log: found in its lines, never in its name."""

import re
from collections.abc import Sequence

from dlperf_study.errors import LogError
from dlperf_study.logs.blocks import Block
from dlperf_study.logs.format import Format, JsonLine, Line
from dlperf_study.logs.formats import every
from dlperf_study.logs.json_lines import read_json_lines
from dlperf_study.logs.layouts import layouts
from dlperf_study.logs.lines import LONGEST_RECORD, candidate_lines, lines_with, read_lines
from dlperf_study.logs.records import Found

#: How much of a block is looked at first; most logs show a line of training in it.
SAMPLES = (1 << 12, 1 << 16)
#: How far apart, and how long, are the pieces of a block that are looked at for another program behind its start.
EVERY, LOOK = 1 << 16, 1 << 9
#: How many lines of a kind are looked at for one that resembles it, and how much of it is shown.
SHOWN, SHOWN_CHARACTERS = 3, 200


def read_block(format_: Format, block: Block) -> list[Found]:
    """Return what a block says in each kind of line of a format."""
    needles = {needle for line in format_.lines for needle in line.needles}
    some = layouts(block, candidate_lines(needles, block))
    return [
        read_json_lines(line, block, some) if isinstance(line, JsonLine) else read_lines(line, block, some)
        for line in format_.lines
    ]


def recognised(block: Block) -> list[Format]:
    """Return the formats of which a block holds a line of training with a number, looking no further than needed."""
    for size in SAMPLES:
        if size < len(block.data):
            found = _recognised(_start(block, size))
            if found:
                return found
    return _recognised(block)


def others_at_start(block: Block, known: Format) -> list[Format]:
    """Return the formats, besides the one that is known, that are among the first lines of a block."""
    first = _start(block, SAMPLES[-1]) if SAMPLES[-1] < len(block.data) else block
    return _recognised(first, known)


def others_at_end(block: Block, known: Format) -> list[Format]:
    """Return the formats, besides the one that is known, that the last lines of a block are of, or some between."""
    last = max(0, len(block.data) - SAMPLES[0])
    starts = (*range(EVERY, last, EVERY), last)
    sizes = (*(LOOK for _ in starts[1:]), SAMPLES[0])
    some = b"".join(_whole_lines(block.data, start, size) for start, size in zip(starts, sizes, strict=True))
    return _recognised(Block(some, block.first_line), known)


def the_one(found: Sequence[Format], source: str) -> Format:
    """Return the only format found; raises LogError when there are several."""
    if len(found) == 1:
        return found[0]
    candidates = ", ".join(format_.name for format_ in found)
    raise LogError(f"{source}: holds lines of several formats ({candidates}): name the one that is meant")


def resembling(block: Block) -> str:
    """Return, in words, the first line that begins as one of training does and could not be used; else nothing."""
    for format_ in every():
        for line in (line for line in format_.lines if isinstance(line, Line) and line.metrics):
            for index in lines_with(line.needles, block)[:SHOWN].tolist():
                text = block.line(index)[:LONGEST_RECORD]
                if re.search(line.head.encode(), text):
                    said = text[:SHOWN_CHARACTERS].decode(errors="replace")
                    return f"; line {block.first_line + index} looks like {format_.name}, but can't be used: {said!r}"
    return ""


def _start(block: Block, size: int) -> Block:
    return Block(block.data[: block.data.rfind(b"\n", 0, size) + 1], block.first_line)


def _whole_lines(data: bytes, start: int, size: int) -> bytes:
    """Return the lines that lie wholly within some bytes; a line that begins with them counts."""
    first = data.find(b"\n", max(0, start - 1)) + 1 if start else 0
    return data[first : data.rfind(b"\n", first, start + size) + 1]


def _recognised(block: Block, known: Format | None = None) -> list[Format]:
    return [format_ for format_ in every() if format_ is not known and _is(format_, block)]


def _is(format_: Format, block: Block) -> bool:
    if not any(needle.encode() in block.data for line in format_.lines for needle in line.needles):
        return False
    return any(found.rows.values and found.rows.training.any() for found in read_block(format_, block))
