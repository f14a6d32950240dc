"""Network of a run and utilisation of its devices' peak."""

from collections.abc import Iterator
from typing import cast

from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.metrics import metric
from dlperf_study.metrics.communication import nothing_to_exchange
from dlperf_study.metrics.metric import Dtype, Gap, Metric, Summary
from dlperf_study.metrics.throughput import throughput
from dlperf_study.records.run import Run
from dlperf_study.study.device_peaks import FROM_CLUSTER_FILE, known_peak, peak_of_file
from dlperf_study.study.parallel_parameters import BLOCKS_AGAIN
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
    peak = None
    if number_format:
        peak = known_peak(facts["device_name"], number_format)
    if peak is None:
        return None, None
    units = 1
    if peak.per_thread:
        units = run.configuration.threads_per_device
    return peak.flops * units, peak.source


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
    program = run.facts.get("program")
    return run.ranks[0].facts.get("flops_per_sample") or (program["flops_per_sample"] if program else None)


def hardware_flops_per_sample(run: Run) -> float | None:
    """Return the FLOPs of a sample with recomputation, or None."""
    return cast(float | None, run.ranks[0].facts.get("hardware_flops_per_sample"))


def exchanged_gradients(run: Run) -> int | None:
    """Return rank 0's gradient bytes per step; None for a sharded model."""
    if run.configuration.tensor_parallel > 1 or run.configuration.pipeline_parallel > 1:
        return None
    gradient_bytes: int | None = run.ranks[0].facts.get("gradient_bytes")
    return gradient_bytes


def _gradients_of_part(gap: Gap) -> str:
    degrees = gap.runs["tensor_parallel"].fillna(1) * gap.runs["pipeline_parallel"].fillna(1)
    if (degrees > 1).all():
        return "the model is divided: what is exchanged is in the bytes of each kind of collectives"
    return ""


def _nothing_again(gap: Gap) -> str:
    is_again = gap.runs["recompute"] == BLOCKS_AGAIN
    if is_again.any():
        return ""
    return "it computes no activations again, so that HFU is MFU"


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
    severity = None if share is None else severity_above_peak(share, run.configuration.samples == IMAGES)
    if severity is not None:
        peak, source = device_peak(run)
        is_wrong = f"the peak of a device, {peak:.4g} FLOP/s (from {source}), or the FLOPs of the model are wrong"
        explanation = is_wrong if severity is Severity.ERROR else f"{WINOGRAD}, or {is_wrong}"
        yield Diagnostic(name, f"{share:.2f} is above 1: {explanation}", severity)


_NO_PEAK_OR_FLOPS = "the device's peak or the model's FLOPs are not known"

METRICS = (
    Metric(
        "parameters",
        "Parameters",
        "trainable parameters on rank 0; with a sharded classifier, its shard",
        metric.RCP,
        dtype=Dtype.OPTIONAL_INTEGER,
        value=lambda run: run.ranks[0].facts.get("parameters"),
        summary=Summary.FACT,
        same_within="identity",
    ),
    Metric(
        "gradient_bytes",
        "Gradient",
        "bytes of gradients rank 0 exchanges in a step",
        metric.RC,
        unit="bytes",
        dtype=Dtype.OPTIONAL_INTEGER,
        value=exchanged_gradients,
        summary=Summary.FACT,
        missing=(nothing_to_exchange, _gradients_of_part),
        pages=(metric.COMMUNICATION,),
    ),
    Metric(
        "flops_per_sample",
        "FLOPs per sample",
        "forward and backward of one sample",
        metric.RC,
        unit="FLOP",
        value=flops_per_sample,
        summary=Summary.FACT,
        decimals=9,
    ),
    Metric(
        "hardware_flops_per_sample",
        "Hardware FLOPs per sample",
        "FLOPs per sample, and those of activations that are computed again: one more forward pass of the blocks, "
        "without their last matrix where the backward pass does not need what it gives",
        metric.RC,
        unit="FLOP",
        value=hardware_flops_per_sample,
        summary=Summary.FACT,
        decimals=9,
        missing=(_nothing_again,),
    ),
    Metric(
        "device_peak_flops",
        "Device peak",
        "peak of one device in the number format that was computed in, without sparsity: as in the cluster "
        "file, else in the data sheet of the device; missing if in neither",
        metric.R,
        unit="FLOP/s",
        value=lambda run: device_peak(run)[0],
    ),
    Metric(
        "device_peak_source",
        "Peak from",
        "the cluster file, or the data sheet of the device",
        metric.R,
        dtype=Dtype.STRING,
        value=lambda run: device_peak(run)[1],
    ),
    Metric(
        "mfu",
        "MFU",
        "throughput × FLOPs per sample / (devices × device peak); missing if unknown",
        metric.RC,
        value=model_flops_utilisation,
        summary=Summary.GEOMETRIC,
        limits=(0.0, 1.0),
        missing=(metric.only_in_tokens, _NO_PEAK_OR_FLOPS),
        pages=(metric.SCALING, metric.AUDIT),
        diagnose=impossible_utilisation,
    ),
    Metric(
        "hfu",
        "HFU",
        "throughput × hardware FLOPs per sample / (devices × device peak): what the devices do, with the activations "
        "that they compute again, and not what the training needs, which is MFU; missing if unknown",
        metric.RC,
        value=hardware_flops_utilisation,
        summary=Summary.GEOMETRIC,
        limits=(0.0, 1.0),
        missing=(_nothing_again, metric.only_in_tokens, _NO_PEAK_OR_FLOPS),
        pages=(metric.SCALING, metric.AUDIT),
        diagnose=impossible_hardware_utilisation,
    ),
)
