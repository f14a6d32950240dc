"""Tables and JSON documents, also damaged ones, as lines."""

import gzip
import io

import pytest

from dlperf_study.core.errors import LogError, Severity
from dlperf_study.logs.json_lines import as_lines
from dlperf_study.logs.log_reader import read_log


def content(name, text):
    with as_lines(name, io.BytesIO(text.encode())) as file:
        return b"".join(iter(lambda: file.read1(7), b"")).decode()


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("results.csv", "  epoch,   time\n      1,   2.5\n", 'CSV row: {"epoch": "1", "time": "2.5"}\n'),
        ("metrics.csv", "a,b\r\n1,\r\n\r\n", 'CSV row: {"a": "1"}\n'),
        ("metrics.csv", "a,b\n1,2,3\n1", 'CSV row: "1,2,3"\nCSV row: "1"'),
        ("metrics.json", '{"a": 1}\nno object\n{"a": 2}', 'JSON row: {"a": 1}\nno object\nJSON row: {"a": 2}'),
        (
            "state.json",
            '{\n"log_history": [{"step": 1},\n{"step": 2}]}',
            'JSON row: {"step": 1}\nJSON row: {"step": 2}\n',
        ),
        ("state.json", '{\n"log_history": [{"step": 1},\n', '{\n"log_history": [{"step": 1},\n'),
        ("other.json", '{\n"a": 1\n}\n', '{\n"a": 1\n}\n'),
        ("training.log", "a,b\n", "a,b\n"),
        ("empty.csv", "", ""),
    ],
)
def test_rows_become_lines(name, text, lines):
    assert content(name, text) == lines


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(LogError, match=r"results\.csv.*'images/sec'"):
        content("results.csv", "step,images/sec,images/sec\n1,100,90\n")


def test_a_compressed_table_is_read(tmp_path):
    rows = "".join(f"{epoch},{10.0 * epoch},1.5\n" for epoch in range(1, 5))
    path = tmp_path / "results.csv.gz"
    path.write_bytes(gzip.compress(f"epoch,time,train/box_loss\n{rows}".encode()))
    assert read_log(path).series("epoch_seconds").values["epoch_seconds"].tolist() == [10.0, 10.0, 10.0]


def test_a_table_whose_last_row_is_cut_is_truncated(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("epoch,time,train/box_loss\n1,10.0,1.5\n2,20.0,1.5\n3,3")
    assert [diagnostic.severity for diagnostic in read_log(path).diagnostics][:1] == [Severity.ERROR]
