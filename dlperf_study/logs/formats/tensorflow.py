"""TensorFlow: Keras, the official models, Tensorpack and ElasticDL."""

from itertools import starmap

from dlperf_study.logs import printed
from dlperf_study.logs.format import Fact, Field, Format, Line, Merge
from dlperf_study.logs.printed import LINE_START, MetricScope, PrintedMetric, integer, number


def _keras_bar(unit: str, factor: float) -> Line:
    """Return the line of a progress bar, by its unit of a step."""
    bar = r"(?:\[[=>.]+\]|[━╸╺ ]+|-)"
    head = rf"\b{integer('step')}/\d+ {bar}.*?\s{number('step_seconds')}{unit}/(?:step|batch)"
    step = PrintedMetric("step_seconds", "s", MetricScope.JOB, factor, cumulative=True, restarts_each_epoch=True)
    return Line((f"{unit}/step", f"{unit}/batch"), head, (Field(printed.LOSS, " loss"),), (step,))


KERAS_FIT = Format(
    name="keras_fit",
    title="Keras",
    program="keras-team/keras, src/utils/progbar.py, and tf.keras",
    lines=(
        Line(("Epoch ",), rf"{LINE_START}Epoch {integer('epoch')}/\d+\s*$"),
        _keras_bar("ms", 1e-3),
        _keras_bar("us", 1e-6),
        _keras_bar("s", 1.0),
    ),
    throughput_metrics=("step_seconds",),
    merge=Merge.ONE,
    steps="batches of the epoch; the last line of an epoch counts",
    traps=(
        "step time is a mean since the epoch began, rounded to milliseconds",
        "the last line of an epoch contains validation; the first step is skipped",
        "evaluate and predict print equal bars, after an epoch's last line or before the first",
    ),
    carries_epochs=True,
)

TF2_TIMEHISTORY = Format(
    name="tf2_timehistory",
    title="TensorFlow 2 official models",
    program="tensorflow/models, official/utils/misc/keras_utils.py",
    lines=(
        Line(
            ("TimeHistory: ",),
            rf"TimeHistory: \S+ seconds, {number('throughput')} examples/second "
            rf"between steps \d+ and {integer('step')}(?!\S)",
            captured=(printed.JOB_THROUGHPUT,),
        ),
        Line(
            ("BenchmarkMetric: ",),
            rf"BenchmarkMetric: \{{.*?'(?:global step|num_batches)': ?{integer('step')}",
            (Field(printed.JOB_THROUGHPUT, "'examples_per_second'"),),
        ),
    ),
    throughput_metrics=("throughput",),
    merge=Merge.ONE,
    steps="steps since the start; the number is the last step of the interval",
    traps=(
        "throughput of the job",
        "the first interval contains the start-up",
    ),
    facts=(Fact("batch_size", r"'batch_size': (\d+)"), Fact("devices_per_node", r"'num_gpus': ([1-9]\d*)")),
    # The five lines of 100 steps after the first.
    dlperf_steps=(101, 601),
)

TENSORPACK = Format(
    name="tensorpack",
    title="Tensorpack",
    program="tensorpack/tensorpack, callbacks/summary.py (ThroughputTracker) and callbacks/base.py",
    lines=(
        Line(("(global_step ",), rf"Epoch {integer('epoch')} \(global_step {integer('step')}\) finished"),
        Line(("Throughput (samples/sec)",), "Throughput", (Field(printed.JOB_THROUGHPUT, "(samples/sec)"),)),
    ),
    throughput_metrics=("throughput",),
    merge=Merge.ONE,
    steps="steps since the start, at the end of the epoch",
    traps=(
        "rank 0 prints the job's throughput",
        "the first epoch contains the start-up",
    ),
    facts=(Fact("devices_per_node", r"Number of GPUs found: (\d+)"),),
    carries_steps=True,
)

#: The stages by ElasticDL's key, with our column for each.
_ELASTICDL_STAGES = {
    "task_process": "task_seconds",
    "batch_process": "batch_process_seconds",
    "get_model": "get_model_seconds",
    "report_gradient": "communication_task_seconds",
    "copy_tensor": "tensor_numpy_seconds",
    "apply_gradient": "apply_gradients_seconds",
}


def _elasticdl_line(stage: str, column: str) -> Line:
    head = rf"report_timing\] {stage} time is {number(column)} seconds"
    return Line((f"{stage} time is",), head, captured=(PrintedMetric(column, "s", MetricScope.RANK),))


#: ElasticDL's timing of the stages of a task, printed by every worker at DEBUG.
ELASTICDL = Format(
    name="elasticdl",
    title="ElasticDL stage times",
    program="sql-machine-learning/elasticdl, elasticdl/python/common/timing_utils.py",
    lines=tuple(starmap(_elasticdl_line, _ELASTICDL_STAGES.items())),
    throughput_metrics=(),
    merge=Merge.SUM,
    steps="none: a line is the sum over one task of one worker, in the order of the tasks",
    traps=(
        "prints seconds per task: throughput = workers × batch × steps of a task / task_process",
        "under all-reduce, report_gradient is the gradient communication",
    ),
    synchronous=False,
)

FORMATS = (KERAS_FIT, TF2_TIMEHISTORY, TENSORPACK, ELASTICDL)
