"""The ImageNet example of PyTorch."""

from dlperf_study.logs.format import LOSS, RANK_READER, RANK_STEP, VALIDATION, Fact, Field, Format, Line, Merge, integer

_NUMBERS = (Field(RANK_STEP, "Time"), Field(RANK_READER, "Data"), Field(LOSS, "Loss"))

#: In lines of other programs the time of the data comes first, and Time means that one.
_TIME_FIRST = r"(?!(?:(?!\bTime\b).)*?\bData\b)"

FORMAT = Format(
    name="pytorch_imagenet",
    title="PyTorch ImageNet example",
    program="pytorch/examples, imagenet/main.py",
    lines=(
        Line(("Epoch: [",), rf"Epoch: \[\s*{integer('epoch')}\]\[\s*{integer('step')}/\d+\]{_TIME_FIRST}", _NUMBERS),
        Line(("Test: [",), rf"Test: \[\s*{integer('step')}/\d+\]", _NUMBERS, window=VALIDATION),
    ),
    rates=("step_seconds",),
    merge=Merge.SLOWEST,
    steps="batches of the epoch, from 0 or 1",
    traps=(
        "seconds per step of one rank, the mean in brackets; the job's rate is batch per device × devices / time",
        "the lines of the ranks are mixed and name no rank",
        "without a synchronisation the time is that of queueing work until the queue is full",
    ),
    facts=(Fact("model", r"creating model '(\w+)'"),),
)
