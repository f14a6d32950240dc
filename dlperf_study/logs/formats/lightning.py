"""PyTorch Lightning: its progress bar, and the metrics.csv of its CSVLogger."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs.documents import CSV_ROW
from dlperf_study.logs.format import (
    LINE_START,
    LOSS,
    Format,
    JsonLine,
    JsonRecord,
    Line,
    Merge,
    Metric,
    MetricScope,
    integer,
    number_before_unit,
)

_STEP = Metric("step_seconds", "s", MetricScope.RANK, cumulative=True, restarts_each_epoch=True)
_RATE = Metric("step_seconds", "s", MetricScope.RANK, cumulative=True, restarts_each_epoch=True, inverse=True)
_NUMBER = number_before_unit("step_seconds")
_POSITION = rf"{LINE_START}Epoch {integer('epoch')}:.*?\|.*?\|\s*{integer('step')}/\d+ \["
_LOSSES = ("train_loss_step", "train_loss", "loss")


def _record(row: Mapping[str, Any]) -> JsonRecord | None:
    """Return the loss of a row; a row without one is of validation, or of an epoch."""
    epoch, step = int(row["epoch"]), int(row["step"])
    losses = [float(row[name]) for name in _LOSSES if name in row]
    return JsonRecord({LOSS.name: losses[0]}, epoch, step) if losses else None


FORMAT = Format(
    name="lightning",
    title="PyTorch Lightning",
    program="Lightning-AI/pytorch-lightning, callbacks/progress/tqdm_progress.py and loggers/csv_logs.py",
    lines=(
        Line(("s/it",), rf"{_POSITION}[^\]]*?,\s*{_NUMBER}s/it", captured=(_STEP,)),
        Line(("it/s",), rf"{_POSITION}[^\]]*?,\s*{_NUMBER}it/s", captured=(_RATE,)),
        # Bars of validation, and those that have just begun.
        Line(("it/s", "s/it"), rf"{LINE_START}(?!Epoch )|\?it/s"),
        JsonLine((CSV_ROW,), _record, metrics=(LOSS,)),
    ),
    rates=("step_seconds",),
    merge=Merge.SLOWEST,
    steps="batches of the epoch; the last line of an epoch counts",
    traps=(
        "it/s counts the batches of one process, a mean since the epoch began; below 1 it is s/it",
        "every step may be printed twice; before 2.0 the bar also counts batches of validation",
        "metrics.csv has what the program logs, and no time",
    ),
    why_no_rate="metrics.csv of Lightning has no time; its progress bar has",
)
