"""nanoGPT."""

from dlperf_study.logs.format import JOB_STEP, LOSS, Field, Format, Line, Merge, integer

FORMAT = Format(
    name="nanogpt",
    title="nanoGPT",
    program="karpathy/nanoGPT, train.py",
    lines=(
        Line(
            ("iter ",),
            rf"\biter {integer('step')}:(?= loss )",
            (Field(LOSS, "loss"), Field(JOB_STEP.in_milliseconds, "time")),
        ),
    ),
    rates=("step_seconds",),
    merge=Merge.ONE,
    steps="iterations since the start, from 0; a line is of that one iteration",
    traps=(
        "an iteration with an evaluation before it contains that; the first contains compiling",
        "the batch is batch_size × gradient_accumulation_steps, which is that of all devices",
        "mfu is relative to an A100, whatever the device, and a mean over the last lines",
    ),
)
