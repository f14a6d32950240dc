"""NVIDIA's programs: dllogger for machines and for readers, and HugeCTR."""

from collections.abc import Mapping
from typing import Any

from dlperf_study.logs import printed
from dlperf_study.logs.format import Fact, Field, Format, JsonLine, JsonRecord, Line, Merge
from dlperf_study.logs.json_lines import numeric_values, string_values
from dlperf_study.logs.printed import integer, number

#: Names of the whole job's throughput in samples and of the loss, with our column for each.
_DLLOGGER_NAMES = {
    **dict.fromkeys(("train.total_ips", "train.ips", "total_ips", "imgs_per_sec"), printed.JOB_THROUGHPUT.name),
    **dict.fromkeys(("throughput_train", "training_sequences_per_second"), printed.JOB_THROUGHPUT.name),
    "throughput": printed.UNITLESS_THROUGHPUT.name,
    **dict.fromkeys(("train.loss", "total_loss", "step_loss"), printed.LOSS.name),
}
_TOTALS_BY_THROUGHPUT = {
    printed.JOB_THROUGHPUT.name: printed.JOB_TOTAL.name,
    printed.UNITLESS_THROUGHPUT.name: printed.UNITLESS_TOTAL.name,
}
#: Programs with numbers of these names count a single step in epochs, others in iterations.
_OF_EPOCHS = ("train.", "val.")
#: How the names of numbers of validation begin.
_OF_VALIDATION = ("val.", "val_", "eval")


def _dllogger_record(line: Mapping[str, Any]) -> JsonRecord | None:
    """Return the numbers of a LOG line; no step means a summary."""
    if line["type"] != "LOG" or line["step"] == "PARAMETER":
        return None
    data = line["data"]
    epoch, step = _dllogger_position(line["step"], counts_epochs=any(name.startswith(_OF_EPOCHS) for name in data))
    values = {}
    for name, value in numeric_values(data).items():
        values[_DLLOGGER_NAMES.get(name, name)] = value
    if step < 0:
        values = {_TOTALS_BY_THROUGHPUT.get(name, name): value for name, value in values.items()}
    is_validation = data and all(name.startswith(_OF_VALIDATION) for name in data)
    time_seconds = float(line.get("timestamp", "nan"))
    if values:
        return JsonRecord(values, epoch, step, time_seconds=time_seconds, training=not is_validation)
    return None


def _dllogger_position(step: Any, counts_epochs: bool) -> tuple[int, int]:
    """Return epoch and step: nothing, a number, ``[epoch, step]``, or named numbers."""
    if isinstance(step, Mapping):
        return int(step.get("epoch", -1)), int(step.get("step", step.get("iteration", -1)))
    if not isinstance(step, list | tuple):
        return -1, -1 if step == "" else int(step)
    if len(step) >= 2:
        return int(step[0]), int(step[1])
    if not step:
        return -1, -1
    if counts_epochs and isinstance(step, list):
        return int(step[0]), -1
    return -1, int(step[0])


_DLLOGGER_LINE = JsonLine(
    ("DLLL ",),
    _dllogger_record,
    lambda line: string_values(line["data"]) if line["type"] == "LOG" and line["step"] == "PARAMETER" else {},
    (printed.JOB_THROUGHPUT, printed.JOB_TOTAL, printed.UNITLESS_THROUGHPUT, printed.UNITLESS_TOTAL, printed.LOSS),
)
DLLOGGER = Format(
    name="dllogger",
    title="NVIDIA dllogger",
    program="NVIDIA/dllogger, JSONStreamBackend",
    lines=(_DLLOGGER_LINE,),
    throughput_metrics=("throughput", "overall_throughput", "train_throughput", "overall_train_throughput"),
    merge=Merge.AS_NAMED,
    steps="as the program counts: a number, or [epoch, step]",
    counts_updates=False,
    traps=(
        "units are in METADATA lines, if present",
        "train_throughput counts samples or tokens, by program",
    ),
)

_SPACED = r"\s*:\s*"
_NUMBERS = (
    Field(printed.LOSS, "train.loss", _SPACED),
    Field(printed.JOB_THROUGHPUT, "imgs_per_sec", _SPACED),
    Field(printed.JOB_THROUGHPUT, "throughput_train", _SPACED),
    Field(printed.JOB_THROUGHPUT, " train.total_ips", _SPACED),
    Field(printed.JOB_THROUGHPUT, " train.ips", _SPACED),
    Field(printed.JOB_THROUGHPUT, " total_ips", _SPACED),
    Field(printed.LOSS, "total_loss", _SPACED),
)
#: The first letter is missing in some copies.
_STAMP = r"LL \d{4}-\d\d-\d\d \S+ - "
_ITERATION = rf"(?:(?:Training )?Epoch: {integer('epoch')} )?(?:Training )?Iteration: {integer('step')}\b"
_TUPLE = rf"\((?:{integer('epoch')}, )?{integer('step')},?\)"
#: The mean of an epoch, and that of the run; some programs put nothing before the latter.
_EPOCH = rf"Epoch: {integer('epoch')}\s++(?!Iteration)"
_RUN = r"(?:Summary:|\(\))?\s"
_VALIDATION = (
    Field(printed.JOB_THROUGHPUT, " val.total_ips", _SPACED),
    Field(printed.JOB_THROUGHPUT, " val.ips", _SPACED),
)
_SUMMARY = (
    Field(printed.JOB_TOTAL, " train.total_ips", _SPACED),
    Field(printed.JOB_TOTAL, " train.ips", _SPACED),
    Field(printed.JOB_TOTAL, "throughput_train", _SPACED),
)
_NEEDLES = ("imgs_per_sec", " throughput_train", " total_ips", "train.total_ips", "train.ips")

NVIDIA_DLL = Format(
    name="nvidia_dll",
    title="NVIDIA DeepLearningExamples",
    program="NVIDIA/DeepLearningExamples, ResNet50 for three libraries and BERT for TensorFlow, 2020 to 2021",
    lines=(
        Line(_NEEDLES, _STAMP + _ITERATION, _NUMBERS),
        Line(_NEEDLES, _STAMP + _TUPLE, _NUMBERS),
        Line(("val.total_ips", "val.ips"), _STAMP + _ITERATION, _VALIDATION, training=False),
        Line(_NEEDLES, _STAMP + _EPOCH, _SUMMARY),
        Line(_NEEDLES, _STAMP + _RUN, _SUMMARY),
    ),
    throughput_metrics=("throughput", "overall_throughput"),
    merge=Merge.ONE,
    steps="iterations: of the epoch in PyTorch, since the start in TensorFlow",
    traps=(
        "every throughput is the job's",
        "PyTorch's first iterations show queueing, which is too fast",
    ),
    facts=(
        Fact("world_size", r"world_size : (\d+)"),
        Fact("batch_size", r"batch_size : (\d+)"),
        Fact("model", r"arch : (\S+)"),
        # MXNet says float16 and needs no amp for it.
        Fact("amp", r"(?<!float16  )amp : (\w+)"),
        Fact("data_backend", r"data_backend : (\S+)"),
    ),
    dlperf_steps=(20, 120),
)

HUGECTR = Format(
    name="hugectr",
    title="HugeCTR",
    program="NVIDIA-Merlin/HugeCTR 2.x to 4.x, the Python and command-line trainers",
    lines=(
        Line(
            ("iters): ",),
            rf"(?:\[R(?:AN)?K{integer('rank')}\].*?)?Iter: {integer('step')} "
            rf"Time\({integer('count')} iters\): {number('step_seconds')}s\b",
            (Field(printed.LOSS, "Loss"),),
            (printed.RANK_INTERVAL,),
        ),
    ),
    throughput_metrics=("step_seconds",),
    merge=Merge.SLOWEST,
    steps="steps since the start",
    traps=("the time covers all steps since the last line and is divided by their number",),
    facts=(
        Fact("steps_planned", r"max_iter\s*[:=]\s*(\d+)"),
        Fact("devices_per_node", r"gpu_num_per_node\s*[:=]\s*(\d+)"),
        Fact("nodes", r"num_nodes\s*[:=]\s*(\d+)"),
        Fact("global_batch", r"batchsize\s*[:=]\s*(\d+)"),
    ),
)

FORMATS = (DLLOGGER, NVIDIA_DLL, HUGECTR)
