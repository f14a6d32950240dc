import gzip
import random
from pathlib import Path

import pytest

from dlperf_study.logs.blocks import textless
from dlperf_study.logs.sources import Source

LINES = "2020-09-01 10:00:00 读取数据 loading the data\n" * 9


def said(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "some.log"
    path.write_bytes(content)
    return textless(Source(path))


@pytest.mark.parametrize("content", [b"", gzip.compress(b"", mtime=0), b"\n \r\n\n"])
def test_what_is_empty_is_said_to_be(tmp_path: Path, content: bytes) -> None:
    assert said(tmp_path, content).startswith("is empty")


@pytest.mark.parametrize("size", [300, 1 << 16])
def test_bytes_of_a_picture_are_no_text(tmp_path: Path, size: int) -> None:
    assert said(tmp_path, b"\x89PNG\r\n\x1a\n" + random.Random(1).randbytes(size)) == "holds no text"


def test_a_line_without_an_end_is_no_line_of_text(tmp_path: Path) -> None:
    assert said(tmp_path, b"\0" * (3 << 20)) == "holds no line of text"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "gbk"])
def test_text_is_text_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    assert said(tmp_path, LINES.encode(encoding)) == ""
    assert said(tmp_path, ("\x1b[32m" + LINES).encode(encoding)) == ""


def test_of_what_can_not_be_read_nothing_more_is_said(tmp_path: Path) -> None:
    assert textless(Source(tmp_path / "nowhere.log")) == ""
    assert said(tmp_path, gzip.compress(LINES.encode())[:12]) == ""
