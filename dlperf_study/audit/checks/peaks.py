"""Rates, FLOP/s and utilisation, compared with the peak of the devices."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import median

from dlperf_study.audit import limits, quantities
from dlperf_study.audit.checks import AuditDiagnostic, check
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
_PEAK = "the share may be of another peak than the one assumed"
_MEANINGS = {
    quantities.DEVICE_FLOPS: "FLOP/s of a device / its {item}s/s is the FLOPs of a {item}, "
    "the same in every row of a network",
    quantities.MFU: "the share of the peak / {item}s/s of a device is the same in every row of a network",
}
_COUNT = "FLOPs may be counted in another way: with recomputed activations, without the vocabulary"
_CLOCK = "the device may be another variant or run at another clock than the peak assumes"
_SIZE_ELSEWHERE = "the source may state the size elsewhere, in its program for example"


@dataclass(frozen=True)
class Quotient:
    """A quotient of printed numbers, and its relative rounding error."""

    value: float
    rounding: float


@check("Can the devices compute that fast?", "rates of known networks on known devices")
def physical_limits(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Report rates above the peak, one diagnostic per network and source."""
    # Each rate with its work, the peak of its device, and how many times the peak it requires.
    above_peak: dict[tuple[str, str, str], list[tuple[ResultCell, limits.Work, DevicePeak, float]]] = {}
    for rate in results.select(quantities.THROUGHPUT):
        size, peak = limits.printed_sample_size(rate), limits.find_device_peak(rate)
        work = None
        if size or rate.get("flops_per_sample"):
            work = limits.find_work(rate, size)
        if not (work and peak and rate.world_size):
            continue
        required = limits.required_flops(rate, work)
        if required <= peak.flops:
            yield None
        else:
            network = str(rate.get("source")), work.model, peak.number_format
            above_peak.setdefault(network, []).append((rate, work, peak, required / peak.flops))
    for excesses in above_peak.values():
        excesses.sort(key=lambda excess: excess[-1], reverse=True)
        cells = tuple(excess[0] for excess in excesses)
        rate, work, peak, _ = excesses[0]
        if limits.is_impossible(rate, work, peak):
            yield AuditDiagnostic(Severity.ERROR, cells, _demand_phrase(rate, work, peak), (_CLOCK,))
        else:
            yield AuditDiagnostic(Severity.WARNING, cells, _demand_phrase(rate, work, peak), (WINOGRAD, _CLOCK))


@check("Can an input without a size have the usual one?", "networks without a stated input")
def input_sizes(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Compare the fastest rate of networks without a stated input size with the peak."""
    rates = []
    for rate in results.select(quantities.THROUGHPUT):
        if limits.printed_sample_size(rate) is None and not rate.get("flops_per_sample") and rate.world_size:
            rates.append(rate)
    for network_rates in grouped(rates, lambda rate: tuple(map(rate.get, ("source", "model", "precision")))).values():
        fastest = max(network_rates, key=lambda rate: rate.value / (rate.world_size or 1))
        work, peak = limits.find_work(fastest, None), limits.find_device_peak(fastest)
        if work and peak:
            yield _compare_usual_size(fastest, work, peak)


def _compare_usual_size(rate: ResultCell, work: limits.Work, peak: DevicePeak) -> AuditDiagnostic | None:
    if limits.required_flops(rate, work) <= peak.flops:
        return None
    if limits.is_impossible(rate, work, peak):
        usual = f"and can't be the network's usual {work.size}"
        explanations: tuple[str, ...] = (_SIZE_ELSEWHERE,)
    else:
        usual = f"if it is the network's usual {work.size}"
        explanations = (WINOGRAD, _SIZE_ELSEWHERE)
    computation = f"the size of the input is not stated, {usual}: {_demand_phrase(rate, work, peak)}"
    possible = []
    for smaller in limits.works():
        is_smaller = smaller.model == work.model and smaller.size < work.size
        if is_smaller and limits.required_flops(rate, smaller) <= peak.flops:
            possible.append(str(smaller.size))
    if possible:
        computation += f". {' or '.join(possible)} would be possible"
    return AuditDiagnostic(Severity.WARNING, (rate,), computation, explanations)


def _demand_phrase(rate: ResultCell, work: limits.Work, peak: DevicePeak) -> str:
    flops = limits.required_flops(rate, work)
    return (
        f"{rate.text} samples/s on {rate.world_size} × {work.flops / 1e9:.3g} GFLOP ({work.source}) take "
        f"{flops / 1e9:,.0f} GFLOP/s of each, {flops / peak.flops:.3g} times the peak of {peak.flops / 1e9:,.0f} "
        f"({peak.source})"
    )


@check("Are the FLOPs of networks and the peaks of devices known?", "rates with network and device", compares=False)
def known_names(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Report the networks and devices that are missing in our tables."""
    rates_by_source: dict[str, list[ResultCell]] = {}
    for rate in results.select(quantities.THROUGHPUT):
        if not limits.names_network_and_device(rate):
            continue
        if limits.unknown_names(rate):
            rates_by_source.setdefault(str(rate.get("source")), []).append(rate)
        else:
            yield None
    for source, rates in rates_by_source.items():
        names: dict[str, None] = {}
        for rate in rates:
            names |= dict.fromkeys(limits.unknown_names(rate))
        rates_phrase = f"{counted(len(rates), 'rate')} {'is' if len(rates) == 1 else 'are'}"
        reason = f"the tables of networks and devices do not contain {', '.join(names)}"
        computation = f"{source}: {rates_phrase} not compared with a peak: {reason}"
        yield AuditDiagnostic(Severity.NOTE, tuple(rates), computation)


@check("Do FLOP/s follow from rates, and shares of a peak from FLOP/s?", "shares of a peak, and networks")
def utilisation(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Recompute shares of a peak, and compare the rows of each network."""
    for share in results.select(quantities.MFU):
        peak = limits.find_device_peak(share)
        flops = results.at_same_point(share, quantities.DEVICE_FLOPS)
        rate = results.at_same_point(share, quantities.THROUGHPUT)
        # Tables of networks may count FLOPs in another way than the source.
        work = None
        if rate is not None and share.get("flops_per_sample"):
            work = limits.find_work(rate, None)
        if peak and flops is not None:
            yield _compare_with_flops(share, flops, peak)
        elif peak and work and rate is not None and rate.world_size:
            expected = limits.required_flops(rate, work) / peak.flops
            if share.printed.overlaps(Fraction(expected), Fraction(expected)):
                yield None
                continue
            factors = f"{rate.text} samples/s × {work.flops:.4g} FLOP / {rate.world_size} / {peak.flops:.4g}"
            computation = f"{factors} = {expected:.4g}, printed {share.text}"
            yield AuditDiagnostic(Severity.ERROR, (share, rate), computation, (_PEAK, _COUNT))
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
        network += [str(cell.get(name)) for name in cell.extra_conditions if WORDS.recomputation.search(name)]
        for item, rate_of_device in _rates_of_device(results, cell).items():
            rounding = float(cell.printed.step / cell.printed.exact) + rate_of_device.rounding
            quotient = Quotient(cell.value / rate_of_device.value, rounding)
            networks.setdefault((*network, item), {})[cell] = quotient
    return networks


def _rates_of_device(results: Results, flops: ResultCell) -> dict[str, Quotient]:
    """Return samples and tokens per device and second, by item."""
    rates = {}
    for metric, item in ((quantities.TOKENS_OF_DEVICE, "token"), (quantities.SAMPLES_OF_DEVICE, "sample")):
        rate = results.at_same_point(flops, metric)
        if rate is not None and rate.printed.is_positive:
            rates[item] = _per_device(rate, 1)
    for metric, item in ((quantities.TOKENS, "token"), (quantities.THROUGHPUT, "sample")):
        rate = results.at_same_point(flops, metric)
        if item not in rates and rate is not None and rate.printed.is_positive and flops.world_size:
            rates[item] = _per_device(rate, flops.world_size)
    seconds, batch = results.at_same_point(flops, quantities.STEP), flops.get("global_batch")
    if not rates and seconds is not None and seconds.printed.is_positive and batch and flops.world_size:
        rounding = float(seconds.printed.step / seconds.printed.exact)
        rates["sample"] = Quotient(batch / seconds.value / flops.world_size, rounding)
    return rates


def tokens_of_device(results: Results, share: ResultCell) -> float | None:
    """Return tokens per device and second; None if unknown."""
    rates, length = _rates_of_device(results, share), share.get("sequence_length")
    if "token" in rates:
        return rates["token"].value
    if "sample" in rates and length:
        return float(rates["sample"].value * length)
    return None


def _per_device(rate: ResultCell, devices: int) -> Quotient:
    return Quotient(rate.value / devices, float(rate.printed.step / rate.printed.exact))


def _compare_rows(quotients: dict[ResultCell, Quotient], metric: str, item: str) -> AuditDiagnostic | None:
    """Find rows whose quotient differs from the median beyond rounding."""
    middle = median(quotient.value for quotient in quotients.values())
    different, rows, farthest = [], [], 0.0
    unit = " FLOP" if metric == quantities.DEVICE_FLOPS else ""
    for cell, quotient in quotients.items():
        if abs(quotient.value / middle - 1) > NEAR_FLOPS + quotient.rounding:
            farthest = max(farthest, abs(quotient.value / middle - 1))
            different.append(cell)
            rows.append(f"{cell.text} on {counted(cell.world_size or 0, 'device')} ({quotient.value:.4g}{unit})")
    if not different:
        return None
    formula = f"{_MEANINGS[metric].format(item=item)}: the median is {middle:.4g}"
    shown = ", ".join(rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        shown += f" and {len(rows) - _MOST_ROWS} more"
    return AuditDiagnostic(Severity.ERROR, tuple(different), f"{formula}, but {shown}", (_COUNT,), deviation=farthest)
