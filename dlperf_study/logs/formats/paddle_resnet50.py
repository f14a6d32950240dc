"""PaddlePaddle 1.x image classification (ResNet50), in its four forms.

The oldest prints ``time``, the next ``elapse``; a logger may put the time before it; since 2020-09 it prints
``batch_cost``, ``reader_cost`` and ``ips`` instead.
"""

from dlperf_study.logs.format import LOSS, RANK_STEP, VALIDATION, Fact, Field, Format, Line, Merge, integer
from dlperf_study.logs.formats._paddle import COSTS

_NUMBERS = (Field(LOSS, "loss"), *COSTS)
_OLD_NUMBERS = (Field(LOSS, "loss"), Field(RANK_STEP, "time"))

FORMAT = Format(
    name="paddle_resnet50",
    title="PaddlePaddle 1.x image classification",
    program="PaddlePaddle/models 1.0 to 1.8, PaddleCV/image_classification/train.py",
    lines=(
        Line(("train batch",), rf"\[Pass {integer('epoch')}, train batch {integer('step')}\]", _NUMBERS),
        Line((", test",), rf"\[Pass {integer('epoch')}, test\s+batch {integer('step')}\]", _NUMBERS, window=VALIDATION),
        Line((", trainbatch",), rf"Pass {integer('epoch')}, trainbatch {integer('step')},", _OLD_NUMBERS),
        Line(
            (",testbatch",), rf"Pass {integer('epoch')},testbatch {integer('step')},", _OLD_NUMBERS, window=VALIDATION
        ),
    ),
    rates=("step_seconds", "throughput"),
    merge=Merge.SLOWEST,
    steps="batches of the pass, from 0",
    traps=(
        "a time is that of trainer 0: the job's rate is nodes × devices per node × batch per device / time",
        "elapse has four decimals and includes the reader; time, before it, has two",
        "ips, printed since 2020-09, is that of one rank, and its average restarts at every print",
    ),
    facts=(
        Fact("batch_size", r"batch_size\s*[:=]\s*(\d+)"),
        Fact("model", r"model\s*[:=]\s*(\w+)"),
        Fact("image_size", r"image_shape\s*[:=]\s*\[\d+, \d+, (\d+)\]"),
        Fact("classes", r"class_dim\s*[:=]\s*(\d+)"),
        Fact("steps_planned", r"max_iter\s*[:=]\s*(\d+)"),
        Fact("use_fp16", r"use_fp16\s*[:=]\s*(\w+)"),
        Fact("use_dali", r"use_dali\s*[:=]\s*(\w+)"),
    ),
)
