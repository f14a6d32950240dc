"""NVIDIA NeMo 2."""

from dlperf_study.logs.format import JOB_RATE, LOSS, Format, Line, Merge, Metric, MetricScope, integer, number

#: The global batch in samples, divided by the seconds of a step.
_RATE = Metric(JOB_RATE.name, "samples/s", MetricScope.JOB, per="step_seconds")
_STEP = Metric("step_seconds", "s", MetricScope.JOB)

FORMAT = Format(
    name="nemo",
    title="NeMo",
    program="NVIDIA/NeMo 2, lightning/pytorch/callbacks/progress_printer.py",
    lines=(
        Line(
            ("train_step_timing in s: ",),
            rf"Training epoch \d+, iteration \d+/\d+ \|(?=.*?\bglobal_batch_size: {number('throughput')})"
            rf"(?=.*?\bglobal_step: {integer('step')})(?=.*?\breduced_train_loss: {number('loss')})?"
            rf".*?\btrain_step_timing in s: {number('step_seconds')}",
            captured=(_STEP, _RATE, LOSS),
        ),
    ),
    rates=("throughput",),
    merge=Merge.COPIES,
    steps="steps since the start, from 0",
    traps=(
        "the iteration starts over with every epoch; the global step does not",
        "the global batch is that of the line; the time is that of the process that prints",
    ),
)
