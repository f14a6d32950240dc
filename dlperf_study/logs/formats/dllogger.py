"""NVIDIA dllogger's JSON lines: names are those of the program, and so are units and scopes."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs.format import TRAINING, VALIDATION, Entry, Format, JsonLine, Merge
from dlperf_study.logs.json_values import numbers_of, text_facts

#: What programs call the rate of the whole job and the loss, in the words of our columns.
_SYNONYMS = {
    "train.total_ips": "throughput",
    "total_ips": "throughput",
    "throughput_train": "throughput",
    "imgs_per_sec": "throughput",
    "train_throughput": "throughput",
    "train.loss": "loss",
    "total_loss": "loss",
    "step_loss": "loss",
}


def _entry(line: Mapping[str, Any]) -> Entry | None:
    """Return the numbers of a LOG line; an empty step is the summary of the whole run."""
    if line["type"] != "LOG":
        return None
    values = {_SYNONYMS.get(name, name): value for name, value in numbers_of(line["data"]).items()}
    epoch, step = _place(line["step"])
    if step < 0 and epoch < 0 and "throughput" in values:
        values["overall_throughput"] = values.pop("throughput")
    time_seconds = float(line.get("timestamp", "nan"))
    return Entry(values, epoch, step, time_seconds=time_seconds, window=_window(line["data"])) if values else None


def _window(data: Mapping[str, Any]) -> str:
    return VALIDATION if data and all(name.startswith(("val.", "val_", "eval")) for name in data) else TRAINING


def _place(step: Any) -> tuple[int, int]:
    """Return epoch and step of what dllogger calls a step: nothing, a number, ``[epoch, step]``, or named numbers."""
    if isinstance(step, Mapping):
        return int(step.get("epoch", -1)), int(step.get("step", step.get("iteration", -1)))
    parts = step if isinstance(step, list | tuple) else [] if step == "" else [step]
    if len(parts) < 2:
        return -1, int(parts[0]) if parts else -1
    return int(parts[0]), int(parts[1])


def _facts(line: Mapping[str, Any]) -> Mapping[str, str]:
    return text_facts(line["data"]) if line["type"] == "LOG" and line["step"] == "PARAMETER" else {}


FORMAT = Format(
    name="dllogger",
    title="NVIDIA dllogger",
    program="NVIDIA/dllogger, JSONStreamBackend",
    lines=(JsonLine(("DLLL ",), _entry, _facts),),
    rates=("throughput", "overall_throughput"),
    merge=Merge.AS_NAMED,
    steps="as the program counts: a number, or [epoch, step]",
    traps=("units stand in METADATA lines, where the program wrote any",),
)
