import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

from dlperf_study.analysis import csv_lines

TEXTS = st.one_of(st.none(), st.text(st.sampled_from('ab",\n é'), max_size=4))
REALS = st.one_of(st.none(), st.floats())
WHOLES = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))


def ours(table: pa.Table) -> bytes:
    return csv_lines.header(table.schema) + b"".join(lines.to_pybytes() for lines in csv_lines.lines(table))


def theirs(table: pa.Table) -> bytes:
    written = io.BytesIO()
    csv.write_csv(table, written, csv.WriteOptions(quoting_style="needed"))
    return written.getvalue()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(TEXTS, WHOLES, REALS, st.booleans()), max_size=12), st.integers(1, 4))
def test_a_table_is_written_as_pyarrow_writes_it(rows: list[tuple[object, ...]], repeated: int) -> None:
    kinds = (pa.large_string(), pa.int64(), pa.float64(), pa.bool_())
    columns = [pa.array([row[index] for row in rows] * repeated, kind) for index, kind in enumerate(kinds)]
    table = pa.table([columns[0], columns[0].dictionary_encode(), *columns], list("abcdef"))
    assert ours(table) == theirs(table)


@pytest.mark.parametrize("distinct", [3, 100])
def test_a_table_of_many_pieces_is_one(distinct: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_lines, "ROWS_AT_ONCE", 7)
    values = np.arange(100) % distinct / 7
    table = pa.concat_tables([pa.table({"name": ["a", "b"] * 50, "value": values})] * 3)
    assert ours(table) == theirs(table)
