"""FLOP/s of a device, compared with its share of the peak and with the rate or time it comes from."""

from collections.abc import Iterator
from fractions import Fraction
from statistics import median

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.limits import peak_of, required_flops, work_of
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity
from dlperf_study.wording import counted

SHARE, FLOPS, STEP = "mfu", "device_flops", "step_seconds"
#: How far the computed FLOPs of a sample may be from each other for one network.
NEAR = 0.01
_PEAK = "the share may be of another peak than the one assumed"
_COUNT = "FLOPs may be counted in another way: with recomputed activations, without the vocabulary"


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every share of a peak, and for the FLOPs of a sample of every network of a source."""
    for share in results.of(SHARE):
        flops, rate = results.at_same_point(share, FLOPS), results.at_same_point(share, THROUGHPUT)
        if flops is not None:
            yield _compare_with_flops(share, flops)
        elif rate is not None:
            yield _compare_with_rate(share, rate)
    for flops_of_samples in _flops_by_network(results).values():
        if len(flops_of_samples) > 1:
            yield _compare_rows(flops_of_samples)


def _compare_with_flops(share: ResultCell, flops: ResultCell) -> AuditDiagnostic | None:
    peak = peak_of(share)
    if peak is None:
        return None
    low, high = flops.printed.bounds()
    if share.printed.overlaps(low / Fraction(peak.flops), high / Fraction(peak.flops)):
        return None
    reached, peak_teraflops = flops.value / 1e12, peak.flops / 1e12
    expected = f"{reached:.4g} of {peak_teraflops:.4g} TFLOP/s ({peak.source}) are {reached / peak_teraflops:.4g}"
    return AuditDiagnostic(Severity.ERROR, (share, flops), f"{expected}, printed {share.text}", (_PEAK,))


def _compare_with_rate(share: ResultCell, rate: ResultCell) -> AuditDiagnostic | None:
    peak, work = peak_of(share), work_of(rate, None)
    if peak is None or work is None or not share.get("flops_per_sample") or not rate.world_size:
        return None
    expected = required_flops(rate, work) / peak.flops
    if share.printed.overlaps(Fraction(expected), Fraction(expected)):
        return None
    formula = f"{rate.text} samples/s × {work.flops:.4g} FLOP / {rate.world_size} / {peak.flops:.4g} = {expected:.4g}"
    return AuditDiagnostic(Severity.ERROR, (share, rate), f"{formula}, printed {share.text}", (_PEAK, _COUNT))


def _flops_by_network(results: Results) -> dict[tuple[str, str], dict[ResultCell, float]]:
    """Return the FLOPs of a sample by the cell they are computed from, for each source and network."""
    networks: dict[tuple[str, str], dict[ResultCell, float]] = {}
    for flops in results.of(FLOPS):
        seconds, batch = results.at_same_point(flops, STEP), flops.get("global_batch")
        if seconds is None or not batch or not flops.world_size:
            continue
        if flops.printed.is_positive and seconds.printed.is_positive:
            network = str(flops.get("source")), str(flops.get("model"))
            flops_of_sample = flops.value * flops.world_size * seconds.value / batch
            networks.setdefault(network, {})[flops] = flops_of_sample
    return networks


def _compare_rows(flops_of_samples: dict[ResultCell, float]) -> AuditDiagnostic | None:
    """Find the rows with other FLOPs of a sample of the same network, beyond what rounding explains."""
    middle = median(flops_of_samples.values())
    different, rows = [], []
    for cell, flops in flops_of_samples.items():
        allowed = NEAR + float(cell.printed.step / cell.printed.exact)
        if abs(flops / middle - 1) > allowed:
            different.append(cell)
            rows.append(f"{cell.text} on {counted(cell.world_size or 0, 'device')} ({flops:.4g} FLOP)")
    if not different:
        return None
    formula = f"FLOP/s of a device × devices × step / batch is the FLOPs of a sample: {middle:.4g} in most rows"
    return AuditDiagnostic(Severity.ERROR, tuple(different), f"{formula}, but {', '.join(rows)}", (_COUNT,))


CHECK = Check(
    "Do FLOP/s follow from rates, and shares of a peak from FLOP/s?", "shares of a peak, and networks", examine
)
