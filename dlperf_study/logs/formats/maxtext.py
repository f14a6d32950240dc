"""MaxText."""

from dlperf_study.logs.format import DEVICE_TOKENS, JOB_STEP, LOSS, Field, Format, Line, Merge, integer

FORMAT = Format(
    name="maxtext",
    title="MaxText",
    program="AI-Hypercomputer/maxtext, metric_logger.py",
    lines=(
        Line(
            ("completed step: ",),
            rf"completed step: {integer('step')}, ",
            (Field(JOB_STEP, "seconds"), Field(DEVICE_TOKENS, "Tokens/s/device"), Field(LOSS, " loss")),
        ),
        # While the batch grows, lines may have no time.
        Line(("completed step: ",), r"^(?!.*seconds: )"),
    ),
    rates=("throughput", "step_seconds"),
    merge=Merge.COPIES,
    steps="steps since the start, from 0",
    traps=(
        "steps are queued: the first one contains compiling, and up to the fourth may take no time at all",
        "lines of 2023 have no tokens: the time of the step is used instead",
        "tokens are of each device, with those that only fill up a sequence; every host prints them",
    ),
    first_true_step=5,
)
