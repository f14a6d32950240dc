"""Formats of programs that train language models."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dlperf_study.logs import printed
from dlperf_study.logs.format import Fact, Field, Format, JsonLine, JsonRecord, Line, Merge
from dlperf_study.logs.printed import LINE_START, MetricScope, PrintedMetric, integer, number

#: The global batch in samples, divided by the milliseconds of an iteration.
_MEGATRON_THROUGHPUT = PrintedMetric(
    printed.JOB_THROUGHPUT.name, "samples/s", MetricScope.JOB, factor=1000.0, per="step_seconds"
)

_MEGATRON_HEAD = (
    rf"\biteration\s+{integer('step')}/\s*\d+ \|.*?elapsed time per iteration \(ms\): {number('step_seconds')}"
    rf"(?=[ /|]).*?global batch size:\s*{number('throughput')}"
)
_MEGATRON_NEEDLES = ("elapsed time per iteration (ms): ",)

MEGATRON_LM = Format(
    name="megatron_lm",
    title="Megatron-LM",
    program="NVIDIA/Megatron-LM, megatron/training/training.py",
    lines=(
        Line(
            _MEGATRON_NEEDLES,
            rf"{_MEGATRON_HEAD}(?=.*?\blm loss: {number('loss')})",
            (),
            (printed.JOB_STEP.in_milliseconds, _MEGATRON_THROUGHPUT, printed.LOSS),
        ),
        # Iterations that are skipped, until the scale of the loss fits, have none.
        Line(
            _MEGATRON_NEEDLES,
            rf"{_MEGATRON_HEAD}(?!.*?\blm loss: )",
            (),
            (printed.JOB_STEP.in_milliseconds, _MEGATRON_THROUGHPUT),
        ),
    ),
    throughput_metrics=("throughput",),
    merge=Merge.ONE,
    steps="iterations since the start, from 1; a line is of those since the line before",
    traps=(
        "the time is a mean since the previous line, skipped iterations included",
        "the global batch may grow during training",
    ),
)

#: The global batch in samples, divided by the seconds of a step.
_NEMO_THROUGHPUT = PrintedMetric(printed.JOB_THROUGHPUT.name, "samples/s", MetricScope.JOB, per="step_seconds")

NEMO = Format(
    name="nemo",
    title="NeMo",
    program="NVIDIA/NeMo 2, lightning/pytorch/callbacks/progress_printer.py",
    lines=(
        Line(
            ("train_step_timing in s: ",),
            rf"Training epoch \d+, iteration \d+/\d+ \|(?=.*?\bglobal_batch_size: {number('throughput')})"
            rf"(?=.*?\bglobal_step: {integer('step')})(?=.*?\breduced_train_loss: {number('loss')})?"
            rf".*?\btrain_step_timing in s: {number('step_seconds')}",
            captured=(printed.JOB_STEP, _NEMO_THROUGHPUT, printed.LOSS),
        ),
    ),
    throughput_metrics=("throughput",),
    merge=Merge.COPIES,
    steps="steps since the start, from 0",
    traps=("the iteration restarts with every epoch, the global step continues",),
)

TORCHTITAN = Format(
    name="torchtitan",
    title="torchtitan",
    program="pytorch/torchtitan, components/metrics.py",
    lines=(
        Line(
            ("tps: ",),
            rf"\bstep:\s+{integer('step')}\s+(?=loss:)",
            (Field(printed.LOSS, "loss"), Field(replace(printed.DEVICE_TOKENS, has_thousands=True), "tps")),
        ),
    ),
    throughput_metrics=("throughput",),
    merge=Merge.COPIES,
    steps="steps since the start, from 1; a line is of those since the line before",
    traps=(
        "tps is per device; all ranks may print it",
        "the first step contains the start-up",
    ),
)

MAXTEXT = Format(
    name="maxtext",
    title="MaxText",
    program="AI-Hypercomputer/maxtext, metric_logger.py",
    lines=(
        Line(
            ("completed step: ",),
            rf"completed step: {integer('step')}, ",
            (
                Field(printed.JOB_STEP, "seconds"),
                Field(printed.DEVICE_TOKENS, "Tokens/s/device"),
                Field(printed.LOSS, " loss"),
            ),
        ),
        # While the batch grows, lines may have no time.
        Line(("completed step: ",), r"^(?!.*seconds: )"),
    ),
    throughput_metrics=("throughput", "step_seconds"),
    merge=Merge.COPIES,
    steps="steps since the start, from 0",
    traps=(
        "steps are queued: steps 0 to 4 are skipped",
        "tokens are per device, padding included; every host prints them",
    ),
    first_true_step=5,
)


def _fairseq_record(row: Mapping[str, Any]) -> JsonRecord:
    """Return the numbers of an interval; the first has no throughput."""
    values = {printed.LOSS.name: float(row["loss"])}
    if float(row["wps"]) > 0:
        values[printed.JOB_THROUGHPUT.name] = float(row["wps"]) * float(row["bsz"]) / float(row["wpb"])
    return JsonRecord(values, int(row["epoch"]), int(row["num_updates"]))


FAIRSEQ = Format(
    name="fairseq",
    title="fairseq",
    program="facebookresearch/fairseq, logging/progress_bar.py",
    lines=(
        JsonLine(
            ("| train_inner | ", "[train_inner][INFO] - "),
            _fairseq_record,
            metrics=(printed.JOB_THROUGHPUT, printed.LOSS),
        ),
        Line(
            ("wps=",),
            rf"\btrain_inner \| epoch \d+:.*?\bloss={number('loss')},.*?\bwps={number('token_throughput')}, "
            rf".*?\bnum_updates={integer('step')}",
            captured=(printed.LOSS, printed.JOB_TOKENS),
        ),
    ),
    throughput_metrics=("throughput", "token_throughput"),
    merge=Merge.ONE,
    steps="updates since the start; a line is of those since the line before",
    facts=(Fact("world_size", r"training on (\d+) devices"),),
    traps=(
        "wps counts tokens of all workers; samples are wps × bsz / wpb",
        "versions of 2019 print a mean since the start",
    ),
)

NANOGPT = Format(
    name="nanogpt",
    title="nanoGPT",
    program="karpathy/nanoGPT, train.py",
    lines=(
        Line(
            ("iter ",),
            rf"\biter {integer('step')}:(?= loss )",
            (Field(printed.LOSS, "loss"), Field(printed.JOB_STEP.in_milliseconds, "time")),
        ),
    ),
    throughput_metrics=("step_seconds",),
    merge=Merge.ONE,
    steps="iterations since the start, from 0; a line is of that one iteration",
    traps=(
        "iterations with an evaluation contain it; the first contains compilation",
        "the batch is batch_size × gradient_accumulation_steps, all devices",
    ),
)

_TRAIN_TIME = Field(printed.ELAPSED.in_milliseconds, "train_time")
_MODDED_POSITION = rf"\bstep:{integer('step')}/\d+ "

MODDED_NANOGPT = Format(
    name="modded_nanogpt",
    title="modded-nanogpt",
    program="KellerJordan/modded-nanogpt, train_gpt*.py, and openai/parameter-golf, train_gpt.py",
    lines=(
        Line(("train_loss:",), _MODDED_POSITION, (Field(printed.LOSS, "train_loss"), _TRAIN_TIME)),
        Line(("val_loss:",), _MODDED_POSITION, (Field(printed.LOSS, "val_loss"), _TRAIN_TIME), training=False),
        # Since 2025 without a loss.
        Line(("train_time:",), rf"{_MODDED_POSITION}(?=train_time:)", (_TRAIN_TIME,)),
    ),
    throughput_metrics=("step_seconds",),
    merge=Merge.ONE,
    steps="steps since the start",
    traps=(
        "step_avg is a mean since the start or step 10: train_time differences are used",
        "the clock stops during validation",
        "some records grow the batch or sequence during training",
    ),
)

_LLM_C_TOKENS = PrintedMetric("smoothed_throughput", "tokens/s", MetricScope.JOB, has_thousands=True)

LLM_C = Format(
    name="llm_c",
    title="llm.c",
    program="karpathy/llm.c, train_gpt2.cu",
    lines=(
        Line(
            (" tok/s",),
            rf"{LINE_START}step\s+{integer('step')}/\d+ \| (?:train )?loss ",
            (
                Field(printed.LOSS, "loss", r"\s+"),
                Field(printed.JOB_STEP.in_milliseconds, "| lr ", r"\s*\S+ \| "),
                Field(_LLM_C_TOKENS, " | ", r"(?=[\d.,]+ tok/s)"),
            ),
        ),
        Line((" trl:",), rf"^s:{integer('step')} ", (Field(printed.LOSS, "trl"),)),
        Line((" tel:",), rf"^s:{integer('step')} ", (Field(printed.LOSS, "tel"),), training=False),
    ),
    throughput_metrics=("step_seconds",),
    merge=Merge.ONE,
    steps="steps since the start",
    traps=(
        "tok/s is smoothed: the step time is used",
        "main.log has no time",
    ),
    no_throughput_reason="main.log of llm.c has no time; what it prints on the console has",
)

FORMATS = (MEGATRON_LM, NEMO, TORCHTITAN, MAXTEXT, FAIRSEQ, NANOGPT, MODDED_NANOGPT, LLM_C)
