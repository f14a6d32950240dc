"""The progress bar of Keras' fit."""

from dlperf_study.logs.format import LINE_START, LOSS, Field, Format, Line, Merge, Metric, MetricScope, integer, number


def _step(factor: float) -> Metric:
    return Metric("step_seconds", "s", MetricScope.JOB, factor, cumulative=True, restarts_each_epoch=True)


def _progress(unit: str, factor: float) -> Line:
    """Return the line of a progress bar with this unit of a step, of a bar of either style."""
    bar = r"(?:\[[=>.]+\]|[━╸╺ ]+|-)"
    head = rf"\b{integer('step')}/\d+ {bar}.*?\s{number('step_seconds')}{unit}/(?:step|batch)"
    return Line((f"{unit}/step", f"{unit}/batch"), head, (Field(LOSS, " loss"),), (_step(factor),))


FORMAT = Format(
    name="keras_fit",
    title="Keras",
    program="keras-team/keras, src/utils/progbar.py, and tf.keras",
    lines=(
        Line(("Epoch ",), rf"{LINE_START}Epoch {integer('epoch')}/\d+\s*$"),
        _progress("ms", 1e-3),
        _progress("us", 1e-6),
        _progress(r"s", 1.0),
    ),
    rates=("step_seconds",),
    merge=Merge.ONE,
    steps="batches of the epoch; the last line of an epoch counts",
    traps=(
        "the time of a step is a mean since the epoch began, rounded to whole milliseconds: 1 ms may be 0.5 or 1.5",
        "the last line of an epoch contains its validation; the first step, which compiles, is left out",
        "the batch is that of all replicas",
        "bars of evaluate and predict look the same: they are after the last line of an epoch, or before the first",
    ),
    carries_epochs=True,
)
