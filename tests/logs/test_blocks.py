import gzip
import random

import pytest

from dlperf_study.logs.blocks import LogSource, no_text_reason

LINES = "2020-09-01 10:00:00 读取数据 loading the data\n" * 9


def reason(tmp_path, content):
    path = tmp_path / "training.log"
    path.write_bytes(content)
    return no_text_reason(LogSource(path))


@pytest.mark.parametrize("content", [b"", gzip.compress(b"", mtime=0), b"\n \r\n\n"])
def test_an_empty_file_is_named(tmp_path, content):
    assert reason(tmp_path, content).startswith("is empty")


@pytest.mark.parametrize("size", [300, 1 << 16])
def test_bytes_of_a_picture_are_not_text(tmp_path, size):
    assert reason(tmp_path, b"\x89PNG\r\n\x1a\n" + random.Random(1).randbytes(size)) == "contains no text"


def test_a_file_without_lines_or_that_can_not_be_read_is_no_text(tmp_path):
    assert reason(tmp_path, b"\0" * (3 << 20)).startswith("contains no line")
    assert no_text_reason(LogSource(tmp_path / "nowhere.log")) == ""
    assert reason(tmp_path, gzip.compress(LINES.encode())[:12]) == ""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "gbk"])
def test_text_is_text_in_any_encoding(tmp_path, encoding):
    assert reason(tmp_path, LINES.encode(encoding)) == ""
    assert reason(tmp_path, ("\x1b[32m" + LINES).encode(encoding)) == ""
