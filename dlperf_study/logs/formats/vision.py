"""Libraries of computer vision: Detectron2, MMEngine, Ultralytics."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dlperf_study.logs import printed
from dlperf_study.logs.format import Field, Format, JsonLine, JsonRecord, Line, Merge
from dlperf_study.logs.json_lines import CSV_ROW, JSON_ROW
from dlperf_study.logs.printed import LINE_START, MetricScope, PrintedMetric, integer, number_before_unit

_DETECTRON2_MEAN = PrintedMetric("mean_step_seconds", "s", MetricScope.JOB, cumulative=True)


def _detectron2_record(row: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of 20 iterations; evaluations have no loss."""
    if "total_loss" not in row:
        return None
    values = {printed.LOSS.name: float(row["total_loss"])}
    if "time" in row:
        values[printed.JOB_STEP.name] = float(row["time"])
    return JsonRecord(values, step=int(row["iteration"]))


DETECTRON2 = Format(
    name="detectron2",
    title="Detectron2",
    program="facebookresearch/detectron2, utils/events.py",
    lines=(
        Line(
            ("  iter: ",),
            rf"eta: [^a-z]*(?:days?[^a-z]*)?\biter: {integer('step')}\b",
            (Field(printed.LOSS, "total_loss"), Field(_DETECTRON2_MEAN, " time", r":\s*")),
        ),
        JsonLine((JSON_ROW,), _detectron2_record, metrics=(printed.LOSS, printed.JOB_STEP)),
    ),
    throughput_metrics=("step_seconds", "mean_step_seconds"),
    merge=Merge.ONE,
    steps="iterations since the start, from 0",
    traps=(
        "time is the mean since the start on the console, the median of 20 iterations in metrics.json",
        "IMS_PER_BATCH is the global batch",
    ),
)


def _mmengine_record(row: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of a scalars.json row; validation has no iteration."""
    if "iter" not in row:
        return None
    values = {printed.LOSS.name: float(row["loss"]), printed.JOB_STEP.name: float(row["time"])}
    return JsonRecord(values, int(row.get("epoch", -1)), int(row["iter"]))


_MMENGINE_NUMBERS = (
    Field(printed.JOB_STEP, " time", r":\s*"),
    Field(printed.RANK_READER, "data_time"),
    Field(printed.LOSS, " loss", r":\s*"),
)

MMENGINE = Format(
    name="mmengine",
    title="MMEngine",
    program="open-mmlab/mmengine, runner/log_processor.py, and open-mmlab/mmcv, hooks/logger/text.py",
    lines=(
        Line(
            ("Epoch(train)",),
            rf"INFO - (?:Exp name: \S+ )?Epoch\(train\)\s+\[\s*{integer('epoch')}\]\[\s*{integer('step')}/\d+\]",
            _MMENGINE_NUMBERS,
        ),
        Line(("Iter(train)",), rf"Iter\(train\)\s+\[\s*{integer('step')}/\d+\]", _MMENGINE_NUMBERS),
        Line(
            ("INFO - Epoch [",),
            rf"INFO - Epoch \[{integer('epoch')}\]\[{integer('step')}/\d+\]\s+lr: [^,]*, (?:eta: .*?, )?(?=time: )",
            (
                Field(printed.JOB_STEP, "time", r":\s*"),
                Field(printed.RANK_READER, "data_time"),
                Field(printed.LOSS, " loss", r":\s*"),
            ),
        ),
        Line(("INFO - Iter [",), rf"INFO - Iter \[{integer('step')}/\d+\]", _MMENGINE_NUMBERS),
        JsonLine((JSON_ROW,), _mmengine_record, metrics=(printed.LOSS, printed.JOB_STEP)),
    ),
    throughput_metrics=("step_seconds",),
    merge=Merge.ONE,
    steps="iterations of the epoch, or since the start, from 1",
    traps=(
        "time is a mean of the last iterations, data loading included",
        "the configured batch size is per device",
    ),
)

_BAR_THROUGHPUT = PrintedMetric(
    "step_seconds", "s", MetricScope.JOB, cumulative=True, restarts_each_epoch=True, inverse=True
)
_BAR_STEP = replace(_BAR_THROUGHPUT, inverse=False)
_BAR_NUMBER = number_before_unit("step_seconds")
_BAR_POSITION = (
    rf"{LINE_START}{integer('epoch')}/\d+\s+[\d.]+[GM]?\s[^%]*%[^\n]*?\b{integer('step')}/\d+ (?:\[[^\]]*?,\s*)?"
)
_LOSS_COLUMNS = ("train/box_loss", "train/loss", "train/cls_loss")


def _ultralytics_record(row: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of an epoch."""
    losses = [float(row[name]) for name in _LOSS_COLUMNS if name in row]
    if not losses:
        raise ValueError("no column of a loss")
    values = {printed.LOSS.name: losses[0]}
    if "time" in row:
        values[printed.ELAPSED_OF_EPOCHS.name] = float(row["time"])
    return JsonRecord(values, step=int(row["epoch"]))


ULTRALYTICS = Format(
    name="ultralytics",
    title="Ultralytics",
    program="ultralytics/ultralytics, engine/trainer.py",
    lines=(
        Line(("s/it",), rf"{_BAR_POSITION}{_BAR_NUMBER}s/it", captured=(_BAR_STEP,)),
        Line(("it/s",), rf"{_BAR_POSITION}{_BAR_NUMBER}it/s", captured=(_BAR_THROUGHPUT,)),
        # Bars of validation, and those that have just begun.
        Line(("it/s", "s/it"), rf"{LINE_START}(?!\d+/\d+\s)|\?it/s"),
        JsonLine((CSV_ROW,), _ultralytics_record, metrics=(printed.ELAPSED_OF_EPOCHS, printed.LOSS)),
    ),
    throughput_metrics=("step_seconds", "epoch_seconds"),
    merge=Merge.ONE,
    steps="batches of the epoch, the last line of which counts; in results.csv epochs, from 1",
    traps=(
        "time in results.csv is seconds since the start, with validation and checkpoints",
        "older results.csv have no time",
        "the batch is of all devices",
    ),
    no_throughput_reason="results.csv of this release of Ultralytics has no time",
)

FORMATS = (DETECTRON2, MMENGINE, ULTRALYTICS)
