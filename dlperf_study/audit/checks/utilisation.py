"""FLOP/s of a device, beside its share of the peak and beside the rate or time it comes from."""

from collections.abc import Iterator
from fractions import Fraction
from statistics import median

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.limits import needed, peak_of, work_of
from dlperf_study.audit.result_cell import THROUGHPUT, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity
from dlperf_study.wording import counted

SHARE, FLOPS, STEP = "mfu", "device_flops", "step_seconds"
#: How far the FLOPs of one sample of the same network may be apart where they are reckoned back.
NEAR = 0.01
_PEAK = "the share may be of another peak than the one assumed"
_COUNT = "FLOPs may be counted in another way: with recomputed activations, without the vocabulary"


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every share of a peak, and for the FLOPs of a sample of every network of a source."""
    for share in results.of(SHARE):
        flops, rate = results.beside(share, FLOPS), results.beside(share, THROUGHPUT)
        if flops is not None:
            yield _of_flops(share, flops)
        elif rate is not None:
            yield _of_rate(share, rate)
    yield from map(_alike, _reckoned_back(results))


def _of_flops(share: ResultCell, flops: ResultCell) -> AuditDiagnostic | None:
    peak = peak_of(share)
    if peak is None or share.printed.meets(*(bound / Fraction(peak.flops) for bound in flops.printed.bounds())):
        return None
    reached, most = flops.value / 1e12, peak.flops / 1e12
    said = f"{reached:.4g} of {most:.4g} TFLOP/s ({peak.source}) are {reached / most:.4g}, printed {share.text}"
    return AuditDiagnostic(Severity.ERROR, (share, flops), said, (_PEAK,))


def _of_rate(share: ResultCell, rate: ResultCell) -> AuditDiagnostic | None:
    peak, work = peak_of(share), work_of(rate, None)
    if peak is None or work is None or not share.get("flops_per_sample") or not rate.world_size:
        return None
    exact = needed(rate, work) / peak.flops
    if share.printed.meets(Fraction(exact), Fraction(exact)):
        return None
    said = f"{rate.text} samples/s × {work.flops:.4g} FLOP / {rate.world_size} / {peak.flops:.4g} = {exact:.4g}"
    return AuditDiagnostic(Severity.ERROR, (share, rate), f"{said}, printed {share.text}", (_PEAK, _COUNT))


def _reckoned_back(results: Results) -> Iterator[dict[ResultCell, float]]:
    """Yield what a sample took in FLOPs, by the cell that says so, for each network of a source."""
    groups: dict[tuple[str, str], dict[ResultCell, float]] = {}
    for flops in results.of(FLOPS):
        seconds, batch = results.beside(flops, STEP), flops.get("global_batch")
        if seconds is not None and batch and flops.world_size and flops.printed.positive and seconds.printed.positive:
            key = str(flops.get("source")), str(flops.get("model"))
            groups.setdefault(key, {})[flops] = flops.value * flops.world_size * seconds.value / batch
    yield from (group for group in groups.values() if len(group) > 1)


def _alike(work: dict[ResultCell, float]) -> AuditDiagnostic | None:
    """Find the cells in which a sample of the same network takes other FLOPs, beyond what their rounding explains."""
    middle = median(work.values())
    allowed = {cell: NEAR + float(cell.printed.step / cell.printed.exact) for cell in work}
    odd = [cell for cell, flops in work.items() if abs(flops / middle - 1) > allowed[cell]]
    if not odd:
        return None
    seen = ", ".join(
        f"{cell.text} on {counted(cell.world_size or 0, 'device')} ({work[cell]:.4g} FLOP)" for cell in odd
    )
    said = (
        f"FLOP/s of a device × devices × step / batch is the FLOPs of a sample: {middle:.4g} in most rows, but {seen}"
    )
    return AuditDiagnostic(Severity.ERROR, tuple(odd), said, (_COUNT,))


CHECK = Check(
    "Do FLOP/s follow from rates, and shares of a peak from FLOP/s?", "shares of a peak, and networks", examine
)
