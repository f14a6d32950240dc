"""Files too large to be read as a whole, as what a program prints may be: their last lines, and texts replaced."""

import errno
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from dlperf_study.core.wording import shortened
from dlperf_study.core.writing import naming, replacing

#: How much of the end of a file is read for its last lines, and how much of a line is shown: what a program prints
#: without a newline is one line.
TAIL_BYTES, LONGEST_LINE = 1 << 18, 1000
#: How much of a file is rewritten at a time, in an encoding in which each byte is a character.
_BLOCK_BYTES, _BYTE_ENCODING = 1 << 20, "latin-1"
#: Folders of files that the kernel makes when they are read.
_MADE_BY_KERNEL = ("/proc", "/sys")


def require_end(path: Path) -> None:
    """Raise OSError for a device, a pipe or a file of /proc and /sys, which may be endless.

    What is missing, and a folder, are left to whoever opens it.
    """
    if not path.exists() or path.is_dir():
        return
    devices = [os.stat(folder).st_dev for folder in _MADE_BY_KERNEL if os.path.ismount(folder)]
    if not path.is_file() or path.stat().st_dev in devices:
        raise OSError(errno.EINVAL, "is a pipe, a socket, a device or a file of the kernel", str(path))


def last_lines(path: Path, count: int) -> list[str]:
    """Return the last ``count`` lines of a file, shortened.

    Bytes that are no UTF-8 are replaced; what is before the last ``TAIL_BYTES`` is not read.
    """
    with open(path, "rb") as file:
        begin = max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES)
        file.seek(begin)
        lines = file.read(TAIL_BYTES).decode(errors="replace").splitlines()
    if begin and len(lines) > 1:
        # Its beginning was not read.
        del lines[0]
    return [shortened(line, LONGEST_LINE) for line in lines[-count:]]


def rewrite_lines(path: Path, rewritten: Callable[[str], str]) -> None:
    """Replace what ``rewritten`` changes in a text of whole lines; keep the file's time.

    Bytes stay what they are: each is one character there. The new content is there completely or not at all.
    """
    status = path.stat()
    with open(path, "rb") as file:
        if all(rewritten(block) == block for block in _blocks_of_lines(file)):
            return
        file.seek(0)
        with naming(path), replacing(path) as unfinished, open(unfinished, "wb") as changed:
            for block in _blocks_of_lines(file):
                changed.write(rewritten(block).encode(_BYTE_ENCODING))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _blocks_of_lines(file: BinaryIO) -> Iterator[str]:
    while block := file.read(_BLOCK_BYTES) + file.readline(_BLOCK_BYTES):
        yield block.decode(_BYTE_ENCODING)


def replace_in_file(path: Path, texts: Sequence[str], replacement: str) -> None:
    """Replace texts in a file, longest first; keep its time.

    A file without any of them is not written. The new content is there completely or not at all.
    """
    status = path.stat()
    if not texts or not status.st_size:
        return
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found: set[tuple[int, int]] = set()
        for literal in map(os.fsencode, texts):
            found |= {(begin, begin + len(literal)) for begin in _positions(content, literal)}
        if not found:
            return
        spans = sorted(found, key=lambda span: (span[0], -span[1]))
        with naming(path), replacing(path) as unfinished, open(unfinished, "wb") as changed:
            _write_replaced(content, spans, replacement.encode(), changed)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _positions(content: mmap.mmap, text: bytes) -> Iterator[int]:
    begin = content.find(text)
    while begin >= 0:
        yield begin
        begin = content.find(text, begin + 1)


def _write_replaced(
    content: mmap.mmap, spans: Sequence[tuple[int, int]], replacement: bytes, changed: BinaryIO
) -> None:
    """Write the content with each span replaced, without overlaps."""
    end = 0
    for begin, end_of_span in spans:
        if begin >= end:
            changed.write(content[end:begin])
            changed.write(replacement)
        end = max(end, end_of_span)
    changed.write(content[end:])
