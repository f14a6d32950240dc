"""Files are replaced in one piece, after their content is on the disk."""

import errno
import os

import pytest

from dlperf_study.core.writing import write_atomically


def test_the_content_is_on_the_disk_before_the_file_is_replaced(tmp_path, monkeypatch):
    """A machine that loses its power afterwards has the old or the new content, and never an empty file."""
    file, seen = tmp_path / "run.json", []
    write_atomically(file, "old")
    synchronise = os.fsync

    def observed(descriptor: int) -> None:
        seen.append((os.readlink(f"/proc/self/fd/{descriptor}"), file.read_text()))
        synchronise(descriptor)

    monkeypatch.setattr(os, "fsync", observed)
    write_atomically(file, "new")
    [(unfinished, content_then)] = seen
    assert (os.path.dirname(unfinished), content_then) == (str(tmp_path), "old")
    assert file.read_text() == "new"


def test_what_is_no_character_becomes_a_question_mark(tmp_path):
    """As a byte that is not UTF-8 in the name of a file: the file can be read by whoever expects UTF-8."""
    write_atomically(tmp_path / "plan.json", f"café {os.fsdecode(bytes([0xE9]))} \ud800")
    assert (tmp_path / "plan.json").read_text(encoding="utf-8") == "café ? ?"


def test_a_file_that_can_not_be_written_stays_as_it_was(tmp_path, monkeypatch):
    file = tmp_path / "run.json"
    write_atomically(file, "old")

    def refuse(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match=r"run\.json"):
        write_atomically(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
