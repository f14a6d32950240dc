"""Throughputs along scaling curves, their scopes, and agreement between tables."""

import math
from collections.abc import Iterator

from dlperf_study.audit import quantities
from dlperf_study.audit.checks import FAR_APART, Agreeing, AuditDiagnostic, check
from dlperf_study.audit.result_cell import ResultCell, Throughput, curve_step
from dlperf_study.audit.results import Results, grouped
from dlperf_study.core.errors import Severity
from dlperf_study.core.wording import counted
from dlperf_study.metrics.scaling import ABOVE_LINEAR, FALLING

#: A rise of more than this many times linear is not explained by a cache, input workers or background load.
IMPOSSIBLE_GAIN = 2.0
#: A smaller excess is ignored unless runs show it: of 95 published lists of runs half vary by more than 0.4 %.
NOISE = 0.01
#: No spread of runs that is worth printing makes one throughput half of another.
LARGEST_FALL_BY_CHANCE = 0.5
#: The largest fall that one digit after the point does not round to all.
HIGHEST_PRINTED_FALL = 0.999
#: Limits of relative differences: to a number of devices or nodes, and to a constant throughput.
NEAR_SCOPE, FLAT = 0.03, 0.15
#: A quotient of two numbers this near to the number of devices or nodes suggests different scopes.
NEAR_FACTOR = 0.01
_OTHER_CONDITIONS: tuple[str, ...] = ("the two throughputs may have different conditions that the table does not show",)
_POOR_SCALING = ("scaling may really be that poor: all devices share an interconnect, a disk or cores",)
_OTHER_RUNS = (
    "the tables may show different runs, dates or versions",
    "a condition may differ that the tables do not show",
)


@check("Does a curve rise faster than its devices?", "steps to more devices", compares=False)
def above_linear(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every step to more devices."""
    for fewer, more in results.steps():
        excess = curve_step(fewer, more).gain - 1
        lowest, highest = more.cell.printed.bounds()[0], fewer.cell.printed.bounds()[1]
        is_certain = (fewer.cell.key, more.cell.key) in results.unexplained
        is_small = excess < NOISE and not is_certain
        if is_small or lowest <= highest * more.point.devices / fewer.point.devices:
            yield None
            continue
        computation = f"{_step_phrase(fewer, more)}, {excess:.1%} above linear"
        severity, explanations = Severity.ERROR, _OTHER_CONDITIONS
        interval = curve_step(fewer, more).log_ratio.interval()
        may_be_linear = interval is not None and interval.low <= math.log(more.point.devices / fewer.point.devices)
        if excess <= IMPOSSIBLE_GAIN - 1 or may_be_linear:
            severity, explanations = Severity.WARNING if is_certain else Severity.NOTE, ABOVE_LINEAR
            computation += f"; {_chance_phrase(is_certain, fewer, more)}"
        yield AuditDiagnostic(severity, (fewer.cell, more.cell), computation, explanations)


@check("Does a throughput fall as devices are added?", "steps to more devices", compares=False)
def falling(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every step to more devices."""
    for fewer, more in results.steps():
        if more.cell.printed.bounds()[1] >= fewer.cell.printed.bounds()[0]:
            yield None
            continue
        is_certain = (fewer.cell.key, more.cell.key) in results.unexplained
        fall = 1 - more.cell.value / fewer.cell.value
        severity = Severity.WARNING if is_certain or fall > LARGEST_FALL_BY_CHANCE else Severity.NOTE
        fall_text = f"{fall:.1%}" if fall < HIGHEST_PRINTED_FALL else f"more than {HIGHEST_PRINTED_FALL:.1%}"
        computation = f"{_step_phrase(fewer, more)}, a fall of {fall_text}"
        if is_certain or fall <= LARGEST_FALL_BY_CHANCE:
            computation += f"; {_chance_phrase(is_certain, fewer, more)}"
        if severity is Severity.NOTE:
            computation += ", but not the lack of a gain"
        yield AuditDiagnostic(severity, (fewer.cell, more.cell), computation, FALLING)


_THROUGHPUT_NAMES = {
    quantities.THROUGHPUT: "throughput",
    quantities.TOKENS: "throughput in tokens/s",
    quantities.SAMPLES_OF_DEVICE: "throughput of one device",
    quantities.TOKENS_OF_DEVICE: "throughput of one device in tokens/s",
}


def _step_phrase(fewer: Throughput, more: Throughput) -> str:
    name = _THROUGHPUT_NAMES.get(fewer.cell.metric, fewer.cell.metric)
    rise, devices = more.cell.value / fewer.cell.value, more.point.devices / fewer.point.devices
    return (
        f"from {fewer.point.devices} to {more.point.devices} devices the {name} goes from {fewer.cell.text} to "
        f"{more.cell.text}: {rise:.4g} times with {devices:g} times the devices"
    )


def _chance_phrase(is_certain: bool, fewer: Throughput, more: Throughput) -> str:
    """Return whether chance explains the step between two throughputs."""
    if curve_step(fewer, more).log_ratio.error is None:
        return "without runs of both throughputs, chance may explain it"
    return f"the spread of their runs {'does not' if is_certain else 'may'} explain it"


@check("Is every throughput of the same scope?", "curves, and their points", compares=False)
def scopes(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Find throughputs of one device or node on curves of the whole job."""
    for curve in results.curves:
        if curve[0].cell.metric != quantities.THROUGHPUT or curve[-1].point.devices <= curve[0].point.devices:
            continue
        first = curve[0]
        later = []
        for throughput in curve:
            if throughput.point.devices > first.point.devices:
                later.append(throughput.cell.value)
        # Throughputs per device: none rises, and none falls by more than a scaling loss.
        hardly_falls = len(later) > 1 and min(later) / first.cell.value >= 1 - FLAT
        if hardly_falls and max(later) / first.cell.value <= 1 + NEAR_SCOPE:
            throughputs = ", ".join(f"{throughput.cell.text} on {throughput.point.devices}" for throughput in curve)
            computation = f"{throughputs} devices: the throughput is nearly constant, "
            computation += "so it may be the throughput of one device, not of the job"
            yield AuditDiagnostic(
                Severity.WARNING, tuple(throughput.cell for throughput in curve), computation, _POOR_SCALING
            )
            continue
        yield None
        for position in range(1, len(curve)):
            yield _find_wrong_scope(curve, position)


def _find_wrong_scope(curve: list[Throughput], position: int) -> AuditDiagnostic | None:
    """Find a point that is linear once scaled by devices or nodes."""
    fewer, more = curve[position - 1], curve[position]
    linear = fewer.cell.value * more.point.devices / fewer.point.devices
    devices, nodes = more.point.devices, int(more.cell.get("nodes") or 1)
    # Of equal factors the noun of the widest scope is named.
    nouns = {devices // nodes: "devices of a node"}
    nouns |= {nodes: "nodes"}
    nouns |= {devices: "devices"}
    for factor, noun in nouns.items():
        if factor <= 1:
            continue
        multiplied, divided = more.cell.value * factor, more.cell.value / factor
        continues = position + 1 == len(curve) or curve[position + 1].cell.value >= multiplied * (1 - NEAR_SCOPE)
        if abs(multiplied / linear - 1) <= NEAR_SCOPE and continues:
            return _wrong_scope(fewer, more, f"{more.cell.text} × {factor} {noun} = {multiplied:.5g}", linear)
        if abs(divided / linear - 1) <= NEAR_SCOPE:
            return _wrong_scope(fewer, more, f"{more.cell.text} / {factor} {noun} = {divided:.5g}", linear)
    return None


def _wrong_scope(fewer: Throughput, more: Throughput, corrected: str, linear: float) -> AuditDiagnostic:
    computation = (
        f"{corrected}, which fits linear scaling from {fewer.cell.text} on {counted(fewer.point.devices, 'device')} "
        f"({linear:.5g} on {more.point.devices}); {more.cell.text} is off by that factor"
    )
    return AuditDiagnostic(Severity.WARNING, (fewer.cell, more.cell), computation, _POOR_SCALING)


@check("Do tables agree on what they have in common?", "configurations with several throughputs")
def disagreements(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Compare all throughputs of each configuration."""
    throughputs = (cell for cell in results.select(quantities.THROUGHPUT) if cell.printed.is_positive)
    for cells in grouped(throughputs, lambda cell: (cell.estimator, *cell.configuration)).values():
        if len(cells) < 2:
            continue
        diagnostic = _compare_throughputs(cells)
        rows = grouped(cells, lambda cell: (cell.table, cell.point)).values()
        repeated = next((row for row in rows if len(row) > 1), None)
        if diagnostic is None and repeated:
            computation = f"{repeated[0].text} is {len(repeated)} times in one table, for the same configuration"
            diagnostic = AuditDiagnostic(Severity.NOTE, tuple(repeated), computation, _OTHER_RUNS)
        yield diagnostic or tuple(cells)


def _compare_throughputs(cells: list[ResultCell]) -> AuditDiagnostic | None:
    ordered = sorted(cells, key=lambda cell: cell.value)
    smallest, largest = ordered[0], ordered[-1]
    if not largest.printed.exceeds(smallest.printed):
        return None
    quotient = largest.value / smallest.value
    listed = ", ".join(f"{cell.text} ({cell.key})" for cell in ordered)
    computation = f"{listed}: up to {quotient - 1:.2%} apart"
    factors = {smallest.world_size: "devices", smallest.get("nodes"): "nodes"}
    for factor, noun in factors.items():
        if factor and factor > 1 and abs(quotient / factor - 1) < NEAR_FACTOR:
            computation += f", the factor of its {noun}: their scopes may differ"
            break
    severity = Severity.WARNING if quotient > 1 + FAR_APART else Severity.NOTE
    return AuditDiagnostic(severity, tuple(ordered), computation, _OTHER_RUNS)
