"""Files that are too large to be read as a whole."""

import os

from dlperf_study.core.large_files import LONGEST_LINE, TAIL_BYTES, last_lines, replace_in_file, rewrite_lines
from dlperf_study.core.wording import shortened


def test_the_last_lines_of_a_large_file_are_whole_and_short(tmp_path):
    file = tmp_path / "log"
    file.write_text("first\n" + "y" * TAIL_BYTES + "\nlast but one\n" + "x" * 5000 + "\n")
    assert last_lines(file, 9) == ["last but one", shortened("x" * 5000, LONGEST_LINE)]
    file.write_text("a\nb\nc\n")
    assert last_lines(file, 2) == ["b", "c"]
    assert last_lines(file, 9) == ["a", "b", "c"]


def test_a_line_without_an_end_is_shortened(tmp_path):
    file = tmp_path / "log"
    file.write_text("x" * (TAIL_BYTES + 1) + " its end")
    [line] = last_lines(file, 3)
    assert len(line) <= LONGEST_LINE
    assert line.startswith("xxx")
    assert line.endswith("xxx its end")


def test_texts_are_replaced_wherever_they_are_and_the_file_is_as_old_as_before(tmp_path):
    file = tmp_path / "log"
    file.write_bytes(b"secret\xff secrets" + b"z" * (1 << 21) + b"secret")
    os.utime(file, (1, 2))
    replace_in_file(file, ["secret", "secrets"], "-")
    assert file.read_bytes() == b"-\xff -" + b"z" * (1 << 21) + b"-"
    assert file.stat().st_mtime == 2


def test_a_file_without_them_is_not_written(tmp_path):
    file = tmp_path / "log"
    for content in (b"", b"abc"):
        file.write_bytes(content)
        inode = file.stat().st_ino
        replace_in_file(file, ["secret"], "-")
        assert (file.stat().st_ino, file.read_bytes()) == (inode, content)


def test_lines_are_rewritten_byte_by_byte_and_only_if_one_changes(tmp_path):
    file = tmp_path / "log"
    content = b"\xff\xfe first\r\n" + b"x" * (1 << 21) + b"\nlast key"
    file.write_bytes(content)
    inode = file.stat().st_ino
    rewrite_lines(file, lambda text: text.replace("other", "*"))
    assert (file.stat().st_ino, file.read_bytes()) == (inode, content)
    rewrite_lines(file, lambda text: text.replace("last key", "last *"))
    assert file.read_bytes() == content.replace(b"key", b"*")
