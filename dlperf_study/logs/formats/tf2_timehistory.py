"""The TimeHistory callback of TensorFlow 2's official models."""

from dlperf_study.logs.format import JOB_RATE, Fact, Field, Format, Line, Merge, integer, number

FORMAT = Format(
    name="tf2_timehistory",
    title="TensorFlow 2 official models",
    program="tensorflow/models, official/utils/misc/keras_utils.py",
    lines=(
        Line(
            ("TimeHistory: ",),
            rf"TimeHistory: \S+ seconds, {number('throughput')} examples/second "
            rf"between steps \d+ and {integer('step')}(?!\S)",
            captured=(JOB_RATE,),
        ),
        Line(
            ("BenchmarkMetric: ",),
            rf"BenchmarkMetric: \{{.*?'(?:global step|num_batches)': ?{integer('step')}",
            (Field(JOB_RATE, "'examples_per_second'"),),
        ),
    ),
    rates=("throughput",),
    merge=Merge.ONE,
    steps="steps since the start; the number is the last step of the interval",
    traps=("the rate is that of the whole job", "the first interval includes the start-up: about a third of the rate"),
    facts=(Fact("batch_size", r"'batch_size': (\d+)"), Fact("devices_per_node", r"'num_gpus': ([1-9]\d*)")),
)
