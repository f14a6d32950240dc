"""What a published number may be, and in which unit its value is kept."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One kind of number; the name is that of our own column wherever it is the same thing."""

    unit: str
    definition: str


_TASK = "of one worker for one task, which is several steps"
METRICS = {
    "throughput": Metric("samples/s", "samples per second"),
    "speedup": Metric("×", "throughput / that of the baseline"),
    "efficiency": Metric("", "speedup × baseline devices / devices; 1 is linear"),
    "mfu": Metric("", "share of the devices' peak that is used, as its source computes it"),
    "device_flops": Metric("FLOP/s", "floating-point operations of one device per second, as its source counts them"),
    "step_seconds": Metric("s", "time of one step"),
    "batch_per_device": Metric("samples", "samples per step and device"),
    "batches_per_task": Metric("", "batches of one worker in one task"),
    "samples_per_task": Metric("samples", "samples of one worker in one task"),
    "communication_share": Metric("", "share of the time spent on exchange, as its source states it"),
    "computation_to_communication": Metric("", "computation / communication"),
    "task_process_seconds": Metric("s", f"time {_TASK}"),
    "batch_process_seconds": Metric("s", f"time in batches {_TASK}"),
    "get_model_seconds": Metric("s", f"time to fetch the model {_TASK}"),
    "report_gradient_seconds": Metric("s", f"time to average gradients {_TASK}"),
    "tensor_numpy_seconds": Metric("s", f"time to copy gradients off the device {_TASK}"),
    "apply_gradients_seconds": Metric("s", f"time to apply gradients {_TASK}"),
    "forward_backward_seconds": Metric("s", f"time of both passes {_TASK}"),
}
ESTIMATORS = ("median", "mean", "run", "one value", "not stated")
SCOPES = ("job", "rank")
ROLES = ("result", "working")
