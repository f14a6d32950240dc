"""What a log itself states about the whole run: its batch, its devices, what it planned."""

import re
from collections.abc import Iterator

from dlperf_study.logs.blocks import Block
from dlperf_study.logs.format import Fact, Format, JsonLine
from dlperf_study.logs.json_layouts import UNREADABLE
from dlperf_study.logs.json_lines import object_behind
from dlperf_study.logs.needles import lines_with

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
