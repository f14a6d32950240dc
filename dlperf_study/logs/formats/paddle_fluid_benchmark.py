"""The benchmark script of PaddlePaddle Fluid 0.12 to 1.0."""

from dlperf_study.logs.format import LOSS, RANK_TOTAL, Fact, Field, Format, Line, Merge, integer, number

FORMAT = Format(
    name="paddle_fluid_benchmark",
    title="PaddlePaddle fluid_benchmark",
    program="PaddlePaddle/Paddle 0.12 to 1.0, benchmark/fluid/fluid_benchmark.py",
    lines=(
        Line(("Iter: ",), rf"Pass: {integer('epoch')}, Iter: {integer('step')},", (Field(LOSS, "Loss"),)),
        Line(("examples/se",), rf"{number('overall_throughput')} examples/se[cd]\b", captured=(RANK_TOTAL,)),
    ),
    rates=("overall_throughput",),
    merge=Merge.SUM,
    steps="batches of the pass",
    traps=(
        "the rate is that of one trainer: the job's is the sum over the trainers",
        "the unit is printed as examples/sed; later versions print examples/sec",
    ),
    facts=(
        Fact("batch_size", r"batch_size: (\d+)"),
        Fact("model", r"model: (\w+)"),
        Fact("update_method", r"update_method: (\w+)"),
        Fact("examples", r"Total examples: (\d+)"),
        Fact("total_seconds", r"total time: ([\d.]+)"),
    ),
    synchronous=False,
    carries_steps=True,
)
