"""Programs that are made for measuring: tf_cnn_benchmarks, Horovod's synthetic ones, MLPerf."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs import printed
from dlperf_study.logs.format import Fact, Format, JsonLine, JsonRecord, Line, Merge
from dlperf_study.logs.json_lines import numeric_values, string_values
from dlperf_study.logs.printed import MetricScope, PrintedMetric, integer, number

_MEAN_SINCE_WARMUP = PrintedMetric("running_throughput", "samples/s", MetricScope.JOB, cumulative=True)

TF_CNN_BENCHMARKS = Format(
    name="tf_cnn_benchmarks",
    title="tf_cnn_benchmarks",
    program="tensorflow/benchmarks, scripts/tf_cnn_benchmarks",
    lines=(
        Line(
            ("images/sec: ",),
            rf"{integer('step')}\s+images/sec: {number('running_throughput')} \+/- \S+ "
            rf"\(jitter = \S+\)(?:\s+{number('loss')})?",
            captured=(_MEAN_SINCE_WARMUP, printed.LOSS),
        ),
        Line(
            ("total images/sec: ",), rf"total images/sec: {number('overall_throughput')}", captured=(printed.JOB_TOTAL,)
        ),
    ),
    throughput_metrics=("overall_throughput", "running_throughput"),
    merge=Merge.COPIES,
    steps="steps since the warm-up, from 1",
    closing_metric=printed.JOB_TOTAL.name,
    traps=(
        "a line's throughput is a mean since the warm-up",
        "every Horovod rank prints the job's total",
        "forward-only mode trains nothing",
    ),
    facts=(
        Fact("tensorflow", r"TensorFlow:\s+(\S+)"),
        Fact("model", r"Model:\s+(\S+)"),
        Fact("dataset", r"Dataset:\s+(\w+(?: \(synthetic\))?)"),
        Fact("mode", r"Mode:\s+(\S+)"),
        Fact("global_batch", r"Batch size:\s+(\d+) global"),
        Fact("batch_per_device", r" (\d+) per device"),
        Fact("devices_listed", r"Devices:\s+(\[.*\])"),
        Fact("variables", r"Variables:\s+(\S+)"),
        Fact("steps_planned", r"Num batches:\s+(\d+)"),
    ),
    carries_steps=True,
)

_DEVICE_MEAN = PrintedMetric("mean_throughput_per_device", "samples/s", MetricScope.RANK)

HOROVOD_SYNTHETIC = Format(
    name="horovod_synthetic",
    title="Horovod synthetic benchmark",
    program="horovod/horovod, examples/*/*_synthetic_benchmark.py",
    lines=(
        Line(
            ("Iter #",),
            rf"Iter #{integer('step')}: {number('throughput')} (?i:img|images)/sec per \w+",
            captured=(printed.RANK_THROUGHPUT,),
        ),
        Line(("Img/sec per ",), rf"Img/sec per \w+: {number('mean_throughput_per_device')}", captured=(_DEVICE_MEAN,)),
        Line(
            ("Total img/sec on ",),
            rf"Total img/sec on \d+ \w+(?:\(s\))?: {number('overall_throughput')}",
            captured=(printed.JOB_TOTAL,),
        ),
    ),
    throughput_metrics=("throughput", "overall_throughput"),
    merge=Merge.SUM,
    steps="measurements of some batches each, from 0",
    counts_updates=False,
    closing_metric=printed.JOB_TOTAL.name,
    traps=("a throughput is rank 0's; the total is rank 0's mean × devices",),
    facts=(
        Fact("model", r"Model: (\S+)"),
        Fact("batch_per_device", r"Batch size: (\d+)"),
        Fact("world_size", r"Number of \wPUs: (\d+)"),
    ),
    synthetic_data_only=True,
)

_MLPERF_FACTS = ("global_batch_size", "submission_benchmark", "submission_platform", "submission_org", "train_samples")
#: Keys of values that measure nothing; every rank may have its own seed.
_NO_NUMBERS = (*_MLPERF_FACTS, "seed")
_MLPERF_NAMES = {
    "imgs_sec": printed.JOB_THROUGHPUT.name,
    "throughput": printed.UNITLESS_THROUGHPUT.name,
    "train_loss": printed.LOSS.name,
}
_SAMPLES = "samples_count"


def _mlperf_record(line: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of a line; start and stop are print times."""
    key, value = line["key"], line.get("value")
    kind = line.get("event_type", "POINT_IN_TIME")
    seconds = float(line["time_ms"]) / 1000
    if kind != "POINT_IN_TIME":
        values = {f"{key}_seconds": seconds}
    else:
        measured = {} if key in _NO_NUMBERS else numeric_values(value if isinstance(value, Mapping) else {key: value})
        values = {_MLPERF_NAMES.get(name, name): value for name, value in measured.items()}
    if not values:
        return None
    metadata = line.get("metadata") or {}
    samples = _first_position(metadata, _SAMPLES)
    if samples >= 0:
        values[printed.ELAPSED_OF_SAMPLES.name] = seconds
    epoch = _first_position(metadata, "epoch_num") if samples < 0 else -1
    step = _first_position(metadata, _SAMPLES, "step", "step_num")
    return JsonRecord(values, epoch, step, time_seconds=seconds, training=not key.startswith("eval"))


def _first_position(metadata: Mapping[str, Any], *names: str) -> int:
    """Return the first of these values, or −1."""
    return next((int(metadata[name]) for name in names if metadata.get(name) is not None), -1)


_MLPERF_LINE = JsonLine(
    (":::MLLOG ",),
    _mlperf_record,
    lambda line: string_values({line["key"]: line.get("value")}) if line["key"] in _MLPERF_FACTS else {},
    (printed.JOB_THROUGHPUT, printed.UNITLESS_THROUGHPUT, printed.ELAPSED_OF_SAMPLES, printed.LOSS),
)
MLLOG = Format(
    name="mllog",
    title="MLPerf",
    program="mlcommons/logging, mlperf_logging.mllog 0.7 and later",
    lines=(_MLPERF_LINE,),
    throughput_metrics=("throughput", "train_throughput", "sample_seconds"),
    merge=Merge.AS_NAMED,
    steps="as the program counts, if it prints one: in NeMo samples",
    counts_updates=False,
    device_throughput_facts={"submission_benchmark": ("ssd", "retinanet")},
    traps=(
        "SSD (RetinaNet) prints per-device throughput, others the job's",
        "images, sequences or tokens, by benchmark",
        "without a throughput: samples_count differences / time, without evaluation",
    ),
)

FORMATS = (TF_CNN_BENCHMARKS, HOROVOD_SYNTHETIC, MLLOG)
