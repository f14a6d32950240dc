"""NVIDIA HugeCTR."""

from dlperf_study.logs.format import LOSS, RANK_INTERVAL, Fact, Field, Format, Line, Merge, integer, number

FORMAT = Format(
    name="hugectr",
    title="HugeCTR",
    program="NVIDIA-Merlin/HugeCTR 2.x to 4.x, the Python and command-line trainers",
    lines=(
        Line(
            ("iters): ",),
            rf"(?:\[R(?:AN)?K{integer('rank')}\].*?)?Iter: {integer('step')} "
            rf"Time\({integer('count')} iters\): {number('step_seconds')}s\b",
            (Field(LOSS, "Loss"),),
            (RANK_INTERVAL,),
        ),
    ),
    rates=("step_seconds",),
    merge=Merge.SLOWEST,
    steps="steps since the start",
    traps=("the time is that of all steps since the last line: divided here by their number",),
    facts=(
        Fact("steps_planned", r"max_iter\s*[:=]\s*(\d+)"),
        Fact("devices_per_node", r"gpu_num_per_node\s*[:=]\s*(\d+)"),
        Fact("nodes", r"num_nodes\s*[:=]\s*(\d+)"),
        Fact("global_batch", r"batchsize\s*[:=]\s*(\d+)"),
    ),
)
