"""torchtitan."""

from dlperf_study.logs.format import DEVICE_TOKENS, LOSS, Field, Format, Line, Merge, integer

FORMAT = Format(
    name="torchtitan",
    title="torchtitan",
    program="pytorch/torchtitan, components/metrics.py",
    lines=(
        Line(
            ("tps: ",),
            rf"\bstep:\s+{integer('step')}\s+(?=loss:)",
            (Field(LOSS, "loss"), Field(DEVICE_TOKENS.with_thousands, "tps")),
        ),
    ),
    rates=("throughput",),
    merge=Merge.COPIES,
    steps="steps since the start, from 1; a line is of those since the line before",
    traps=(
        "tps is in tokens/s of each device; all ranks may print it, and their sum means nothing",
        "the first step contains the start-up; mfu is relative to BF16, and missing with FP8",
    ),
)
