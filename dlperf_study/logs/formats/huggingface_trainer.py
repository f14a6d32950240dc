"""The Trainer of Hugging Face, and programs that use it, as axolotl: the console, and trainer_state.json."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs.documents import JSON_ROW
from dlperf_study.logs.format import (
    LOSS,
    Fact,
    Format,
    JsonLine,
    JsonRecord,
    Line,
    Merge,
    Metric,
    MetricScope,
    number,
)

_TOTAL = Metric("overall_throughput", "samples/s", MetricScope.JOB, cumulative=True)
_TOKENS = Metric("running_throughput", "tokens/s", MetricScope.JOB, cumulative=True)
_QUOTED = r"'?"


def _record(row: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of a row of log_history; the last of a training that ended has its rate."""
    if "train_samples_per_second" in row:
        return JsonRecord({_TOTAL.name: float(row["train_samples_per_second"])})
    if any(name.startswith("eval_") for name in row):
        return None
    if "learning_rate" not in row:
        raise ValueError(f"no row of log_history: {', '.join(row)}")
    return JsonRecord({LOSS.name: float(row["loss"])}, step=int(row["step"]))


FORMAT = Format(
    name="huggingface_trainer",
    title="Hugging Face Trainer",
    program="huggingface/transformers, trainer.py and trainer_utils.py (speed_metrics)",
    lines=(
        Line(
            ("'train_samples_per_second': ",),
            rf"'train_samples_per_second': {_QUOTED}{number('overall_throughput')}",
            captured=(_TOTAL,),
        ),
        Line(
            ("{'loss': ",),
            rf"\{{'loss': {_QUOTED}{number('loss')}(?:.*?'train_tokens_per_second': {_QUOTED}"
            rf"{number('running_throughput')})?",
            captured=(LOSS, _TOKENS),
        ),
        JsonLine((JSON_ROW,), _record, metrics=(_TOTAL, LOSS)),
    ),
    rates=("overall_throughput", "running_throughput"),
    merge=Merge.COPIES,
    steps="updates since the start",
    traps=(
        "train_samples_per_second is the mean of the whole job from its start, with evaluation and saving",
        "train_tokens_per_second of the last line counts the tokens of one rank; of others, those of the job so far",
        "several ranks may print the same line; the progress bar counts updates, smoothed",
    ),
    facts=(Fact("global_batch", r"Total train batch size \(w\. parallel, distributed & accumulation\) = ([\d,]+)"),),
    why_no_rate="the Trainer writes one only when the training ends (train_samples_per_second)",
)
