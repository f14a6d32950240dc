"""The FLOP/s that a throughput requires, and the peak of its device.

The folder ``data`` has tables of cloud machines and networks; each row names its source.
"""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.core.errors import Severity
from dlperf_study.metrics.utilisation import severity_above_peak
from dlperf_study.study.device_peaks import DevicePeak, known_device, known_peak, known_peaks
from dlperf_study.study.precision import COMPUTED_IN, canonical_precision

_DATA = Path(__file__).parent / "data"
_FROM_TABLE = "as the table says"


@dataclass(frozen=True)
class Machine:
    """A type of cloud machine, and its devices."""

    name: str
    device: str
    devices: int
    source: str

    def has(self, device_name: str) -> bool:
        """Return whether its devices are those of that name."""
        return self.device.lower() in device_name.lower()


@dataclass(frozen=True)
class Work:
    """FLOPs of one sample, forward and backward, at one input size."""

    model: str
    size: int
    usual: bool
    flops: float
    convolutional: bool
    source: str


@cache
def machines() -> Mapping[str, Machine]:
    """Return the cloud machines by name."""
    by_name = {}
    for row in _read_data("instances"):
        by_name[row["name"]] = Machine(row["name"], row["device"], int(row["devices"]), row["source"])
    return by_name


@cache
def works() -> tuple[Work, ...]:
    """Return the work of all networks."""
    return tuple(
        Work(
            model=row["model"],
            size=int(row["size"]),
            usual=row["usual"] == "yes",
            flops=float(row["flops_per_sample"]),
            convolutional=row["kind"] == "convolution",
            source=row["source"],
        )
        for row in _read_data("networks")
    )


def _read_data(name: str) -> list[dict[str, str]]:
    with open(_DATA / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def required_flops(throughput: ResultCell, work: Work) -> float:
    """Return required FLOP/s per device: throughput × FLOPs per sample / devices."""
    return throughput.value * work.flops / (throughput.world_size or 1)


def is_impossible(throughput: ResultCell, work: Work, peak: DevicePeak) -> bool:
    """Return whether no algorithm makes a throughput possible."""
    share = required_flops(throughput, work) / peak.flops
    return severity_above_peak(share, work.convolutional) is Severity.ERROR


def find_device_peak(throughput: ResultCell) -> DevicePeak | None:
    """Return the peak of one device, from the table or the data sheet."""
    device, precision = str(throughput.get("device_name")), str(throughput.get("precision"))
    if throughput.get("device_peak_flops"):
        return DevicePeak(device, precision, float(throughput.get("device_peak_flops")), False, _FROM_TABLE)
    peak = _find_peak(device, precision)
    if peak is None or not peak.per_thread:
        return peak
    threads = throughput.get("threads_per_device")
    if threads:
        return replace(peak, flops=peak.flops * int(threads), per_thread=False)
    return None


def _find_peak(device: str, precision: str) -> DevicePeak | None:
    """Return the peak of a known device in a precision."""
    canonical = canonical_precision(precision)
    number_format = COMPUTED_IN.get(canonical, canonical)
    as_tf32 = None
    if number_format == COMPUTED_IN["fp32"]:
        as_tf32 = known_peak(device, COMPUTED_IN["tf32"])
    return as_tf32 or known_peak(device, number_format)


def dense_peaks(cell: ResultCell) -> list[DevicePeak]:
    """Return the dense peaks of a device in all number formats."""
    device = known_device(str(cell.get("device_name")))
    return [peak for peak in known_peaks() if peak.device == device and not peak.per_thread]


def name_peak(cell: ResultCell, implied: float, near: float, with_other_devices: bool = True) -> str:
    """Return the known peak that explains an implied peak, as text."""
    devices, peaks_of_device = cell.world_size or 1, dense_peaks(cell)
    explanations: list[tuple[float, str]] = []
    for peak in peaks_of_device:
        explanations += [(peak.flops, f"the peak of {peak.device} in {peak.number_format}")]
        explanations += [(2 * peak.flops, f"the peak of {peak.device} in {peak.number_format} with sparsity")]
        explanations += [(peak.flops / devices, f"one {peak.device} in {peak.number_format}, for {devices} devices")]
    for peak in known_peaks() if with_other_devices else ():
        if peak not in peaks_of_device and not peak.per_thread:
            explanations += [(peak.flops, f"the peak of {peak.device} in {peak.number_format}, another device")]
    return next((f": {name}" for flops, name in explanations if abs(implied / flops - 1) <= near), "")


def printed_sample_size(throughput: ResultCell) -> int | None:
    """Return the printed pixels or tokens of a sample, or None."""
    size = throughput.get("image_size") or throughput.get("sequence_length")
    if size is None or {"image_size", "sequence_length"} & {*throughput.inferred}:
        return None
    return int(size)


def may_be_convolutional(cell: ResultCell) -> bool:
    """Return whether a network may be convolutional: it has no tokens."""
    return not cell.get("sequence_length")


def find_work(throughput: ResultCell, size: int | None) -> Work | None:
    """Return the FLOPs of a sample at a size, or at the usual size."""
    if throughput.get("flops_per_sample"):
        flops = float(throughput.get("flops_per_sample"))
        return Work(str(throughput.get("model")), size or 0, True, flops, may_be_convolutional(throughput), _FROM_TABLE)
    for work in _find_works(str(throughput.get("model"))):
        if work.size == size or (size is None and work.usual):
            return work
    return None


def _find_works(model: str) -> list[Work]:
    return [work for work in works() if _simplify_name(work.model) == _simplify_name(model)]


def _simplify_name(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def names_network_and_device(throughput: ResultCell) -> bool:
    """Return whether a throughput has network and device, or FLOPs and peak."""
    network = throughput.get("model") or throughput.get("flops_per_sample")
    return bool(network and (throughput.get("device_name") or throughput.get("device_peak_flops")))


def unknown_names(throughput: ResultCell) -> list[str]:
    """Return the network and device of a throughput that our tables lack."""
    names = []
    model, size = str(throughput.get("model")), printed_sample_size(throughput)
    if not throughput.get("flops_per_sample") and not find_work(throughput, size):
        names.append(f"{model} at {size}" if _find_works(model) else model)
    device, precision = str(throughput.get("device_name")), throughput.get("precision")
    if throughput.get("device_peak_flops") or (precision and _find_peak(device, str(precision))):
        return names
    if not known_device(device):
        names.append(device)
    elif precision:
        names.append(f"{device} in {precision}")
    return names
