"""Files that are written completely or not at all, errors of writing that name the file, and texts of CSV files."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: A disk with less free space is full: a table or a page is larger.
FULL_BYTES = 1_000_000
#: How a text of a CSV file begins that a spreadsheet would run as a formula. A dash alone is none. This pattern and the
#: next are those of the regular expressions of Python and of Arrow: both kinds of tables follow one rule.
FORMULA = r"(?s)^([=+@\t\r\n]|-.)"
#: A printed number, with or without its unit, which stays as it is: the whole text.
NUMBER = r"[-+]\d[\d.,]*(?:e[-+]?\d+)?(?: ?[%×µA-Za-z/]+)?"
_FORMULA, _NUMBER = re.compile(FORMULA), re.compile(NUMBER)


def write_atomically(path: Path, text: str) -> None:
    """Write a file atomically: old or complete new content.

    What is no character, as a byte in the name of a file may be, becomes a question mark: what has it can be read then.
    Raises OSError, which names the file, when it can't be written; the old content stays then.
    """
    with naming(path), replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", errors="replace")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path whose file replaces ``path``, unless an error is raised."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = _unfinished(path)
    try:
        yield unfinished
        with open(unfinished, "rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name ``path`` in an OSError that names no file.

    That a disk is full is an error of writing to an open file, and the system names none then.
    """
    try:
        yield
    except OSError as error:
        if error.filename in (None, str(_unfinished(path))):
            error.filename = str(path)
        raise


def existing_folder(folder: Path) -> Path:
    """Return a folder, or the nearest one above it that exists."""
    return next(path for path in (folder, *folder.resolve().parents) if path.exists())


def full_disk(folder: Path) -> str:
    """Return that the disk of ``folder`` is nearly full, or nothing."""
    usage = shutil.disk_usage(existing_folder(folder))
    # Some file systems, as /proc and some in user space, state no size at all.
    if usage.total > 0 and usage.free < FULL_BYTES:
        return f"{folder}: the disk is full, {usage.free / 1e3:.0f} kB are free"
    return ""


def disarmed(cell: str) -> str:
    """Return a cell's text, with an apostrophe before a formula."""
    if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")
