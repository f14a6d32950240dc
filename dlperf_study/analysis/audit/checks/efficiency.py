"""Efficiency beside speedup: one is the other × baseline devices / devices."""

from collections.abc import Iterator
from fractions import Fraction

from dlperf_study.analysis.audit.finding import Check, Finding
from dlperf_study.analysis.audit.results import EFFICIENCY, SPEEDUP, Cell, Results
from dlperf_study.logs.complaint import Severity


def examine(results: Results) -> Iterator[Finding | None]:
    """Yield a result for every efficiency that stands beside a speedup over the same baseline."""
    for efficiency in results.of(EFFICIENCY):
        speedup, base = results.beside(efficiency, SPEEDUP), results.baseline_of(efficiency)
        if speedup and base and base is results.baseline_of(speedup) and base.world_size and efficiency.world_size:
            yield _examined(efficiency, speedup, base)


def _examined(efficiency: Cell, speedup: Cell, base: Cell) -> Finding | None:
    share = Fraction(base.world_size or 1, efficiency.world_size or 1)
    low, high = (bound * share for bound in speedup.printed.bounds(truncated=True))
    if efficiency.printed.meets(low, high):
        return None
    exact = float(speedup.printed.exact * share)
    said = f"{speedup.text} × {base.world_size} / {efficiency.world_size} = {exact:.4g}, printed {efficiency.text}"
    why = "they may be relative to different baselines, or to another number of devices"
    return Finding(Severity.ERROR, (efficiency, speedup), said, (why,))


CHECK = Check("Do efficiency and speedup say the same?", "efficiencies beside a speedup", examine)
