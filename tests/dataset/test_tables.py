"""Tables as files: what is written is read again, whole or piece by piece, and no CSV is longer than can be opened."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.dataset import tables
from dlperf_study.metrics.columns import TableName
from dlperf_study.report.tables.table import Cell, Heading, Table

PIECE = 4


def piece(configuration_id: str, windows: tuple[str, ...]) -> pa.Table:
    return tables.step_rows(
        configuration_id,
        1,
        rank=np.full(PIECE, -1),
        window=(np.arange(PIECE) % len(windows), windows),
        step=np.arange(PIECE),
        seconds=np.arange(1.0, PIECE + 1),
        loss=np.array([0.5, np.nan, 0.25, np.nan]),
    )


def pieces() -> Iterator[pa.Table]:
    yield piece("one", ("warmup", "training"))
    yield piece("two", ("training",))
    yield piece("three", ("left_out", "training", "warmup"))


def write(folder: Path, *further: pa.Table) -> None:
    with tables.growing_table(TableName.STEPS, folder) as growing:
        for rows in (*pieces(), *further):
            growing.add(rows)


@pytest.mark.parametrize("rows_at_once", [1, 2 * PIECE, 1000])
def test_a_table_written_in_pieces_is_read_as_one(tmp_path, monkeypatch, rows_at_once):
    monkeypatch.setattr(tables, "ROWS_AT_ONCE", rows_at_once)
    write(tmp_path)
    read = tables.read(TableName.STEPS, tmp_path)
    assert read["configuration_id"].tolist() == ["one"] * PIECE + ["two"] * PIECE + ["three"] * PIECE
    assert read["window"].tolist()[-PIECE:] == ["left_out", "training", "warmup", "left_out"]
    assert dict(read.dtypes.astype(str)) == dict(tables.frame_of_rows(TableName.STEPS, []).dtypes.astype(str))
    assert read["loss"].isna().sum() == 2 * 3


def test_the_csv_of_a_table_holds_the_same_and_leaves_what_is_missing_empty(tmp_path):
    write(tmp_path)
    lines = (tmp_path / "steps.csv").read_text().splitlines()
    assert lines[0] == '"configuration_id","repetition","rank","window","step","seconds","loss"'
    assert lines[1:3] == ['"one",1,-1,"warmup",0,1,0.5', '"one",1,-1,"training",1,2,']
    assert len(lines) == 1 + 3 * PIECE


def test_no_cell_of_a_csv_is_a_formula(tmp_path):
    """Names of hosts, files and ingested configurations come from outside."""
    with tables.growing_table(TableName.STEPS, tmp_path) as growing:
        growing.add(piece('=HYPERLINK("http://x")', ("training",)))
    columns = {"subject": ["@SUM(A1)", "-1+cmd"], "message": ["=1+1", "a = b"]}
    diagnostics = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    tables.write(TableName.DIAGNOSTICS, tables.frame_of_rows(TableName.DIAGNOSTICS, diagnostics), tmp_path)
    assert pd.read_csv(tmp_path / "steps.csv")["configuration_id"].tolist() == ['\'=HYPERLINK("http://x")'] * PIECE
    read = pd.read_csv(tmp_path / "diagnostics.csv")
    assert (read["subject"].tolist(), read["message"].tolist()) == (["'@SUM(A1)", "'-1+cmd"], ["'=1+1", "a = b"])
    assert tables.read(TableName.STEPS, tmp_path)["configuration_id"][0] == '=HYPERLINK("http://x")'


#: Texts, and whether a spreadsheet would run them.
FORMULAS = {
    **dict.fromkeys(('=HYPERLINK("http://x")', "=1", "@SUM(A1)", "-1+cmd", "+cmd", "-x", "\t=1", "\r=1", "\n=1"), True),
    **dict.fromkeys(("-1\n", "-\n1", "-1 x\n=1", "- 1", "+", "-1 2", "=", "--1", "-1 GB x", "-1e5e5", "-.5"), True),
    **dict.fromkeys(("-", "", "x", "a = b", "1-1", "-1", "+1.5", "-1e-5", "-1,234.5 %", "+3.2×", "-20 ms"), False),
    **dict.fromkeys(("-5 µs", "-3 samples/s", "-2GB", "'=1", "−1", "ü", " =1", "x\r=1", "x\n=1"), False),
}


@pytest.mark.parametrize(("text", "is_formula"), FORMULAS.items())
@pytest.mark.parametrize("kind", ["page", "dataset", "dictionary"])
def test_every_table_has_one_rule_of_what_a_spreadsheet_runs(tmp_path, text, is_formula, kind):
    if kind == "page":
        content = Table("x", "", "", (Heading("subject"),), ((Cell(text),),)).csv()
    elif kind == "dataset":
        row = dict.fromkeys(("subject", "message"), text)
        tables.write(TableName.DIAGNOSTICS, tables.frame_of_rows(TableName.DIAGNOSTICS, [row]), tmp_path)
        content = (tmp_path / "diagnostics.csv").read_bytes().decode()
    else:
        with tables.growing_table(TableName.STEPS, tmp_path) as growing:
            growing.add(piece(text, ("training",)))
        content = (tmp_path / "steps.csv").read_bytes().decode().replace("configuration_id", "subject")
    [written, *_] = csv.DictReader(io.StringIO(content, newline=""))
    expected = "'" + text if is_formula else text
    assert written["subject"] == (expected.replace("\r", "\n") if kind == "page" else expected)


def test_a_table_without_rows_is_a_table_too(tmp_path):
    with tables.growing_table(TableName.STEPS, tmp_path):
        pass
    assert tables.read(TableName.STEPS, tmp_path).empty
    assert len((tmp_path / "steps.csv").read_text().splitlines()) == 1


@pytest.mark.parametrize(("longest", "has_csv"), [(3 * PIECE, True), (3 * PIECE - 1, False)])
def test_a_table_that_no_spreadsheet_opens_has_no_csv_and_keeps_no_older_one(tmp_path, monkeypatch, longest, has_csv):
    (tmp_path / "steps.csv").write_text("of another day")
    monkeypatch.setattr(tables, "LONGEST_CSV", longest)
    write(tmp_path)
    assert (tmp_path / "steps.csv").exists() == has_csv
    assert len(tables.read(TableName.STEPS, tmp_path)) == 3 * PIECE
    # So it is if it is written as a whole.
    rows = pd.concat([each.to_pandas() for each in pieces()], ignore_index=True)
    tables.write(TableName.STEPS, rows, tmp_path)
    assert (tmp_path / "steps.csv").exists() == has_csv


def test_a_table_that_could_not_be_written_completely_leaves_the_old_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "ROWS_AT_ONCE", 1)
    write(tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    damaged = piece("new", ("training",)).drop_columns("loss")
    with pytest.raises(ValueError, match="schema"):
        write(tmp_path, damaged)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_damaged_table_is_refused(tmp_path, refused):
    write(tmp_path)
    file = tmp_path / "steps.parquet"
    file.write_bytes(file.read_bytes()[:1000])
    with refused(RecordError):
        tables.read(TableName.STEPS, tmp_path)


@pytest.mark.parametrize(
    ("dtype", "message"), [("str", "column seconds is str, and must be float64"), (None, "column seconds is missing")]
)
def test_a_table_of_other_columns_is_refused(tmp_path, dtype, message):
    write(tmp_path)
    content = tables.read(TableName.STEPS, tmp_path)
    content = content.astype({"seconds": dtype}) if dtype else content.drop(columns="seconds")
    content.to_parquet(tmp_path / "steps.parquet")
    with pytest.raises(RecordError, match=message):
        tables.read(TableName.STEPS, tmp_path)
