"""Megatron-LM, and programs that print its line of an iteration."""

from dlperf_study.logs.format import JOB_RATE, LOSS, Format, Line, Merge, Metric, MetricScope, integer, number

#: The global batch in samples, divided by the milliseconds of an iteration.
_RATE = Metric(JOB_RATE.name, "samples/s", MetricScope.JOB, factor=1000.0, per="step_seconds")
_STEP = Metric("step_seconds", "s", MetricScope.JOB, factor=1e-3)

_HEAD = (
    rf"\biteration\s+{integer('step')}/\s*\d+ \|.*?elapsed time per iteration \(ms\): {number('step_seconds')}"
    rf"(?=[ /|]).*?global batch size:\s*{number('throughput')}"
)
_NEEDLES = ("elapsed time per iteration (ms): ",)

FORMAT = Format(
    name="megatron_lm",
    title="Megatron-LM",
    program="NVIDIA/Megatron-LM, megatron/training/training.py",
    lines=(
        Line(_NEEDLES, rf"{_HEAD}(?=.*?\blm loss: {number('loss')})", (), (_STEP, _RATE, LOSS)),
        # Iterations that are skipped, until the scale of the loss fits, have none.
        Line(_NEEDLES, rf"{_HEAD}(?!.*?\blm loss: )", (), (_STEP, _RATE)),
    ),
    rates=("throughput",),
    merge=Merge.ONE,
    steps="iterations since the start, from 1; a line is of those since the line before",
    traps=(
        "the time is the mean since the line before; the first contains the start-up",
        "the global batch is that of the line, and may grow during training",
        "iterations that are skipped, until the scale of the loss fits, are in the time",
        "the throughput per GPU is in TFLOP/s, of the model",
    ),
)
