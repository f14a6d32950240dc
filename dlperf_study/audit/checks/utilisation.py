"""FLOP/s of a device and shares of its peak, compared with each other and with the rate or time they come from."""

from collections.abc import Iterator
from fractions import Fraction
from statistics import median

from dlperf_study.audit.audit_check import AuditDiagnostic, Check
from dlperf_study.audit.limits import Work, peak_of, required_flops, work_of
from dlperf_study.audit.result_cell import SAMPLES_OF_DEVICE, THROUGHPUT, TOKENS, TOKENS_OF_DEVICE, ResultCell
from dlperf_study.audit.results import Results
from dlperf_study.diagnostic import Severity
from dlperf_study.study.device_peaks import DevicePeak
from dlperf_study.wording import counted

SHARE, FLOPS, STEP = "mfu", "device_flops", "step_seconds"
#: How far the computed FLOPs of a sample may be from each other for one network.
NEAR = 0.01
#: Data sheets and programs round the same peak differently: 989, 989.4 and 989.5 TFLOP/s.
PEAK_ROUNDING = Fraction(1, 1000)
_PEAK = "the share may be of another peak than the one assumed"
_MEANINGS = {
    FLOPS: "FLOP/s of a device / its {item}s/s is the FLOPs of a {item}, the same in every row of a network",
    SHARE: "the share of the peak / {item}s/s of a device is the same in every row of a network",
}
_COUNT = "FLOPs may be counted in another way: with recomputed activations, without the vocabulary"


def examine(results: Results) -> Iterator[AuditDiagnostic | None]:
    """Yield a result for every share of a known peak, and for the rows of every network, which must fit together."""
    for share in results.of(SHARE):
        flops, rate, peak = (
            results.at_same_point(share, FLOPS),
            results.at_same_point(share, THROUGHPUT),
            peak_of(share),
        )
        if peak and flops is not None:
            yield _compare_with_flops(share, flops, peak)
        elif peak and rate is not None and rate.world_size and (work := _declared_work(share, rate)):
            yield _compare_with_rate(share, rate, work, peak)
    for metric in (FLOPS, SHARE):
        for network, quotients in _quotients_by_network(results, metric).items():
            if len(quotients) > 1:
                yield _compare_rows(quotients, metric, network[-1])


def _compare_with_flops(share: ResultCell, flops: ResultCell, peak: DevicePeak) -> AuditDiagnostic | None:
    low, high = (bound / Fraction(peak.flops) for bound in flops.printed.bounds())
    if share.printed.overlaps(low * (1 - PEAK_ROUNDING), high * (1 + PEAK_ROUNDING)):
        return None
    reached, peak_teraflops = flops.value / 1e12, peak.flops / 1e12
    expected = f"{reached:.4g} of {peak_teraflops:.4g} TFLOP/s ({peak.source}) are {reached / peak_teraflops:.4g}"
    return AuditDiagnostic(Severity.ERROR, (share, flops), f"{expected}, printed {share.text}", (_PEAK,))


def _declared_work(share: ResultCell, rate: ResultCell) -> Work | None:
    """Return the FLOPs of a sample if the table states them: tables of networks may count them in another way."""
    return work_of(rate, None) if share.get("flops_per_sample") else None


def _compare_with_rate(share: ResultCell, rate: ResultCell, work: Work, peak: DevicePeak) -> AuditDiagnostic | None:
    expected = required_flops(rate, work) / peak.flops
    if share.printed.overlaps(Fraction(expected), Fraction(expected)):
        return None
    formula = f"{rate.text} samples/s × {work.flops:.4g} FLOP / {rate.world_size} / {peak.flops:.4g} = {expected:.4g}"
    return AuditDiagnostic(Severity.ERROR, (share, rate), f"{formula}, printed {share.text}", (_PEAK, _COUNT))


def _quotients_by_network(results: Results, metric: str) -> dict[tuple[str, ...], dict[ResultCell, float]]:
    """Return each cell / the samples or tokens that a device processes in a second.

    Of FLOP/s it is the FLOPs of a sample or token; of a share of a peak it is these / the peak. They are the same
    within one source, network and size of a sample, shares also within one device and precision: each is a group.
    """
    conditions: tuple[str, ...] = ("source", "model", "sequence_length", "image_size")
    if metric == SHARE:
        conditions += ("device_name", "instance", "precision", "device_peak_flops")
    networks: dict[tuple[str, ...], dict[ResultCell, float]] = {}
    for cell in results.of(metric):
        if not cell.printed.is_positive:
            continue
        network = [str(cell.get(name)) for name in conditions]
        for item, rate_of_device in _rates_of_device(results, cell).items():
            networks.setdefault((*network, item), {})[cell] = cell.value / rate_of_device
    return networks


def _rates_of_device(results: Results, flops: ResultCell) -> dict[str, float]:
    """Return the samples and the tokens that a device processes in a second, from the rates or the time of a row."""
    rates = {}
    for metric, item in ((TOKENS_OF_DEVICE, "token"), (SAMPLES_OF_DEVICE, "sample")):
        rate = results.at_same_point(flops, metric)
        if rate is not None and rate.printed.is_positive:
            rates[item] = rate.value
    for metric, item in ((TOKENS, "token"), (THROUGHPUT, "sample")):
        rate = results.at_same_point(flops, metric)
        if item not in rates and rate is not None and rate.printed.is_positive and flops.world_size:
            rates[item] = rate.value / flops.world_size
    seconds, batch = results.at_same_point(flops, STEP), flops.get("global_batch")
    if not rates and seconds is not None and seconds.printed.is_positive and batch and flops.world_size:
        rates["sample"] = batch / seconds.value / flops.world_size
    return rates


def _compare_rows(quotients: dict[ResultCell, float], metric: str, item: str) -> AuditDiagnostic | None:
    """Find the rows with another quotient than most rows of the same network have, beyond what rounding explains."""
    middle = median(quotients.values())
    different, rows = [], []
    unit = " FLOP" if metric == FLOPS else ""
    for cell, quotient in quotients.items():
        allowed = NEAR + float(cell.printed.step / cell.printed.exact)
        if abs(quotient / middle - 1) > allowed:
            different.append(cell)
            rows.append(f"{cell.text} on {counted(cell.world_size or 0, 'device')} ({quotient:.4g}{unit})")
    if not different:
        return None
    formula = f"{_MEANINGS[metric].format(item=item)}: the median is {middle:.4g}"
    return AuditDiagnostic(Severity.ERROR, tuple(different), f"{formula}, but {', '.join(rows)}", (_COUNT,))


CHECK = Check(
    "Do FLOP/s follow from rates, and shares of a peak from FLOP/s?", "shares of a peak, and networks", examine
)
