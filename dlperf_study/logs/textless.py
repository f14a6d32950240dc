"""Files that are no logs at all: empty ones, and those of bytes that are no text."""

from dlperf_study.errors import LogError
from dlperf_study.logs.blocks import BLOCK_BYTES, Blocks
from dlperf_study.logs.sources import Source

#: How much of a file is looked at, and which share of it may be what no terminal shows.
LOOKED_AT, ALLOWED_SHARE = 1 << 12, 0.02
#: What stands in no text of any encoding that keeps ASCII: all control characters but those of lines and terminals.
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\b\f\x1b"))


def textless(source: Source) -> str:
    """Return in words that a file holds no text; nothing where it holds some, or can't be read."""
    try:
        with source.open() as file:
            blocks = Blocks(file)
            first = next(iter(blocks), None)
    except LogError:
        return ""
    if first is None:
        return "" if blocks.damage else "holds no line of text" if blocks.skipped else "is empty"
    if not first.data.strip() and len(first.data) < BLOCK_BYTES:
        return "is empty but for blank lines"
    return "holds no text" if _is_binary(first.data[:LOOKED_AT]) else ""


def _is_binary(start: bytes) -> bool:
    return len(start) - len(start.translate(None, _CONTROLS)) > ALLOWED_SHARE * len(start)
