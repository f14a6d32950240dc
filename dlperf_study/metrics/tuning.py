"""Observed number format, loss scaling, autotuning and compilation."""

from collections.abc import Callable, Iterator
from typing import Any

from dlperf_study.core.errors import Diagnostic
from dlperf_study.metrics import metric
from dlperf_study.metrics.throughput import slowest_training
from dlperf_study.records.run import Run
from dlperf_study.study.configuration import PARAMETERS

NO_COMPILER = PARAMETERS["compiler"].default


def compile_seconds(run: Run) -> float | None:
    """Return the time of compiled first steps; None without a compiler."""
    seconds: list[float] = [log.facts["first_steps_seconds"] for log in run.ranks if "first_steps_seconds" in log.facts]
    is_complete = run.configuration.compiler != NO_COMPILER and len(seconds) == len(run.ranks)
    return max(seconds) if is_complete else None


def _observed(name: str) -> Callable[[Run], Any]:
    return lambda run: run.ranks[0].facts.get("tuning", {}).get(name)


def skipped_steps(run: Run) -> Iterator[Diagnostic]:
    """Gradient overflow left out updates of measured steps."""
    window = slowest_training(run)
    if window.skipped_steps:
        skipped = f"{window.skipped_steps} of {window.steps} measured steps skipped their update"
        remedy = "use a longer warm-up, which finds the scale"
        if run.configuration.loss_scaling == "static":
            remedy = f"the constant {run.ranks[0].end.get('loss_scale'):g} is too large"
        yield Diagnostic("skipped_steps", f"{skipped}: their gradients overflowed; {remedy}")


METRICS = (
    metric.Metric(
        "compile_seconds",
        "Compilation",
        "first step of a compiled model, compilation or cache load included; slowest rank",
        unit="s",
        value=compile_seconds,
        summary=metric.Summary.POSITIVE_MEAN,
        missing=("it was not compiled, or a rank did not record how long that took",),
    ),
    metric.text(
        "computed_in",
        "Computed in",
        "observed dtype of the first convolution or matrix product",
        metric.R,
        value=lambda run: run.ranks[0].facts.get("computed_in"),
    ),
    metric.Metric(
        "loss_scale",
        "Loss scale",
        "loss scale at the end of training",
        metric.R,
        value=lambda run: run.ranks[0].end.get("loss_scale"),
    ),
    metric.whole_number(
        "skipped_steps",
        "Skipped steps",
        "measured steps skipped for gradient overflow",
        metric.R,
        unit="steps",
        value=lambda run: slowest_training(run).skipped_steps,
        pages=metric.THROUGHPUT_PAGES,
        diagnose=skipped_steps,
    ),
    metric.text(
        "observed_memory_format",
        "Observed memory format",
        "observed output layout of the first convolution: nchw or nhwc",
        metric.R,
        value=_observed("memory_format"),
    ),
    metric.text(
        "observed_cudnn_autotune",
        "Observed cuDNN autotuning",
        "enabled or disabled, as the library reports; GPUs only",
        metric.R,
        value=_observed("cudnn_autotune"),
    ),
    metric.text(
        "observed_fused_optimizer",
        "Observed parameter update",
        "fused, foreach or for_loop, as the optimizer reports",
        metric.R,
        value=_observed("fused_optimizer"),
    ),
)
