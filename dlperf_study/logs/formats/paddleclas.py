"""PaddleClas, from its first static programs to 2.x."""

from dlperf_study.logs.format import LOSS, VALIDATION, Fact, Field, Format, Line, Merge, integer
from dlperf_study.logs.formats._paddle import COSTS, TRAIN_BATCH

_NUMBERS = (Field(LOSS, " loss"), *COSTS)
#: The names its logger has had; PLSC prints the same line under a different name, and means the whole job.
_LOGGER = r"\b(?:ppcls|root)\b INFO: "

FORMAT = Format(
    name="paddleclas",
    title="PaddleClas",
    program="PaddlePaddle/PaddleClas 1.x and 2.x, tools/train.py and tools/static/train.py",
    lines=(
        Line(("train step",), rf"epoch:\s*{integer('epoch')}\s*,?\s*train\s+step:\s*{integer('step')}", _NUMBERS),
        Line(
            ("valid step",),
            rf"epoch:\s*{integer('epoch')}\s*,?\s*(?:eval|valid)\s+step:\s*{integer('step')}",
            _NUMBERS,
            window=VALIDATION,
        ),
        Line(
            ("[Iter: ",),
            rf"{_LOGGER}\[Train\]\[Epoch {integer('epoch')}/\d+\]\s*\[Iter: {integer('step')}/\d+\]",
            _NUMBERS,
        ),
        Line(
            ("[Iter: ",),
            rf"{_LOGGER}\[Eval\]\[Epoch {integer('epoch')}\]\s*\[Iter: {integer('step')}/\d+\]",
            _NUMBERS,
            window=VALIDATION,
        ),
    ),
    rates=("step_seconds", "throughput"),
    merge=Merge.SLOWEST,
    steps="batches of the epoch, from 0",
    traps=("ips is that of one rank", "the average restarts at every print, so the first after it is often low"),
    facts=(Fact("batch_size", TRAIN_BATCH),),
)
