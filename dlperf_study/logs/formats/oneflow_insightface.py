"""OneFlow's InsightFace."""

from dlperf_study.logs.format import JOB_RATE, LOSS, Field, Format, Line, Merge, integer

FORMAT = Format(
    name="oneflow_insightface",
    title="OneFlow InsightFace",
    program="Oneflow-Inc/oneflow_face, insightface_train.py",
    lines=(
        Line(
            ("train: iter",), rf"train: iter {integer('step')},", (Field(LOSS, "loss"), Field(JOB_RATE, "throughput"))
        ),
    ),
    rates=("throughput",),
    merge=Merge.ONE,
    steps="steps since the start, from 1",
    traps=("the rate is that of the whole job",),
)
