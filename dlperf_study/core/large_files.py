"""Files too large to be read as a whole, as what a program prints may be: their last lines, and texts replaced."""

import mmap
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from dlperf_study.core.writing import naming, replacing

#: How much of the end of a file is read for its last lines, and how much of a line is shown: what a program prints
#: without a newline is one line.
TAIL_BYTES, LONGEST_LINE = 1 << 18, 1000


def last_lines(path: Path, count: int) -> list[str]:
    """Return the last lines of a file, at most ``count``, each shortened to ``LONGEST_LINE`` characters.

    Bytes that are no UTF-8 are replaced; what is before the last ``TAIL_BYTES`` is not read.
    """
    with open(path, "rb") as file:
        begin = max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES)
        file.seek(begin)
        lines = file.read(TAIL_BYTES).decode(errors="replace").splitlines()
    if begin and len(lines) > 1:
        # Its beginning was not read.
        del lines[0]
    return [_shortened(line) for line in lines[-count:]]


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"


def replace_in_file(path: Path, texts: Sequence[str], replacement: str) -> None:
    """Replace texts in a file wherever they are, the longest first; the time of its last change stays.

    A file without any of them is not written. The new content is there completely or not at all.
    """
    sought = [os.fsencode(text) for text in sorted(texts, key=len, reverse=True)]
    status = path.stat()
    if not sought or not status.st_size:
        return
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if all(content.find(text) < 0 for text in sought):
            return
        with naming(path), replacing(path) as unfinished, open(unfinished, "wb") as changed:
            _write_replaced(content, sought, replacement.encode(), changed)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _write_replaced(content: mmap.mmap, sought: Sequence[bytes], replacement: bytes, changed: BinaryIO) -> None:
    end = 0
    for match in re.finditer(b"|".join(map(re.escape, sought)), content):
        changed.write(content[end : match.start()])
        changed.write(replacement)
        end = match.end()
    changed.write(content[end:])
