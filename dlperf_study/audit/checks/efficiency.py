"""Efficiency beside speedup: one is the other × baseline devices / devices."""

from collections.abc import Iterator
from fractions import Fraction

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import EFFICIENCY, SPEEDUP, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every efficiency that stands beside a speedup over the same baseline."""
    for efficiency in results.of(EFFICIENCY):
        speedup, devices = results.beside(efficiency, SPEEDUP), results.baseline_devices(efficiency)
        if speedup and devices and efficiency.world_size and _have_one_baseline(results, efficiency, speedup):
            yield _examined(efficiency, speedup, devices)


def _have_one_baseline(results: Results, one: ResultCell, other: ResultCell) -> bool:
    """Say whether two ratios are relative to one rate; where none is printed, to one number of devices."""
    same_rate = results.baseline_of(one) is results.baseline_of(other)
    return same_rate and results.baseline_devices(one) == results.baseline_devices(other)


def _examined(efficiency: ResultCell, speedup: ResultCell, devices: int) -> AuditDiagnostic | None:
    share = Fraction(devices, efficiency.world_size or 1)
    low, high = (bound * share for bound in speedup.printed.bounds(truncated=True))
    if efficiency.printed.meets(low, high):
        return None
    exact = float(speedup.printed.exact * share)
    said = f"{speedup.text} × {devices} / {efficiency.world_size} = {exact:.4g}, printed {efficiency.text}"
    why = "they may be relative to different baselines, or to another number of devices"
    return AuditDiagnostic(Severity.ERROR, (efficiency, speedup), said, (why,))


CHECK = Check("Do efficiency and speedup say the same?", "efficiencies beside a speedup", examine)
