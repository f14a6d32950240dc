"""OneFlow-Benchmark's BERT pretraining."""

from dlperf_study.logs.format import Fact, Field, Format, Line, Merge, whole
from dlperf_study.logs.quantities import JOB_RATE, LOSS, UNIX_TIME

FORMAT = Format(
    name="oneflow_bert",
    title="OneFlow BERT",
    program="Oneflow-Inc/OneFlow-Benchmark, LanguageModeling/BERT",
    lines=(
        Line(
            ("mlm_loss: ",),
            rf"step: {whole('step')},",
            (Field(LOSS, "total_loss"), Field(JOB_RATE, "throughput"), Field(UNIX_TIME, " ", "")),
        ),
    ),
    rates=("throughput",),
    merge=Merge.ONE,
    steps="steps since the start, from 0",
    traps=("the rate is that of the whole job, in sequences", "the last number of a line is the Unix time"),
    facts=(
        Fact("batch_per_device", r"batch_size_per_device = (\d+)"),
        Fact("devices_per_node", r"gpu_num_per_node = (\d+)"),
        Fact("nodes", r"num_nodes = (\d+)"),
    ),
)
