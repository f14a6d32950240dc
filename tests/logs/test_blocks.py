import gzip
import random
from pathlib import Path

import pytest

from dlperf_study.logs.blocks import why_no_text
from dlperf_study.logs.log_source import LogSource

LINES = "2020-09-01 10:00:00 读取数据 loading the data\n" * 9


def reason(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "training.log"
    path.write_bytes(content)
    return why_no_text(LogSource(path))


@pytest.mark.parametrize("content", [b"", gzip.compress(b"", mtime=0), b"\n \r\n\n"])
def test_an_empty_file_is_named(tmp_path: Path, content: bytes) -> None:
    assert reason(tmp_path, content).startswith("is empty")


@pytest.mark.parametrize("size", [300, 1 << 16])
def test_bytes_of_a_picture_are_not_text(tmp_path: Path, size: int) -> None:
    assert reason(tmp_path, b"\x89PNG\r\n\x1a\n" + random.Random(1).randbytes(size)) == "contains no text"


def test_a_line_without_a_newline_is_no_line_of_text(tmp_path: Path) -> None:
    assert reason(tmp_path, b"\0" * (3 << 20)) == "contains no line of text"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "gbk"])
def test_text_is_text_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    assert reason(tmp_path, LINES.encode(encoding)) == ""
    assert reason(tmp_path, ("\x1b[32m" + LINES).encode(encoding)) == ""


def test_a_file_that_can_not_be_read_has_no_other_reason(tmp_path: Path) -> None:
    assert why_no_text(LogSource(tmp_path / "nowhere.log")) == ""
    assert reason(tmp_path, gzip.compress(LINES.encode())[:12]) == ""
