"""Efficiency and speedup of the same point: efficiency = speedup × baseline devices / devices."""

from collections.abc import Iterator
from fractions import Fraction

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import EFFICIENCY, SPEEDUP, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

_EXPLANATIONS = ("they may be relative to different baselines, or to another number of devices",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every efficiency that has a speedup over the same baseline."""
    for efficiency, speedup in results.pairs(EFFICIENCY, SPEEDUP):
        devices = results.baseline_devices(efficiency)
        same_baseline = results.baseline_of(efficiency) is results.baseline_of(speedup)
        if devices and efficiency.world_size and same_baseline and devices == results.baseline_devices(speedup):
            yield _compare(efficiency, speedup, devices, efficiency.world_size)


def _compare(
    efficiency: ResultCell, speedup: ResultCell, baseline_devices: int, devices: int
) -> AuditDiagnostic | None:
    share = Fraction(baseline_devices, devices)
    low, high = speedup.printed.bounds(truncated=True)
    if efficiency.printed.overlaps(low * share, high * share):
        return None
    expected = float(speedup.printed.exact * share)
    formula = f"{speedup.text} × {baseline_devices} / {devices} = {expected:.4g}"
    computation = f"{formula}, printed {efficiency.text}"
    return AuditDiagnostic(Severity.ERROR, (efficiency, speedup), computation, _EXPLANATIONS)


CHECK = Check("Do efficiency and speedup agree?", "efficiencies with a speedup", examine)
