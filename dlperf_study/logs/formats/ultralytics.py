"""Ultralytics YOLO: its progress bar, and results.csv."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dlperf_study.logs.documents import CSV_ROW
from dlperf_study.logs.format import (
    ELAPSED_OF_EPOCHS,
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

_RATE = Metric("step_seconds", "s", MetricScope.JOB, cumulative=True, restarts_each_epoch=True, inverse=True)
_STEP = replace(_RATE, inverse=False)
_NUMBER = number_before_unit("step_seconds")
_POSITION = (
    rf"{LINE_START}{integer('epoch')}/\d+\s+[\d.]+[GM]?\s[^%]*%[^\n]*?\b{integer('step')}/\d+ (?:\[[^\]]*?,\s*)?"
)
_LOSS_COLUMNS = ("train/box_loss", "train/loss", "train/cls_loss")


def _record(row: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of an epoch."""
    losses = [float(row[name]) for name in _LOSS_COLUMNS if name in row]
    values = {LOSS.name: losses[0]} if losses else {}
    if not losses:
        raise ValueError("no column of a loss")
    if "time" in row:
        values[ELAPSED_OF_EPOCHS.name] = float(row["time"])
    return JsonRecord(values, step=int(row["epoch"]))


FORMAT = Format(
    name="ultralytics",
    title="Ultralytics",
    program="ultralytics/ultralytics, engine/trainer.py",
    lines=(
        Line(("s/it",), rf"{_POSITION}{_NUMBER}s/it", captured=(_STEP,)),
        Line(("it/s",), rf"{_POSITION}{_NUMBER}it/s", captured=(_RATE,)),
        # Bars of validation, and those that have just begun.
        Line(("it/s", "s/it"), rf"{LINE_START}(?!\d+/\d+\s)|\?it/s"),
        JsonLine((CSV_ROW,), _record, metrics=(ELAPSED_OF_EPOCHS, LOSS)),
    ),
    rates=("step_seconds", "epoch_seconds"),
    merge=Merge.ONE,
    steps="batches of the epoch, the last line of which counts; in results.csv epochs, from 1",
    traps=(
        "time in results.csv is the seconds since the start, with validation and checkpoints; images are not stated",
        "results.csv of older releases has no time",
        "it/s is of the bar of training; that of validation follows on its own line; batch is that of all devices",
    ),
    why_no_rate="results.csv of this release of Ultralytics has no time",
)
