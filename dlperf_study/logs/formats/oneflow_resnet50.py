"""OneFlow-Benchmark's ResNet50."""

from dlperf_study.logs.format import VALIDATION, Fact, Format, Line, Merge, whole
from dlperf_study.logs.formats._oneflow import SETTINGS, numbers

_NUMBERS = numbers("loss", "samples/s")


def _where(window: str) -> str:
    return rf"{window}: epoch {whole('epoch')}, iter {whole('step')},"


FORMAT = Format(
    name="oneflow_resnet50",
    title="OneFlow ResNet50",
    program="Oneflow-Inc/OneFlow-Benchmark, Classification/cnns",
    lines=(
        Line(("train: epoch",), _where("train"), _NUMBERS),
        Line(("validation: epoch",), _where("validation"), _NUMBERS, window=VALIDATION),
    ),
    rates=("throughput",),
    merge=Merge.ONE,
    steps="batches of the epoch, from 1",
    traps=("the rate is that of the whole job", "the last number of a line is the Unix time, not a rate"),
    facts=(Fact("model", r"model = (\w+)"), *SETTINGS),
)
