"""Throughputs, FLOP/s and utilisation, compared with the peak of the devices."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import median

from dlperf_study.audit import limits, quantities
from dlperf_study.audit.checks import Agreeing, AuditDiagnostic, check
from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.audit.results import Results, grouped
from dlperf_study.audit.vocabulary import WORDS
from dlperf_study.core.errors import Severity
from dlperf_study.core.wording import counted
from dlperf_study.metrics.utilisation import WINOGRAD
from dlperf_study.study.device_peaks import DevicePeak

#: How far the computed FLOPs of a sample may be from each other for one network.
NEAR_FLOPS = 0.01
_MOST_ROWS = 3
#: Data sheets and programs round the same peak differently: 989, 989.4 and 989.5 TFLOP/s.
PEAK_ROUNDING = Fraction(1, 1000)
#: The billions of parameters in a name: ``LLAMA3-8B``.
SIZE_IN_NAME = re.compile(r"(?<![\w.])(\d{1,4}(?:\.\d{1,3})?) ?[Bb](?![A-Za-z\d])")
_PEAK = "the share may use another peak than assumed"
_MEANINGS = {
    quantities.DEVICE_FLOPS: "FLOP/s of a device / its {item}s/s is the FLOPs of a {item}, "
    "the same in every row of a model",
    quantities.MFU: "the share of the peak / {item}s/s of a device is the same in every row of a model",
}
_COUNT = "FLOPs may be counted differently: with recomputed activations, or without the vocabulary"
_CLOCK = "the device may be another variant or run at another clock than the peak assumes"
_SIZE_ELSEWHERE = "the source may state the size elsewhere, such as in its code"


@dataclass(frozen=True)
class Quotient:
    """A quotient of printed numbers; ``cell``: its other number."""

    value: float
    rounding: float
    cell: ResultCell


@check("Can the devices compute that fast?", "throughputs of known models on known devices", compares=False)
def physical_limits(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Report throughputs above the peak, one diagnostic per network and source."""
    # Each throughput with its work, the peak of its device, and how many times the peak it requires.
    above_peak: dict[tuple[str, str, str], list[tuple[ResultCell, limits.Work, DevicePeak, float]]] = {}
    for throughput in results.select(quantities.THROUGHPUT):
        size, peak = limits.printed_sample_size(throughput), limits.find_device_peak(throughput)
        work = None
        if size or throughput.get("flops_per_sample"):
            work = limits.find_work(throughput, size)
        if not (work and peak and throughput.world_size):
            continue
        required = limits.required_flops(throughput, work)
        if required <= peak.flops:
            yield None
        else:
            network = str(throughput.get("source")), work.model, peak.number_format
            above_peak.setdefault(network, []).append((throughput, work, peak, required / peak.flops))
    for excesses in above_peak.values():
        excesses.sort(key=lambda excess: excess[-1], reverse=True)
        cells = tuple(excess[0] for excess in excesses)
        throughput, work, peak, _ = excesses[0]
        if limits.is_impossible(throughput, work, peak):
            yield AuditDiagnostic(Severity.ERROR, cells, _demand_phrase(throughput, work, peak), (_CLOCK,))
        else:
            yield AuditDiagnostic(Severity.WARNING, cells, _demand_phrase(throughput, work, peak), (WINOGRAD, _CLOCK))


@check("Can an unstated input size be the usual size?", "models without a stated input size", compares=False)
def input_sizes(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Compare the fastest throughput of networks without a stated input size with the peak."""
    throughputs = []
    for throughput in results.select(quantities.THROUGHPUT):
        if (
            limits.printed_sample_size(throughput) is None
            and not throughput.get("flops_per_sample")
            and throughput.world_size
        ):
            throughputs.append(throughput)
    for network_throughputs in grouped(
        throughputs, lambda throughput: tuple(map(throughput.get, ("source", "model", "precision")))
    ).values():
        fastest = max(network_throughputs, key=lambda throughput: throughput.value / (throughput.world_size or 1))
        work, peak = limits.find_work(fastest, None), limits.find_device_peak(fastest)
        if work and peak:
            yield _compare_usual_size(fastest, work, peak)


def _compare_usual_size(throughput: ResultCell, work: limits.Work, peak: DevicePeak) -> AuditDiagnostic | None:
    if limits.required_flops(throughput, work) <= peak.flops:
        return None
    if limits.is_impossible(throughput, work, peak):
        usual = f"the model's usual size {work.size} is impossible"
        explanations: tuple[str, ...] = (_SIZE_ELSEWHERE,)
    else:
        usual = f"at the model's usual size {work.size}"
        explanations = (WINOGRAD, _SIZE_ELSEWHERE)
    computation = f"no input size is stated; {usual}: {_demand_phrase(throughput, work, peak)}"
    possible = []
    for smaller in limits.works():
        is_smaller = smaller.model == work.model and smaller.size < work.size
        if is_smaller and limits.required_flops(throughput, smaller) <= peak.flops:
            possible.append(str(smaller.size))
    if possible:
        computation += f". {' or '.join(possible)} would be possible"
    return AuditDiagnostic(Severity.WARNING, (throughput,), computation, explanations)


def _demand_phrase(throughput: ResultCell, work: limits.Work, peak: DevicePeak) -> str:
    flops = limits.required_flops(throughput, work)
    return (
        f"{throughput.text} samples/s × {work.flops / 1e9:.3g} GFLOP ({work.source}) on "
        f"{counted(throughput.world_size or 0, 'device')} need {flops / 1e9:,.0f} GFLOP/s per device, "
        f"{flops / peak.flops:.3g} times the peak of {peak.flops / 1e9:,.0f} ({peak.source})"
    )


@check("Are the FLOPs of models and the peaks of devices known?", "throughputs with model and device", compares=False)
def known_names(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Report the networks and devices that are missing in our tables."""
    throughputs_by_source: dict[str, list[ResultCell]] = {}
    for throughput in results.select(quantities.THROUGHPUT):
        if not limits.names_network_and_device(throughput):
            continue
        if limits.unknown_names(throughput):
            throughputs_by_source.setdefault(str(throughput.get("source")), []).append(throughput)
        else:
            yield None
    for source, throughputs in throughputs_by_source.items():
        names: dict[str, None] = {}
        for throughput in throughputs:
            names |= dict.fromkeys(limits.unknown_names(throughput))
        throughputs_phrase = f"{counted(len(throughputs), 'throughput')} {'is' if len(throughputs) == 1 else 'are'}"
        reason = f"FLOPs or peak unknown for {', '.join(names)}"
        computation = f"{source}: {throughputs_phrase} not compared with a peak: {reason}"
        yield AuditDiagnostic(Severity.NOTE, tuple(throughputs), computation)


@check("Do FLOP/s follow from throughputs, and shares of a peak from FLOP/s?", "shares of a peak, and models")
def utilisation(results: Results) -> Iterator[AuditDiagnostic | Agreeing]:
    """Recompute shares of a peak, and compare the rows of each network."""
    for share in results.select(quantities.MFU):
        peak = limits.find_device_peak(share)
        flops = results.at_same_point(share, quantities.DEVICE_FLOPS)
        throughput = results.at_same_point(share, quantities.THROUGHPUT)
        # Tables of networks may count FLOPs in another way than the source.
        work = None
        if throughput is not None and share.get("flops_per_sample"):
            work = limits.find_work(throughput, None)
        if peak and flops is not None:
            yield _compare_with_flops(share, flops, peak) or (share, flops)
        elif peak and work and throughput is not None and throughput.world_size:
            expected = limits.required_flops(throughput, work) / peak.flops
            if share.printed.overlaps(Fraction(expected), Fraction(expected)):
                yield share, throughput
                continue
            factors = (
                f"{throughput.text} samples/s × {work.flops:.4g} FLOP / {throughput.world_size} / {peak.flops:.4g}"
            )
            computation = f"{factors} = {expected:.4g}, printed {share.text}"
            yield AuditDiagnostic(Severity.ERROR, (share, throughput), computation, (_PEAK, _COUNT))
    for metric in (quantities.DEVICE_FLOPS, quantities.MFU):
        for network, quotients in _quotients_by_network(results, metric).items():
            if len(quotients) > 1:
                yield _compare_rows(quotients, metric, network[-1])


def _compare_with_flops(share: ResultCell, flops: ResultCell, peak: DevicePeak) -> AuditDiagnostic | None:
    low, high = (bound / Fraction(peak.flops) for bound in flops.printed.bounds(truncated=True))
    if share.printed.overlaps(low * (1 - PEAK_ROUNDING), high * (1 + PEAK_ROUNDING)):
        return None
    reached, peak_teraflops = flops.value / 1e12, peak.flops / 1e12
    expected = f"{reached:.4g} of {peak_teraflops:.4g} TFLOP/s ({peak.source}) are {reached / peak_teraflops:.4g}"
    computation = f"{expected}, printed {share.text}"
    if share.printed.is_positive and (name := limits.name_peak(share, flops.value / share.value, NEAR_FLOPS)):
        computation += f". It is a share of {flops.value / share.value / 1e12:.4g} TFLOP/s{name}"
    return AuditDiagnostic(Severity.ERROR, (share, flops), computation, (_PEAK,))


def _quotients_by_network(results: Results, metric: str) -> dict[tuple[str, ...], dict[ResultCell, Quotient]]:
    """Return each cell divided by the samples or tokens per device and second."""
    conditions: tuple[str, ...] = ("source", "model", "sequence_length", "image_size")
    if metric == quantities.MFU:
        conditions += ("device_name", "instance", "precision", "device_peak_flops")
    networks: dict[tuple[str, ...], dict[ResultCell, Quotient]] = {}
    for cell in results.select(metric):
        if not cell.printed.is_positive:
            continue
        network = [str(cell.get(name)) for name in conditions]
        # Without a column of models, a size in another column names one: ``13B, FSDP=8``.
        has_model = cell.get("model") is not None
        for name in cell.extra_conditions:
            size = SIZE_IN_NAME.search(str(cell.get(name)))
            if WORDS.recomputation.search(name):
                network.append(str(cell.get(name)))
            elif size and not has_model:
                network.append(size[1])
        for item, throughput_of_device in _throughputs_of_device(results, cell).items():
            rounding = float(cell.printed.step / cell.printed.exact) + throughput_of_device.rounding
            quotient = Quotient(cell.value / throughput_of_device.value, rounding, throughput_of_device.cell)
            networks.setdefault((*network, item), {})[cell] = quotient
    return networks


def _throughputs_of_device(results: Results, flops: ResultCell) -> dict[str, Quotient]:
    """Return samples and tokens per device and second, by item."""
    throughputs = {}
    for metric, item in ((quantities.TOKENS_OF_DEVICE, "token"), (quantities.SAMPLES_OF_DEVICE, "sample")):
        throughput = results.at_same_point(flops, metric)
        if throughput is not None and throughput.printed.is_positive:
            throughputs[item] = _per_device(throughput, 1)
    for metric, item in ((quantities.TOKENS, "token"), (quantities.THROUGHPUT, "sample")):
        throughput = results.at_same_point(flops, metric)
        if item not in throughputs and throughput is not None and throughput.printed.is_positive and flops.world_size:
            throughputs[item] = _per_device(throughput, flops.world_size)
    seconds, batch = results.at_same_point(flops, quantities.STEP), flops.get("global_batch")
    if not throughputs and seconds is not None and seconds.printed.is_positive and batch and flops.world_size:
        rounding = float(seconds.printed.step / seconds.printed.exact)
        throughputs["sample"] = Quotient(batch / seconds.value / flops.world_size, rounding, seconds)
    return throughputs


def tokens_of_device(results: Results, share: ResultCell) -> float | None:
    """Return tokens per device and second; None if unknown."""
    throughputs, length = _throughputs_of_device(results, share), share.get("sequence_length")
    if "token" in throughputs:
        return throughputs["token"].value
    if "sample" in throughputs and length:
        return float(throughputs["sample"].value * length)
    return None


def _per_device(throughput: ResultCell, devices: int) -> Quotient:
    rounding = float(throughput.printed.step / throughput.printed.exact)
    return Quotient(throughput.value / devices, rounding, throughput)


def _compare_rows(quotients: dict[ResultCell, Quotient], metric: str, item: str) -> AuditDiagnostic | Agreeing:
    """Find rows whose quotient differs from the median beyond rounding."""
    middle = median(quotient.value for quotient in quotients.values())
    different, rows, farthest = [], [], 0.0
    unit = " FLOP" if metric == quantities.DEVICE_FLOPS else ""
    for cell, quotient in quotients.items():
        if abs(quotient.value / middle - 1) > NEAR_FLOPS + quotient.rounding:
            farthest = max(farthest, abs(quotient.value / middle - 1))
            different.append(cell)
            rows.append(f"{cell.text} on {counted(cell.world_size or 0, 'device')} ({quotient.value:.4g}{unit})")
    compared = (*quotients, *(quotient.cell for quotient in quotients.values()))
    if not different:
        return compared
    formula = f"{_MEANINGS[metric].format(item=item)}: the median is {middle:.4g}"
    shown = ", ".join(rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        shown += f" and {len(rows) - _MOST_ROWS} more"
    computation = f"{formula}, but {shown}"
    return AuditDiagnostic(
        Severity.ERROR, tuple(different), computation, (_COUNT,), deviation=farthest, compared=compared
    )
