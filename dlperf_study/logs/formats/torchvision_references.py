"""The reference scripts of torchvision, and programs with its MetricLogger."""

from dlperf_study.logs.format import (
    LOSS,
    RANK_READER,
    RANK_STEP,
    VALIDATION,
    Field,
    Format,
    Line,
    Merge,
    Metric,
    MetricScope,
    integer,
    number,
)

_LAST_STEP = Metric("last_step_throughput", "samples/s", MetricScope.RANK)
_NUMBERS = (Field(_LAST_STEP, "img/s"), Field(LOSS, "loss"), Field(RANK_STEP, "time"), Field(RANK_READER, "data"))
_EPOCH_MEAN = Metric("epoch_step_seconds", "s", MetricScope.RANK)
#: How many steps ``time`` is the mean of.
_WINDOW = 20
_POSITION = rf"\s+\[\s*{integer('step')}/\d+\]\s+eta: "

FORMAT = Format(
    name="torchvision_references",
    title="torchvision references",
    program="pytorch/vision, references/*/utils.py (MetricLogger)",
    lines=(
        Line(("  eta: ",), rf"Epoch: \[{integer('epoch')}\]{_POSITION}", _NUMBERS),
        Line(("  eta: ",), rf"Test: {_POSITION}", _NUMBERS, window=VALIDATION),
        Line(
            ("Total time: ",),
            rf"Epoch: \[{integer('epoch')}\] Total time: [^(]*\({number('epoch_step_seconds')} s / it",
            captured=(_EPOCH_MEAN,),
        ),
        Line(("Total time: ",), r"^(?!.*Epoch: )"),
    ),
    rates=("step_seconds", "epoch_step_seconds"),
    merge=Merge.SLOWEST,
    steps="batches of the epoch, from 0",
    first_true_step=_WINDOW,
    traps=(
        "img/s is of one process, of the last step only, and without loading data: time is used instead",
        "time is the mean of the last 20 steps of one process, with their data: the first 20 of an epoch are left out",
        "if no epoch is longer, the mean of each epoch is used",
        "the detection scripts print no img/s",
    ),
)
