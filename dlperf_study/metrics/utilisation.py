"""Network of a run and utilisation of its devices' peak."""

from collections.abc import Iterator
from typing import Any, cast

from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.metrics import communication, metric
from dlperf_study.metrics.throughput import throughput
from dlperf_study.records.run import Run
from dlperf_study.study.device_peaks import FROM_CLUSTER_FILE, known_peak, peak_of_file
from dlperf_study.study.parallel_parameters import FULL_CHECKPOINTING
from dlperf_study.study.parameter import IMAGES

#: How many times fewer multiplications a convolution may take than its definition: Winograd's F(4×4, 3×3) saves 4
#: (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016).
WINOGRAD_FACTOR = 4.0
WINOGRAD = "3×3 convolutions by Winograd's algorithm take up to 4 times fewer multiplications than are counted"


def device_peak(run: Run) -> tuple[float | None, str | None]:
    """Return FLOP/s and source of one device's peak, or None.

    The cluster file comes first, then the data sheet. Without a recorded number format only the single peak of the
    cluster file counts.
    """
    facts, number_format = run.facts["cluster"], run.ranks[0].facts.get("computed_in")
    if from_file := peak_of_file(facts["device_peak_flops"], number_format):
        return from_file, FROM_CLUSTER_FILE
    if not number_format or not (peak := known_peak(facts["device_name"], number_format)):
        return None, None
    return peak.flops * (run.configuration.threads_per_device if peak.per_thread else 1), peak.source


def model_flops_utilisation(run: Run) -> float | None:
    """Return MFU: throughput × FLOPs per sample / (devices × peak) (PaLM, 2022)."""
    return _share_of_peak(run, flops_per_sample(run))


def hardware_flops_utilisation(run: Run) -> float | None:
    """Return HFU, with recomputed FLOPs (PaLM, 2022); None without recomputation."""
    return _share_of_peak(run, hardware_flops_per_sample(run))


def _share_of_peak(run: Run, flops: float | None) -> float | None:
    peak, _ = device_peak(run)
    samples = throughput(run)
    if not flops or not peak or not samples:
        return None
    return samples * flops / (run.configuration.world_size * peak)


def flops_per_sample(run: Run) -> float | None:
    """Return the FLOPs of a sample, forward and backward, or None."""
    program = cast(dict[str, Any], run.facts.get("program") or {})
    return run.ranks[0].facts.get("flops_per_sample") or program.get("flops_per_sample")


def hardware_flops_per_sample(run: Run) -> float | None:
    """Return the FLOPs of a sample with recomputation, or None."""
    return cast(float | None, run.ranks[0].facts.get("hardware_flops_per_sample"))


def communicated_gradients(run: Run) -> int | None:
    """Return rank 0's gradient bytes per step; None for a sharded model."""
    if run.configuration.tensor_parallel > 1 or run.configuration.pipeline_parallel > 1:
        return None
    gradient_bytes: int | None = run.ranks[0].facts.get("gradient_bytes")
    return gradient_bytes


def severity_above_peak(share: float, is_convolutional: bool) -> Severity | None:
    """Return the severity of a utilisation above 1, or None.

    A warning for a convolutional network as far as Winograd's algorithm may save, else an error.
    """
    if share <= 1:
        return None
    is_possible = is_convolutional and share <= WINOGRAD_FACTOR
    if is_possible:
        return Severity.WARNING
    return Severity.ERROR


def impossible_utilisation(run: Run) -> Iterator[Diagnostic]:
    """The utilisation is above 1: more FLOPs than the peak."""
    yield from _above_peak(run, "mfu", model_flops_utilisation(run))


def impossible_hardware_utilisation(run: Run) -> Iterator[Diagnostic]:
    """The utilisation with recomputation is above 1."""
    yield from _above_peak(run, "hfu", hardware_flops_utilisation(run))


def _above_peak(run: Run, name: str, share: float | None) -> Iterator[Diagnostic]:
    is_convolutional = run.configuration.samples == IMAGES
    if share is not None and (severity := severity_above_peak(share, is_convolutional)):
        peak, source = device_peak(run)
        is_wrong = f"the peak of a device, {peak:.4g} FLOP/s (from {source}), or the FLOPs of the model are wrong"
        explanation = is_wrong if severity is Severity.ERROR else f"{WINOGRAD}, or {is_wrong}"
        yield Diagnostic(name, f"{share:.2f} is above 1: {explanation}", severity)


_divided_gradients = metric.reason_if(
    lambda gap: (gap.runs["tensor_parallel"].fillna(1) * gap.runs["pipeline_parallel"].fillna(1) > 1).all(),
    "the model is divided: what is communicated is in the bytes of each kind of collectives",
)
_nothing_again = metric.reason_if(
    lambda gap: not (gap.runs["activation_checkpointing"] == FULL_CHECKPOINTING).any(),
    "it computes no activations again, so that HFU is MFU",
)
_NO_PEAK_OR_FLOPS = "the device's peak or the model's FLOPs are not known"

METRICS = (
    metric.whole_number(
        "parameters",
        "Parameters",
        "trainable parameters on rank 0; sharded classifier: its shard",
        metric.RCP,
        value=lambda run: run.ranks[0].facts.get("parameters"),
        summary=metric.Summary.FACT,
        same_within="configuration_id",
    ),
    metric.whole_number(
        "gradient_bytes",
        "Gradient",
        "gradient bytes that rank 0 communicates per step",
        unit="bytes",
        value=communicated_gradients,
        summary=metric.Summary.FACT,
        missing=(communication.nothing_to_communicate, _divided_gradients),
        pages=(metric.COMMUNICATION,),
    ),
    metric.Metric(
        "flops_per_sample",
        "FLOPs per sample",
        "forward and backward FLOPs of a sample",
        unit="FLOP",
        value=flops_per_sample,
        summary=metric.Summary.FACT,
        decimals=9,
    ),
    metric.Metric(
        "hardware_flops_per_sample",
        "Hardware FLOPs per sample",
        "FLOPs per sample with activation recomputation",
        unit="FLOP",
        value=hardware_flops_per_sample,
        summary=metric.Summary.FACT,
        decimals=9,
        missing=(_nothing_again,),
    ),
    metric.Metric(
        "device_peak_flops",
        "Device peak",
        "dense device peak for the computed dtype; cluster file, else data sheet",
        metric.R,
        unit="FLOP/s",
        value=lambda run: device_peak(run)[0],
    ),
    metric.text(
        "device_peak_source",
        "Peak from",
        "cluster file or data sheet",
        metric.R,
        value=lambda run: device_peak(run)[1],
    ),
    metric.Metric(
        "mfu",
        "MFU",
        "throughput × FLOPs per sample / (devices × device peak)",
        value=model_flops_utilisation,
        summary=metric.Summary.GEOMETRIC,
        limits=(0.0, 1.0),
        missing=(metric.only_in_tokens, _NO_PEAK_OR_FLOPS),
        pages=(metric.SCALING, metric.AUDIT),
        diagnose=impossible_utilisation,
    ),
    metric.Metric(
        "hfu",
        "HFU",
        "MFU with activation recomputation: throughput × hardware FLOPs per sample / (devices × device peak)",
        value=hardware_flops_utilisation,
        summary=metric.Summary.GEOMETRIC,
        limits=(0.0, 1.0),
        missing=(_nothing_again, metric.only_in_tokens, _NO_PEAK_OR_FLOPS),
        pages=(metric.SCALING, metric.AUDIT),
        diagnose=impossible_hardware_utilisation,
    ),
)
