"""modded-nanogpt, and parameter-golf."""

from dlperf_study.logs.format import ELAPSED, LOSS, VALIDATION, Field, Format, Line, Merge, integer

_TIME = Field(ELAPSED.in_milliseconds, "train_time")
_POSITION = rf"\bstep:{integer('step')}/\d+ "

FORMAT = Format(
    name="modded_nanogpt",
    title="modded-nanogpt",
    program="KellerJordan/modded-nanogpt, train_gpt*.py, and openai/parameter-golf, train_gpt.py",
    lines=(
        Line(("train_loss:",), _POSITION, (Field(LOSS, "train_loss"), _TIME)),
        Line(("val_loss:",), _POSITION, (Field(LOSS, "val_loss"), _TIME), window=VALIDATION),
    ),
    rates=("step_seconds",),
    merge=Merge.ONE,
    steps="steps since the start",
    traps=(
        "step_avg is a mean since the start, or since step 10: the difference of two train_time is used instead",
        "the clock is set to 0 after 10 steps in some versions, and stops during validation",
        "the batch, or the length of a sequence, grows during training in some records",
    ),
)
