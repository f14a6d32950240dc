"""ElasticDL's timing of the stages of a task, printed by every worker at DEBUG."""

from dlperf_study.logs.format import Format, Line, Merge, Metric, MetricScope, number

#: The stages by ElasticDL's key, with our column for each.
_STAGES = {
    "task_process": "task_seconds",
    "batch_process": "batch_process_seconds",
    "get_model": "get_model_seconds",
    "report_gradient": "exchange_task_seconds",
    "copy_tensor": "tensor_numpy_seconds",
    "apply_gradient": "apply_gradients_seconds",
}


_LINES = []
for stage, column in _STAGES.items():
    head = rf"report_timing\] {stage} time is {number(column)} seconds"
    metric = Metric(column, "s", MetricScope.RANK)
    _LINES.append(Line((f"{stage} time is",), head, captured=(metric,)))

FORMAT = Format(
    name="elasticdl",
    title="ElasticDL stage times",
    program="sql-machine-learning/elasticdl, elasticdl/python/common/timing_utils.py",
    lines=tuple(_LINES),
    rates=(),
    merge=Merge.SUM,
    steps="none: a line is the sum over one task of one worker, in the order of the tasks",
    traps=(
        "seconds of a whole task, not of a step, and no line says how many steps a task has: the rate is workers × "
        "batch × steps of a task / task_process",
        "batch_process, get_model and report_gradient are parts of task_process",
        "under all-reduce report_gradient is the exchange of the gradients",
    ),
    synchronous=False,
)
