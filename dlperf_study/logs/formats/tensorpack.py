"""Tensorpack: one throughput an epoch."""

from dlperf_study.logs.format import JOB_RATE, Fact, Field, Format, Line, Merge, integer

FORMAT = Format(
    name="tensorpack",
    title="Tensorpack",
    program="tensorpack/tensorpack, callbacks/summary.py (ThroughputTracker) and callbacks/base.py",
    lines=(
        Line(("(global_step ",), rf"Epoch {integer('epoch')} \(global_step {integer('step')}\) finished"),
        Line(("Throughput (samples/sec)",), "Throughput", (Field(JOB_RATE, "(samples/sec)"),)),
    ),
    rates=("throughput",),
    merge=Merge.ONE,
    steps="steps since the start, at the end of the epoch",
    traps=(
        "under Horovod rank 0 alone prints, and means the whole job",
        "the first epoch includes the start-up",
        "on a terminal it prints colour codes",
    ),
    facts=(Fact("devices_per_node", r"Number of GPUs found: (\d+)"),),
    carries_steps=True,
)
