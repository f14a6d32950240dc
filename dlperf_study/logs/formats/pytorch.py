"""Examples and reference scripts of PyTorch, and timm."""

from dlperf_study.logs import printed
from dlperf_study.logs.format import Fact, Field, Format, Line, Merge
from dlperf_study.logs.printed import MetricScope, PrintedMetric, integer, number

_IMAGENET_NUMBERS = (Field(printed.RANK_STEP, "Time"), Field(printed.RANK_READER, "Data"), Field(printed.LOSS, "Loss"))

#: In lines of other programs the time of the data comes first, and Time means that one.
_TIME_FIRST = r"(?!(?:(?!\bTime\b).)*?\bData\b)"

PYTORCH_IMAGENET = Format(
    name="pytorch_imagenet",
    title="PyTorch ImageNet example",
    program="pytorch/examples, imagenet/main.py",
    lines=(
        Line(
            ("Epoch: [",),
            rf"Epoch: \[\s*{integer('epoch')}\]\[\s*{integer('step')}/\d+\]{_TIME_FIRST}",
            _IMAGENET_NUMBERS,
        ),
        Line(("Test: [",), rf"Test: \[\s*{integer('step')}/\d+\]", _IMAGENET_NUMBERS, training=False),
    ),
    throughput_metrics=("step_seconds",),
    merge=Merge.SLOWEST,
    steps="batches of the epoch, from 0 or 1",
    traps=(
        "seconds per step of one rank: job throughput = batch per device × devices / time",
        "lines of ranks are mixed",
    ),
    facts=(Fact("model", r"creating model '(\w+)'"),),
)

_LAST_STEP = PrintedMetric("last_step_throughput", "samples/s", MetricScope.RANK)
_TORCHVISION_NUMBERS = (
    Field(_LAST_STEP, "img/s"),
    Field(printed.LOSS, "loss"),
    Field(printed.RANK_STEP, "time"),
    Field(printed.RANK_READER, "data"),
)
_TORCHVISION_EPOCH = PrintedMetric("epoch_step_seconds", "s", MetricScope.RANK)
#: How many steps ``time`` is the mean of.
_WINDOW = 20
_TORCHVISION_POSITION = rf"\s+\[\s*{integer('step')}/\d+\]\s+eta: "

TORCHVISION_REFERENCES = Format(
    name="torchvision_references",
    title="torchvision references",
    program="pytorch/vision, references/*/utils.py (MetricLogger)",
    lines=(
        Line(("  eta: ",), rf"Epoch: \[{integer('epoch')}\]{_TORCHVISION_POSITION}", _TORCHVISION_NUMBERS),
        Line(("  eta: ",), rf"Test: {_TORCHVISION_POSITION}", _TORCHVISION_NUMBERS, training=False),
        Line(
            ("Total time: ",),
            rf"Epoch: \[{integer('epoch')}\] Total time: [^(]*\({number('epoch_step_seconds')} s / it",
            captured=(_TORCHVISION_EPOCH,),
        ),
        # Classification prints no time of a step at the end of an epoch.
        Line(("Total time: ",), r"^(?!.*Epoch: .*\()"),
    ),
    throughput_metrics=("step_seconds", "epoch_step_seconds"),
    merge=Merge.SLOWEST,
    steps="batches of the epoch, from 0",
    first_true_step=_WINDOW,
    traps=(
        "img/s covers one process's last step without loading: time is used",
        "time is a mean of 20 steps: the first 20 of an epoch are skipped",
    ),
)

_TIMM_EPOCH = PrintedMetric("epoch_throughput", "samples/s", MetricScope.JOB, cumulative=True, restarts_each_epoch=True)
_TIMM_UPDATE = PrintedMetric("last_update_throughput", "samples/s", MetricScope.JOB)
_TIMM_THROUGHPUTS = rf"{number('last_update_throughput')}/s\s+\(\s*[\d.]+s,\s*{number('epoch_throughput')}/s\)"

TIMM = Format(
    name="timm",
    title="timm",
    program="huggingface/pytorch-image-models, train.py",
    lines=(
        Line(
            ("Train: ",),
            rf"Train: {integer('epoch')} \[\s*{integer('step')}/\d+[^\]]*\].*?Loss:\s+{number('loss')}.*?"
            rf"Time:\s+[\d.]+s,\s+{_TIMM_THROUGHPUTS}",
            captured=(printed.LOSS, _TIMM_UPDATE, _TIMM_EPOCH),
        ),
    ),
    throughput_metrics=("epoch_throughput",),
    merge=Merge.COPIES,
    steps="updates of the epoch, from 0",
    traps=(
        "the value in brackets is a mean since the epoch began; its last line counts",
        "summary.csv has no time",
    ),
)

FORMATS = (PYTORCH_IMAGENET, TORCHVISION_REFERENCES, TIMM)
