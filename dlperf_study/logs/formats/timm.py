"""timm's training script."""

from dlperf_study.logs.format import LOSS, Format, Line, Merge, Metric, MetricScope, integer, number

_EPOCH_MEAN = Metric("epoch_throughput", "samples/s", MetricScope.JOB, cumulative=True, restarts_each_epoch=True)
_LAST_UPDATE = Metric("last_update_throughput", "samples/s", MetricScope.JOB)
_RATES = rf"{number('last_update_throughput')}/s\s+\(\s*[\d.]+s,\s*{number('epoch_throughput')}/s\)"

FORMAT = Format(
    name="timm",
    title="timm",
    program="huggingface/pytorch-image-models, train.py",
    lines=(
        Line(
            ("Train: ",),
            rf"Train: {integer('epoch')} \[\s*{integer('step')}/\d+[^\]]*\].*?Loss:\s+{number('loss')}.*?"
            rf"Time:\s+[\d.]+s,\s+{_RATES}",
            captured=(LOSS, _LAST_UPDATE, _EPOCH_MEAN),
        ),
    ),
    rates=("epoch_throughput",),
    merge=Merge.COPIES,
    steps="updates of the epoch, from 0",
    traps=(
        "the rate before the brackets is that of one update in fifty, which may or may not wait for data",
        "the rate in brackets is the mean since the epoch began, with its slow first update: its last line counts",
        "both are of the whole job: the global batch of an update, with accumulation, by the clock of rank 0",
        "summary.csv has no time",
    ),
)
