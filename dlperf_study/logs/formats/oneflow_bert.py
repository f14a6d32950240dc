"""OneFlow-Benchmark's BERT pretraining."""

from dlperf_study.logs.format import Format, Line, Merge, integer
from dlperf_study.logs.formats._oneflow import SETTINGS, numbers

FORMAT = Format(
    name="oneflow_bert",
    title="OneFlow BERT",
    program="Oneflow-Inc/OneFlow-Benchmark, LanguageModeling/BERT",
    lines=(Line(("mlm_loss: ",), rf"step: {integer('step')},", numbers("total_loss", "throughput")),),
    rates=("throughput",),
    merge=Merge.ONE,
    steps="steps since the start, from 0",
    traps=("the rate is that of the whole job, in sequences", "the last number of a line is the Unix time"),
    facts=SETTINGS,
)
