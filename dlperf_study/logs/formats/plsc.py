"""Formats of PLSC, PaddlePaddle's classifier with sharded classes, in three generations."""

from dlperf_study.logs import printed
from dlperf_study.logs.format import Fact, Field, Format, Line, Merge
from dlperf_study.logs.formats.paddle import TRAIN_BATCH
from dlperf_study.logs.printed import integer, number

PLSC_2020 = Format(
    name="plsc_2020",
    title="PLSC 2020",
    program="PaddlePaddle/PLSC before 2.0, plsc/entry.py",
    lines=(
        Line(
            (" batch:",),
            rf"Pass:{integer('epoch')} batch:{integer('step')}",
            (Field(printed.LOSS, "loss:"), Field(printed.JOB_THROUGHPUT, "qps:")),
        ),
    ),
    throughput_metrics=("throughput",),
    merge=Merge.COPIES,
    steps="batches of the pass, from 0; every tenth is printed",
    traps=("every rank prints the job's throughput: do not sum them",),
    facts=(Fact("world_size", r"num_trainers: (\d+)"),),
    dlperf_steps=(50, 150),
    dlperf_slices_lines=True,
)

PLSC_2_2 = Format(
    name="plsc_2_2",
    title="PLSC 2.2",
    program="PaddlePaddle/PLSC 2.0 to 2.3, tools/train.py",
    lines=(
        Line(
            ("throughput",),
            rf"(?:\bloss {number('loss')},.*? )?epoch: {integer('epoch')}, step: {integer('step')},",
            (Field(printed.JOB_THROUGHPUT, "throughput"),),
            (printed.LOSS,),
        ),
    ),
    throughput_metrics=("throughput",),
    merge=Merge.COPIES,
    steps="steps since the start",
    traps=(
        "throughput of the job",
        "a line after validation contains it and is far too slow",
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

_PLSC_2_4_NUMBERS = (
    Field(printed.LOSS, " loss"),
    Field(printed.RANK_STEP, "batch_cost"),
    Field(printed.JOB_THROUGHPUT, "ips"),
)
#: Before or after the time of the step, depending on the version.
_READER = rf"(?=(?:.*?\breader_cost: {number('reader_seconds')})?+)"

PLSC_2_4 = Format(
    name="plsc_2_4",
    title="PLSC 2.4",
    program="PaddlePaddle/PLSC 2.4, plsc-train",
    lines=(
        Line(
            ("[Iter: ",),
            rf"plsc INFO: \[Train\]\[Epoch {integer('epoch')}/\d+\]\s*\[Iter: {integer('step')}/\d+\]{_READER}",
            _PLSC_2_4_NUMBERS,
            (printed.RANK_READER,),
        ),
        Line(
            ("[Iter: ",),
            rf"plsc INFO: \[Eval\]\[Epoch {integer('epoch')}\]\s*\[Iter: {integer('step')}/\d+\]{_READER}",
            _PLSC_2_4_NUMBERS,
            (printed.RANK_READER,),
            training=False,
        ),
    ),
    throughput_metrics=("throughput", "step_seconds"),
    merge=Merge.COPIES,
    steps="batches of the epoch, from 1",
    traps=("ips is the job's; PaddleClas prints equal lines for one rank",),
    facts=(Fact("world_size", r"world_size\s*:\s*(\d+)"), Fact("batch_per_device", TRAIN_BATCH)),
    dlperf_steps=(50, 150),
)

FORMATS = (PLSC_2020, PLSC_2_2, PLSC_2_4)
