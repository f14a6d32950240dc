"""OneFlow-Benchmark's ResNet50."""

from dlperf_study.logs.format import VALIDATION, Fact, Format, Line, Merge, integer
from dlperf_study.logs.formats._oneflow import SETTINGS, numbers

_NUMBERS = numbers("loss", "samples/s")


def _head(window: str) -> str:
    return rf"{window}: epoch {integer('epoch')}, iter {integer('step')},"


FORMAT = Format(
    name="oneflow_resnet50",
    title="OneFlow ResNet50",
    program="Oneflow-Inc/OneFlow-Benchmark, Classification/cnns",
    lines=(
        Line(("train: epoch",), _head("train"), _NUMBERS),
        Line(("validation: epoch",), _head("validation"), _NUMBERS, window=VALIDATION),
    ),
    rates=("throughput",),
    merge=Merge.ONE,
    steps="batches of the epoch, from 1",
    traps=("the rate is that of the whole job", "the last number of a line is the Unix time, not a rate"),
    facts=(Fact("model", r"model = (\w+)"), *SETTINGS),
)
