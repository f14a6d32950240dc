"""TensorFlow's tf_cnn_benchmarks."""

from dlperf_study.logs.format import JOB_TOTAL, LOSS, Fact, Format, Line, Merge, Metric, MetricScope, integer, number

_RUNNING = Metric("running_throughput", "samples/s", MetricScope.JOB, cumulative=True)

FORMAT = Format(
    name="tf_cnn_benchmarks",
    title="tf_cnn_benchmarks",
    program="tensorflow/benchmarks, scripts/tf_cnn_benchmarks",
    lines=(
        Line(
            ("images/sec: ",),
            rf"{integer('step')}\s+images/sec: {number('running_throughput')} \+/- \S+ "
            rf"\(jitter = \S+\)(?:\s+{number('loss')})?",
            captured=(_RUNNING, LOSS),
        ),
        Line(("total images/sec: ",), rf"total images/sec: {number('overall_throughput')}", captured=(JOB_TOTAL,)),
    ),
    rates=("overall_throughput", "running_throughput"),
    merge=Merge.COPIES,
    steps="steps since the warm-up, from 1",
    closing_metric=JOB_TOTAL.name,
    traps=(
        "the rate of a line is the mean since the warm-up, not that of the last steps",
        "under Horovod every rank prints the total of the whole job",
        "with parameter servers on several hosts a worker's running mean is its own, the total that of the job",
        "with mode forward-only nothing is trained",
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
