"""Horovod's synthetic benchmarks for PyTorch and TensorFlow."""

from dlperf_study.logs.format import (
    JOB_TOTAL,
    RANK_RATE,
    Fact,
    Format,
    Line,
    Merge,
    Metric,
    MetricScope,
    integer,
    number,
)

_MEAN = Metric("mean_throughput_per_device", "samples/s", MetricScope.RANK)

FORMAT = Format(
    name="horovod_synthetic",
    title="Horovod synthetic benchmark",
    program="horovod/horovod, examples/*/*_synthetic_benchmark.py",
    lines=(
        Line(
            ("Iter #",),
            rf"Iter #{integer('step')}: {number('throughput')} (?i:img|images)/sec per \w+",
            captured=(RANK_RATE,),
        ),
        Line(
            ("Img/sec per ",),
            rf"Img/sec per \w+: {number('mean_throughput_per_device')}",
            captured=(_MEAN,),
        ),
        Line(
            ("Total img/sec on ",),
            rf"Total img/sec on \d+ \w+(?:\(s\))?: {number('overall_throughput')}",
            captured=(JOB_TOTAL,),
        ),
    ),
    rates=("throughput", "overall_throughput"),
    merge=Merge.SUM,
    steps="measurements of some batches each, from 0",
    closing_metric=JOB_TOTAL.name,
    traps=("a rate is that of rank 0; the total is the number of devices × rank 0's mean, not a sum over the ranks",),
    facts=(
        Fact("model", r"Model: (\S+)"),
        Fact("batch_per_device", r"Batch size: (\d+)"),
        Fact("world_size", r"Number of \wPUs: (\d+)"),
    ),
    synthetic_data_only=True,
)
