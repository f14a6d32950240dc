"""Tables of any content, and what an audit may do with them."""

from pathlib import Path

from hypothesis import strategies as st

from dlperf_study.audit.audit import audit, describe
from dlperf_study.audit.published.source import METRICS
from dlperf_study.audit.reading.table_file import read_tables
from dlperf_study.audit.result_frames import METRIC_COLUMNS
from dlperf_study.core.errors import TableError
from dlperf_study.metrics.columns import COLUMNS

COUNTS = st.sampled_from(["", "-", "0", "1", "2", "8", "32", "224", "-1"])
NUMBERS = st.one_of(
    st.sampled_from(["", "-", "0", "0.0", "1", "1.00", "2", "8.0", "100.0", "195.2", "3.90", "0.5"]),
    st.sampled_from(["97.6%", "-1", "1e-9", "1e308", "10 : 3"]),
)
WORDS = st.sampled_from(
    ["", "V100", "Tesla V100", "Intel Xeon E5-2620 v4", "resnet50", "bert_base", "fp32", "run", "mean", "a", "b", "é"]
)
ANYTHING = st.sampled_from(["fast", "1e999", "nan", "inf", "n/a", "1,000", '"1,000"', '"1,000.5"', '"', "2.5"])
CONDITIONS = (
    *("cell", "source", "table", "series", "baseline", "runs_of", "estimator", "repetition", "runs", "printed"),
    *("resolution", "world_size", "nodes", "devices_per_node", "parameter_servers", "batch_per_device", "global_batch"),
    *("samples_per_task", "model", "image_size", "inferred", "device_name", "precision", "threads_per_device"),
    *("instance", "low", "high", "flops_per_sample", "device_peak_flops", "configuration_id", "baseline_id"),
    *("throughput_low", "throughput_high"),
)
EVERYDAY = (
    *("GPUs", "GPU", "Images/sec", "fp32 img/s", "amp img/s", "Speed-up", "Efficiency (%)", "TPS/GPU", "tokens/s"),
    *("it/s", "TFLOPS/GPU", "MFU", "Step time (ms)", "step time", "GBS", "batch size", "BS / GPU", "Seq Len"),
    *("Nodes", "memory", "run1", "run2", "mean", "std", "tokens/sample", "config"),
)
WRITTEN = st.sampled_from(
    ["", "8", "0", "1.00x", "97%", "17.1 samp/s", "12.8k", "~ 1024", "8xH100", "A100 (2x8)", "1 234", "10 ± 2", "fp32"]
)
HEADS = st.one_of(
    st.lists(st.sampled_from(EVERYDAY), unique=True, min_size=1, max_size=8),
    st.lists(st.sampled_from(CONDITIONS), unique=True, max_size=8).map(lambda names: ["metric", "value", *names]),
    st.lists(st.sampled_from((*CONDITIONS, *METRIC_COLUMNS)), unique=True, min_size=1, max_size=10),
)


def fields(name):
    """Return the content of a column: mostly of the kind that belongs there."""
    if name == "metric":
        return st.sampled_from(tuple(METRICS))
    if name in ("value", "printed", *METRIC_COLUMNS):
        return NUMBERS
    if name in EVERYDAY:
        return WRITTEN
    known = name in COLUMNS and COLUMNS[name].is_number
    return COUNTS if known or name in ("low", "high", "throughput_low", "throughput_high") else WORDS


@st.composite
def tables(draw):
    head = draw(HEADS)
    rows = draw(st.lists(st.tuples(*map(fields, head)), min_size=1, max_size=6))
    table = [list(row) for row in [tuple(head), *rows]]
    if draw(st.integers(0, 9)) == 0:
        table[-1][0] = draw(ANYTHING)
    return "\n".join(map(",".join, table))


def contents():
    """Return what is in a file: mostly a table, else any text or bytes."""
    return tables() | st.text(max_size=60) | st.binary(max_size=60)


def audit_or_refuse(path: Path, content: str | bytes) -> None:
    """Fail unless a table is audited, or refused in one message."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode(errors="surrogatepass"))
    try:
        results = read_tables(path).results
    except TableError:
        return
    assert describe(audit(results))
