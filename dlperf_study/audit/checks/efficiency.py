"""Efficiency and speedup of the same point: efficiency = speedup × baseline devices / devices."""

from collections.abc import Iterator
from fractions import Fraction

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.result_cell import EFFICIENCY, SPEEDUP
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity

_EXPLANATIONS = ("they may be relative to different baselines, or to another number of devices",)


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every efficiency that has a speedup over the same baseline."""
    for efficiency, speedup in results.pairs(EFFICIENCY, SPEEDUP):
        devices, baseline_devices = efficiency.world_size, results.baseline_devices(efficiency)
        if results.baseline_of(efficiency) is not results.baseline_of(speedup):
            continue
        if not devices or not baseline_devices or baseline_devices != results.baseline_devices(speedup):
            continue
        share = Fraction(baseline_devices, devices)
        low, high = speedup.printed.bounds(truncated=True)
        if efficiency.printed.overlaps(low * share, high * share):
            yield None
        else:
            expected = float(speedup.printed.exact * share)
            computation = f"{speedup.text} × {baseline_devices} / {devices} = {expected:.4g}, printed {efficiency.text}"
            yield AuditDiagnostic(Severity.ERROR, (efficiency, speedup), computation, _EXPLANATIONS)


CHECK = Check("Do efficiency and speedup agree?", "efficiencies with a speedup", examine)
