"""PaddleClas, from its first static programs to 2.x."""

from dlperf_study.logs.format import LOSS, VALIDATION, Fact, Field, Format, Line, Merge, whole
from dlperf_study.logs.formats._paddle import COSTS, TRAIN_BATCH

_NUMBERS = (Field(LOSS, " loss"), *COSTS)
#: The names its logger has had; PLSC prints the same line under another name, and means the whole job by it.
_LOGGER = r"\b(?:ppcls|root)\b INFO: "

FORMAT = Format(
    name="paddleclas",
    title="PaddleClas",
    program="PaddlePaddle/PaddleClas 1.x and 2.x, tools/train.py and tools/static/train.py",
    lines=(
        Line(("train step",), rf"epoch:\s*{whole('epoch')}\s*,?\s*train\s+step:\s*{whole('step')}", _NUMBERS),
        Line(
            ("valid step",),
            rf"epoch:\s*{whole('epoch')}\s*,?\s*(?:eval|valid)\s+step:\s*{whole('step')}",
            _NUMBERS,
            window=VALIDATION,
        ),
        Line(
            ("[Iter: ",),
            rf"{_LOGGER}\[Train\]\[Epoch {whole('epoch')}/\d+\]\s*\[Iter: {whole('step')}/\d+\]",
            _NUMBERS,
        ),
        Line(
            ("[Iter: ",),
            rf"{_LOGGER}\[Eval\]\[Epoch {whole('epoch')}\]\s*\[Iter: {whole('step')}/\d+\]",
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
