"""Formats of training libraries: PyTorch Lightning, Hugging Face's Trainer, Composer, DeepSpeed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dlperf_study.logs import printed
from dlperf_study.logs.format import Fact, Field, Format, JsonLine, JsonRecord, Line, Merge
from dlperf_study.logs.json_lines import CSV_ROW, JSON_ROW
from dlperf_study.logs.printed import LINE_START, MetricScope, PrintedMetric, integer, number, number_before_unit

_LIGHTNING_STEP = PrintedMetric("step_seconds", "s", MetricScope.RANK, cumulative=True, restarts_each_epoch=True)
_LIGHTNING_THROUGHPUT = replace(_LIGHTNING_STEP, inverse=True)
_LIGHTNING_NUMBER = number_before_unit("step_seconds")
_LIGHTNING_POSITION = rf"{LINE_START}Epoch {integer('epoch')}:.*?\|.*?\|\s*{integer('step')}/\d+ \["
_LIGHTNING_LOSSES = ("train_loss_step", "train_loss", "loss")


def _lightning_record(row: Mapping[str, Any]) -> JsonRecord | None:
    """Return the loss of a training row."""
    epoch, step = int(row["epoch"]), int(row["step"])
    losses = [float(row[name]) for name in _LIGHTNING_LOSSES if name in row]
    if losses:
        return JsonRecord({printed.LOSS.name: losses[0]}, epoch, step)
    return None


LIGHTNING = Format(
    name="lightning",
    title="PyTorch Lightning",
    program="Lightning-AI/pytorch-lightning, callbacks/progress/tqdm_progress.py and loggers/csv_logs.py",
    lines=(
        Line(("s/it",), rf"{_LIGHTNING_POSITION}[^\]]*?,\s*{_LIGHTNING_NUMBER}s/it", captured=(_LIGHTNING_STEP,)),
        Line(("it/s",), rf"{_LIGHTNING_POSITION}[^\]]*?,\s*{_LIGHTNING_NUMBER}it/s", captured=(_LIGHTNING_THROUGHPUT,)),
        # Bars of validation, and those that have just begun.
        Line(("it/s", "s/it"), rf"{LINE_START}(?!Epoch )|\?it/s"),
        JsonLine((CSV_ROW,), _lightning_record, metrics=(printed.LOSS,)),
    ),
    throughput_metrics=("step_seconds",),
    merge=Merge.SLOWEST,
    steps="batches of the epoch; the last line of an epoch counts",
    traps=(
        "it/s counts batches of one process; below 1 it is s/it",
        "before 2.0 the bar also counts validation batches",
        "metrics.csv has no time",
    ),
    no_throughput_reason="metrics.csv of Lightning has no time; its progress bar has",
)

_HUGGINGFACE_TOTAL = PrintedMetric("overall_throughput", "samples/s", MetricScope.JOB, cumulative=True)
_HUGGINGFACE_TOKENS = PrintedMetric("running_throughput", "tokens/s", MetricScope.JOB, cumulative=True)
_QUOTED = r"'?"


def _huggingface_record(row: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of a row of log_history."""
    if "train_samples_per_second" in row:
        return JsonRecord({_HUGGINGFACE_TOTAL.name: float(row["train_samples_per_second"])})
    if any(name.startswith("eval_") for name in row):
        return None
    if "learning_rate" not in row:
        raise ValueError(f"no row of log_history: {', '.join(row)}")
    return JsonRecord({printed.LOSS.name: float(row["loss"])}, step=int(row["step"]))


HUGGINGFACE_TRAINER = Format(
    name="huggingface_trainer",
    title="Hugging Face Trainer",
    program="huggingface/transformers, trainer.py and trainer_utils.py (speed_metrics)",
    lines=(
        Line(
            ("'train_samples_per_second': ",),
            rf"'train_samples_per_second': {_QUOTED}{number('overall_throughput')}",
            captured=(_HUGGINGFACE_TOTAL,),
        ),
        Line(
            ("{'loss': ",),
            rf"\{{'loss': {_QUOTED}{number('loss')}(?:.*?'train_tokens_per_second': {_QUOTED}"
            rf"{number('running_throughput')})?",
            captured=(printed.LOSS, _HUGGINGFACE_TOKENS),
        ),
        JsonLine((JSON_ROW,), _huggingface_record, metrics=(_HUGGINGFACE_TOTAL, printed.LOSS)),
    ),
    throughput_metrics=("overall_throughput", "running_throughput"),
    merge=Merge.COPIES,
    steps="updates since the start",
    traps=(
        "train_samples_per_second is a mean from the start, evaluation and saving included",
        "the last train_tokens_per_second counts one rank; earlier ones count the job",
    ),
    facts=(Fact("global_batch", r"Total train batch size \(w\. parallel, distributed & accumulation\) = ([\d,]+)"),),
    no_throughput_reason="the Trainer writes one only when the training ends (train_samples_per_second)",
)

COMPOSER = Format(
    name="composer",
    title="Composer",
    program="mosaicml/composer, callbacks/speed_monitor.py and loggers/console_logger.py",
    lines=(
        Line(("][batch=",), rf"\[epoch={integer('epoch')}(?:/\d+)?\]\[batch={integer('step')}/\d+\]:"),
        Line(
            ("throughput/samples_per_sec: ",),
            rf"Train throughput/samples_per_sec: {number('throughput')}",
            captured=(printed.JOB_THROUGHPUT,),
        ),
        Line(
            ("throughput/tokens_per_sec: ",),
            rf"Train throughput/tokens_per_sec: {number('token_throughput')}",
            captured=(printed.JOB_TOKENS,),
        ),
        Line(("loss/train/total: ",), rf"Train loss/train/total: {number('loss')}", captured=(printed.LOSS,)),
    ),
    throughput_metrics=("throughput", "token_throughput"),
    merge=Merge.ONE,
    steps="batches of the epoch, from 1",
    traps=(
        "throughputs are means of the last 100 batches",
        "time/train is in hours; batches_per_sec has only four decimals",
    ),
    carries_steps=True,
)

#: The global batch divided by the time of an iteration, which has all that the timer leaves out.
_DEEPSPEED_ITERATION = PrintedMetric("iteration_throughput", "samples/s", MetricScope.JOB)
_DEEPSPEED_MEAN = PrintedMetric("running_throughput", "samples/s", MetricScope.JOB, cumulative=True)

DEEPSPEED = Format(
    name="deepspeed",
    title="DeepSpeed",
    program="microsoft/DeepSpeed, deepspeed/utils/timer.py",
    lines=(
        Line(
            ("RunningAvgSamplesPerSec=",),
            rf"epoch=\d+/micro_step=\d+/global_step={integer('step')}, ",
            (Field(_DEEPSPEED_MEAN, "RunningAvgSamplesPerSec"), Field(printed.JOB_THROUGHPUT, "CurrSamplesPerSec")),
        ),
        Line(
            ("RunningAvgSamplesPerSec=",),
            rf"(?<![=\w])\d+/{integer('step')}, ",
            (Field(_DEEPSPEED_MEAN, "RunningAvgSamplesPerSec"), Field(printed.JOB_THROUGHPUT, "CurrSamplesPerSec")),
        ),
        Line(
            (" iter time (s): ",),
            rf"\bsteps: {integer('step')} loss: {number('loss')} iter time \(s\): [\d.]+ ",
            (Field(_DEEPSPEED_ITERATION, "samples/sec"),),
            (printed.LOSS,),
        ),
    ),
    throughput_metrics=("iteration_throughput", "throughput", "running_throughput"),
    merge=Merge.COPIES,
    steps="updates since the start",
    traps=(
        "samples/sec of a pipeline covers whole iterations and is preferred",
        "the running average contains slow first steps: the last step's throughput is used",
        "the timer excludes data loading: compare with wall_throughput",
    ),
)

FORMATS = (LIGHTNING, HUGGINGFACE_TRAINER, COMPOSER, DEEPSPEED)
