"""PLSC 2.0 to 2.3 (2021 to 2022): ArcFace with a sharded classifier."""

from dlperf_study.logs.format import JOB_RATE, LOSS, Fact, Field, Format, Line, Merge, integer, number

FORMAT = Format(
    name="plsc_2_2",
    title="PLSC 2.2",
    program="PaddlePaddle/PLSC 2.0 to 2.3, tools/train.py",
    lines=(
        Line(
            ("throughput",),
            rf"(?:\bloss {number('loss')},.*? )?epoch: {integer('epoch')}, step: {integer('step')},",
            (Field(JOB_RATE, "throughput"),),
            (LOSS,),
        ),
    ),
    rates=("throughput",),
    merge=Merge.COPIES,
    steps="steps since the start",
    traps=(
        "the rate is that of the whole job",
        "validation every few thousand steps is part of the next line's interval, which is then far too slow",
    ),
    facts=(
        Fact("world_size", r"world_size: (\d+)"),
        Fact("global_batch", r"total_batch_size: (\d+)"),
        Fact("batch_per_device", r"batch_size: (\d+)"),
        Fact("steps_planned", r"total_steps: (\d+)"),
        Fact("sample_ratio", r"sample_ratio: (\d+(?:\.\d+)?)"),
        Fact("model", r"backbone: (\w+)"),
        Fact("classes", r"num_classes: (\d+)"),
        Fact("fp16", r"fp16: (\w+)"),
        Fact("is_static", r"is_static: (\w+)"),
    ),
    dlperf_steps=(50, 150),
)
