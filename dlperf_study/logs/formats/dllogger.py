"""NVIDIA dllogger's JSON lines: names are those of the program, and so are units and scopes."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs.format import (
    JOB_RATE,
    JOB_TOTAL,
    LOSS,
    TRAINING,
    UNITLESS_RATE,
    UNITLESS_TOTAL,
    VALIDATION,
    Format,
    JsonLine,
    JsonRecord,
    Merge,
)
from dlperf_study.logs.json_lines import numeric_values, string_values

#: Names of the whole job's rate in samples and of the loss, with our column for each.
_SYNONYMS = {
    **dict.fromkeys(("train.total_ips", "train.ips", "total_ips", "imgs_per_sec"), JOB_RATE.name),
    **dict.fromkeys(("throughput_train", "training_sequences_per_second"), JOB_RATE.name),
    "throughput": UNITLESS_RATE.name,
    **dict.fromkeys(("train.loss", "total_loss", "step_loss"), LOSS.name),
}
_TOTALS = {JOB_RATE.name: JOB_TOTAL.name, UNITLESS_RATE.name: UNITLESS_TOTAL.name}
#: Programs with numbers of these names count a single step in epochs, others in iterations.
_OF_EPOCHS = ("train.", "val.")
#: How the names of numbers of validation begin.
_OF_VALIDATION = ("val.", "val_", "eval")


def _record(line: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of a LOG line; without a step it sums up an epoch or the whole run."""
    if line["type"] != "LOG" or line["step"] == "PARAMETER":
        return None
    data = line["data"]
    epoch, step = _position(line["step"], counts_epochs=any(name.startswith(_OF_EPOCHS) for name in data))
    values = {_SYNONYMS.get(name, name): value for name, value in numeric_values(data).items()}
    if step < 0:
        values = {_TOTALS.get(name, name): value for name, value in values.items()}
    is_validation = data and all(name.startswith(_OF_VALIDATION) for name in data)
    window = VALIDATION if is_validation else TRAINING
    time_seconds = float(line.get("timestamp", "nan"))
    return JsonRecord(values, epoch, step, time_seconds=time_seconds, window=window) if values else None


def _position(step: Any, counts_epochs: bool) -> tuple[int, int]:
    """Return epoch and step of what dllogger calls a step: nothing, a number, ``[epoch, step]``, or named numbers."""
    if isinstance(step, Mapping):
        return int(step.get("epoch", -1)), int(step.get("step", step.get("iteration", -1)))
    parts = step if isinstance(step, list | tuple) else [] if step == "" else [step]
    if len(parts) == 1 and isinstance(step, list) and counts_epochs:
        return int(parts[0]), -1
    if len(parts) < 2:
        return -1, int(parts[0]) if parts else -1
    return int(parts[0]), int(parts[1])


_LINE = JsonLine(
    ("DLLL ",),
    _record,
    lambda line: string_values(line["data"]) if line["type"] == "LOG" and line["step"] == "PARAMETER" else {},
    (JOB_RATE, JOB_TOTAL, UNITLESS_RATE, UNITLESS_TOTAL, LOSS),
)
FORMAT = Format(
    name="dllogger",
    title="NVIDIA dllogger",
    program="NVIDIA/dllogger, JSONStreamBackend",
    lines=(_LINE,),
    rates=("throughput", "overall_throughput", "train_throughput", "overall_train_throughput"),
    merge=Merge.AS_NAMED,
    steps="as the program counts: a number, or [epoch, step]",
    traps=(
        "units are in METADATA lines, if the program wrote any",
        "train_throughput counts samples in one program and tokens in another: it says neither",
        "a single step is an epoch in some programs, an iteration in others",
    ),
)
