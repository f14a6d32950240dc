"""The share of its devices' peak that a run reaches, and what a share above 1 means."""

from dlperf_study.analysis.throughput import throughput
from dlperf_study.diagnostic import Severity
from dlperf_study.evidence.run import Run
from dlperf_study.study.device_peaks import FROM_CLUSTER_FILE, known_peak, peak_of_file

#: How many times fewer multiplications a convolution may take than its definition: Winograd's F(4×4, 3×3) saves 4
#: (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016).
WINOGRAD_FACTOR = 4.0
WINOGRAD = "3×3 convolutions by Winograd's algorithm take up to 4 times fewer multiplications than are counted"


def utilisation_of(run: Run) -> dict[str, float | str | None]:
    """Return the columns on the peak of a completed run's devices."""
    peak, source = device_peak(run)
    return {"device_peak_flops": peak, "device_peak_source": source, "mfu": model_flops_utilisation(run)}


def device_peak(run: Run) -> tuple[float | None, str | None]:
    """Return the FLOP/s of one device in the number format that was computed in, and who says so; None: unknown.

    The cluster file comes first, then the data sheet of the device that reported itself. A run that does not say what
    it computed in, as older ones, has the one peak of its cluster file or none.
    """
    facts, number_format = run.facts["cluster"], run.ranks[0].facts.get("computed_in")
    if from_file := peak_of_file(facts["device_peak_flops"], number_format):
        return from_file, FROM_CLUSTER_FILE
    peak = known_peak(facts["device_name"], number_format) if number_format else None
    if peak is None:
        return None, None
    units = run.configuration.threads_per_device if peak.per_thread else 1
    return peak.flops * units, peak.source


def model_flops_utilisation(run: Run) -> float | None:
    """Return throughput × FLOPs per sample / (devices × peak), or None if FLOPs or peak are unknown.

    Formula: Chowdhery et al., "PaLM" (2022), appendix B.
    """
    flops, (peak, _) = run.ranks[0].facts["flops_per_sample"], device_peak(run)
    if not flops or not peak:
        return None
    return throughput(run) * float(flops) / (run.configuration.world_size * peak)


def severity_above_peak(share: float, is_convolutional: bool = True) -> Severity | None:
    """Return how wrong it is that a network takes this share of its devices' peak; None up to 1.

    Above 1 it is a warning for a convolutional network as far as Winograd's algorithm may save, and else an error.
    """
    if share <= 1:
        return None
    is_possible = is_convolutional and share <= WINOGRAD_FACTOR
    return Severity.WARNING if is_possible else Severity.ERROR
