"""llm.c: its console, and its main.log, which has no time."""

from dlperf_study.logs.format import (
    JOB_STEP,
    LINE_START,
    LOSS,
    VALIDATION,
    Field,
    Format,
    Line,
    Merge,
    Metric,
    MetricScope,
    integer,
)

_TOKENS = Metric("smoothed_throughput", "tokens/s", MetricScope.JOB, has_thousands=True)

FORMAT = Format(
    name="llm_c",
    title="llm.c",
    program="karpathy/llm.c, train_gpt2.cu",
    lines=(
        Line(
            (" tok/s",),
            rf"{LINE_START}step\s+{integer('step')}/\d+ \| (?:train )?loss ",
            (
                Field(LOSS, "loss", r"\s+"),
                Field(JOB_STEP.in_milliseconds, "| lr ", r"\s*\S+ \| "),
                Field(_TOKENS, " | ", r"(?=[\d.,]+ tok/s)"),
            ),
        ),
        Line((" trl:",), rf"^s:{integer('step')} ", (Field(LOSS, "trl"),)),
        Line((" tel:",), rf"^s:{integer('step')} ", (Field(LOSS, "tel"),), window=VALIDATION),
    ),
    rates=("step_seconds",),
    merge=Merge.ONE,
    steps="steps since the start",
    traps=("tok/s is a smoothed rate of the job: the time of the step is used instead", "main.log has no time"),
    why_no_rate="main.log of llm.c has no time; what it prints on the console has",
)
