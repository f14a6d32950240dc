"""Records that grow are those that are merged at once, and a long log takes about as much memory as its own bytes."""

import gzip
import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dlperf_study.dataset.ingestion.run_reader import RunToRead, read_printed_run
from dlperf_study.logs.blocks import LogSource
from dlperf_study.logs.metadata import Extras, LogMetadata, LogRun
from dlperf_study.logs.records import COLUMNS, GrowingRecords, make_records, merge_records
from tests.logs.ingest.conftest import REQUIRED_METADATA

#: What reading takes for its current block, however long the log is.
BLOCK_MEMORY = 20 << 20
NUMBERS = st.sampled_from([0.0, 1.0, float("nan")])


@st.composite
def parts(draw):
    """Return the records of successive blocks; a column has one value in some, or is missing."""
    made, line = [], 1
    for size in draw(st.lists(st.integers(0, 4), max_size=5)):
        metrics = draw(st.lists(st.sampled_from(["loss", "throughput"]), unique=True))
        values = {metric: np.array(draw(st.lists(NUMBERS, min_size=size, max_size=size))) for metric in metrics}
        steps = np.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)), dtype=np.int64)
        made.append(make_records(np.arange(line, line + size), values if size else {}, step=steps))
        line += size
    return made


@given(parts())
def test_records_that_grow_are_those_that_are_merged(blocks):
    growing = GrowingRecords()
    for block in blocks:
        growing.append(block)
    grown, merged = growing.end(), merge_records([block for block in blocks if len(block)])
    assert len(grown) == len(merged)
    assert list(grown.values) == list(merged.values)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(grown, name), getattr(merged, name))
    for metric, column in merged.values.items():
        np.testing.assert_array_equal(grown.values[metric], column)


def test_a_column_of_one_value_takes_no_memory():
    growing = GrowingRecords()
    for first in (1, 1001):
        growing.append(make_records(np.arange(first, first + 1000), {"loss": np.full(1000, 7.0)}))
    grown = growing.end()
    assert grown.line.strides == (8,)
    assert {getattr(grown, name).strides for name in COLUMNS if name != "line"} == {(0,)}
    assert grown.values["loss"].strides == (0,)


def test_a_long_log_takes_about_as_much_memory_as_its_own_bytes(tmp_path):
    lines = 600_000
    noise = np.random.default_rng(0).uniform(0.99, 1.01, lines)
    log = tmp_path / "long.log.gz"
    with gzip.open(log, "wt", compresslevel=1) as file:
        for step, factor in enumerate(noise.tolist()):
            file.write(f"[Pass 0, train batch {step}] \tloss {7 * factor:.5f}, elapse {0.3657 * factor:.4f} sec\n")
    with gzip.open(log) as file:
        log_bytes = sum(map(len, file))
    metadata = LogMetadata(REQUIRED_METADATA, (), "a test", Extras())
    source = LogSource(log)
    tracemalloc.start()
    try:
        run = read_printed_run(RunToRead(metadata, LogRun(1, (log.name,)), (source,), log.stat().st_size))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert run.throughputs
    assert run.throughputs.throughput.size == lines
    assert run.refusal == ""
    assert peak < log_bytes + BLOCK_MEMORY
