"""The tables of a Markdown page, each with the heading above it."""

import re
from collections.abc import Iterator, Sequence

from dlperf_study.audit.reading.grid import Grid, GridRow
from dlperf_study.errors import TableError
from dlperf_study.wording import counted

_SEPARATOR = re.compile(r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?")
_HEADING = re.compile(r"#{1,6}\s+(.*)")
#: A bar that separates no cells is written with a backslash.
_BAR = re.compile(r"(?<!\\)\|")
#: Footnotes, tags, links and emphasis are no part of a text.
_FOOTNOTE, _TAG, _LINK = re.compile(r"\[\^[^\]]*\]"), re.compile(r"<[^<>]+>"), re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = re.compile(r"\*\*|__|`|(?<!\\)\*")
_FENCE = ("```", "~~~")


def markdown_grids(text: str) -> list[Grid]:
    """Return the tables of a page; raises TableError for a row with more cells than its header."""
    grids: list[Grid] = []
    for heading, start, lines in _blocks(text.splitlines()):
        header, *rows = [GridRow(start + offset, _cells(line)) for offset, line in enumerate(lines) if offset != 1]
        complete = [_as_long_as(header, row) for row in rows]
        grids.append(Grid(len(grids) + 1, heading, header.fields, tuple(complete), is_marked_up=True))
    return grids


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, int, list[str]]]:
    """Yield the heading above each table, the number of its first line, and its lines."""
    heading, position, is_code = "", 0, False
    while position < len(lines):
        line = lines[position].strip()
        if line.startswith(_FENCE):
            is_code = not is_code
        if match := _HEADING.fullmatch(line):
            heading = plain_text(match[1])
        following = lines[position + 1].strip() if position + 1 < len(lines) else ""
        if is_code or "|" not in line or not _SEPARATOR.fullmatch(following):
            position += 1
            continue
        end = position
        while end < len(lines) and "|" in lines[end]:
            end += 1
        yield heading, position + 1, list(lines[position:end])
        position = end


def _cells(line: str) -> tuple[str, ...]:
    stripped = line.strip().removeprefix("|")
    if stripped.endswith("|") and not stripped.endswith("\\|"):
        stripped = stripped[:-1]
    return tuple(map(plain_text, _BAR.split(stripped)))


def _as_long_as(header: GridRow, row: GridRow) -> GridRow:
    """Return a row with empty cells where its line ends early, as a page shows it."""
    missing = len(header.fields) - len(row.fields)
    if missing < 0:
        count = counted(len(row.fields), "field")
        raise TableError(f"line {row.line} has {count}, and the header has {len(header.fields)}")
    return GridRow(row.line, row.fields + ("",) * missing)


def plain_text(cell: str) -> str:
    """Return the text of a cell without its markup: ``**8**[^1]`` is 8."""
    cell = _LINK.sub(r"\1", _TAG.sub("", _FOOTNOTE.sub("", cell)))
    return _EMPHASIS.sub("", cell).replace("\\|", "|").replace("\\*", "*").strip()
