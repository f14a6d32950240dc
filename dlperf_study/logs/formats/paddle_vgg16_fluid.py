"""VGG16 on PaddlePaddle Fluid 0.11 to 0.12, with parameter servers."""

from dlperf_study.logs.format import LOSS, RANK_RATE, RANK_STEP, RANK_TOTAL, Fact, Field, Format, Line, Merge, integer

FORMAT = Format(
    name="paddle_vgg16_fluid",
    title="PaddlePaddle Fluid VGG16",
    program="PaddlePaddle/Paddle 0.11 to 0.12, benchmark/cluster/vgg16/vgg16_fluid.py",
    lines=(
        Line(
            ("Iters = ",),
            rf"Pass = {integer('epoch')}, Iters = {integer('step')}",
            (Field(LOSS, "Loss"), Field(RANK_RATE, "Speed"), Field(RANK_STEP, "spent")),
        ),
        Line(
            ("Training performance",),
            rf"(?:Task:{integer('rank')} )?Pass = {integer('epoch')},",
            (Field(RANK_TOTAL, "Training performance"),),
        ),
    ),
    rates=("throughput", "step_seconds", "overall_throughput"),
    merge=Merge.SUM,
    steps="batches since the start of the pass, from 1",
    traps=(
        "a speed is that of one trainer: the job's is the sum over the trainers, all of them",
        "the speed of a batch excludes the reader; the performance of a pass includes it",
    ),
    facts=(
        Fact("batch_per_device", r"batch_size: (\d+)"),
        Fact("world_size", r"trainers total:\s*(\d+)"),
        Fact("device", r"device: (\w+)"),
        Fact("rank", r"task_index: (\d+)"),
    ),
    synchronous=False,
)
