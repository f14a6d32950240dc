"""PLSC 0.1 to 1.x (2020): ArcFace with a sharded classifier."""

from dlperf_study.logs.format import JOB_RATE, LOSS, Fact, Field, Format, Line, Merge, integer

FORMAT = Format(
    name="plsc_2020",
    title="PLSC 2020",
    program="PaddlePaddle/PLSC before 2.0, plsc/entry.py",
    lines=(
        Line(
            (" batch:",),
            rf"Pass:{integer('epoch')} batch:{integer('step')}",
            (Field(LOSS, "loss:"), Field(JOB_RATE, "qps:")),
        ),
    ),
    rates=("throughput",),
    merge=Merge.COPIES,
    steps="batches of the pass, from 0; every tenth is printed",
    traps=(
        "every local rank prints the rate of the whole job: their sum is wrong",
        "in one stream each step appears once per rank, so that counting lines takes the cold ones",
    ),
    facts=(Fact("world_size", r"num_trainers: (\d+)"),),
    dlperf_steps=(50, 150),
    dlperf_slices_lines=True,
)
