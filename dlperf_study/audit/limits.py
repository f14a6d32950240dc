"""What a rate asks of each device, and what that can do at most."""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from dlperf_study.audit.result_cell import ResultCell
from dlperf_study.study.parameters import canonical_precision

# What the checks know of devices, machines and networks; every line of these tables names its source.


_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Instance:
    """A machine that a cloud rents, and the devices in it."""

    name: str
    device: str
    devices: int
    source: str


@dataclass(frozen=True)
class Peak:
    """The FLOP/s a device reaches at most in one precision; of a CPU, one thread of it."""

    device: str
    precision: str
    flops: float
    per_thread: bool
    source: str

    def times(self, threads: int) -> "Peak":
        """Return what so many threads reach at most together."""
        return replace(self, flops=self.flops * threads, per_thread=False)


@dataclass(frozen=True)
class Work:
    """The FLOPs of one sample, forward and backward, at one input size; ``size`` is pixels or tokens a side."""

    model: str
    size: int
    usual: bool
    flops: float
    convolutional: bool
    source: str


@cache
def instances() -> Mapping[str, Instance]:
    """Return the machines by name."""
    rows = _rows("instances")
    return {row["name"]: Instance(row["name"], row["device"], int(row["devices"]), row["source"]) for row in rows}


@cache
def peaks() -> tuple[Peak, ...]:
    """Return what devices reach at most."""
    return tuple(
        Peak(row["device"], row["precision"], float(row["peak_flops"]), row["per"] == "thread", row["source"])
        for row in _rows("devices")
    )


@cache
def works() -> tuple[Work, ...]:
    """Return what networks ask for."""
    return tuple(
        Work(
            row["model"],
            int(row["size"]),
            row["usual"] == "yes",
            float(row["flops_per_sample"]),
            row["kind"] == "convolution",
            row["source"],
        )
        for row in _rows("networks")
    )


def _rows(name: str) -> list[dict[str, str]]:
    with open(_DATA / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


_STATED = "as the table says"
#: How many times fewer multiplications a convolution may take than its definition: Winograd's F(4×4, 3×3) saves 4
#: (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016).
FEWER = 4.0
WINOGRAD = "3×3 convolutions by Winograd's algorithm take up to 4 times fewer multiplications than are counted"


def impossible(rate: ResultCell, work: Work, peak: Peak) -> bool:
    """Say whether no algorithm makes a rate possible."""
    return needed(rate, work) > peak.flops * (FEWER if work.convolutional else 1)


def needed(rate: ResultCell, work: Work) -> float:
    """Return the FLOP/s each device must reach: throughput × FLOPs of a sample / devices."""
    return rate.value * work.flops / (rate.world_size or 1)


def peak_of(rate: ResultCell) -> Peak | None:
    """Return what one device of a rate reaches at most: as the table says, or as its maker does."""
    name, precision = str(rate.get("device_name")), str(rate.get("precision"))
    if rate.get("device_peak_flops"):
        return Peak(name, precision, float(rate.get("device_peak_flops")), False, _STATED)
    known = _known_peak(name, precision)
    if known is None or not known.per_thread:
        return known
    threads = rate.get("threads_per_device")
    return known.times(int(threads)) if threads else None


def _known_peak(device: str, precision: str) -> Peak | None:
    """Return the peak of the device whose name is in that of another, in a precision by any of its names."""
    same = canonical_precision(precision).lower()
    return next((peak for peak in peaks() if peak.precision == same and _names(device, peak.device)), None)


def _names(name: str, device: str) -> bool:
    """Say whether a name holds that of a device, as no part of a longer number: an RTX A1000 is no A100."""
    return bool(re.search(rf"(?<!\w){re.escape(device)}(?!\d)", name, re.IGNORECASE))


def size_of(rate: ResultCell) -> int | None:
    """Return the size of a sample that the source states: pixels or tokens; None where it doesn't."""
    size = rate.get("image_size") or rate.get("sequence_length")
    return None if size is None or {"image_size", "sequence_length"} & {*rate.inferred} else int(size)


def work_of(rate: ResultCell, size: int | None) -> Work | None:
    """Return the FLOPs of a sample of that size, or of the network's usual one for None; None where not known."""
    if rate.get("flops_per_sample"):
        return Work(str(rate.get("model")), size or 0, True, float(rate.get("flops_per_sample")), True, _STATED)
    known = _known_works(str(rate.get("model")))
    return next((work for work in known if work.size == size or (size is None and work.usual)), None)


def _known_works(model: str) -> list[Work]:
    """Return the sizes of a network, however its name is spelt: ``ResNet-50`` is ``resnet50``."""
    return [work for work in works() if _spelt_alike(work.model) == _spelt_alike(model)]


def _spelt_alike(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def names_both(rate: ResultCell) -> bool:
    """Say whether a rate names its network and its device, or what these ask for and can do."""
    network = rate.get("model") or rate.get("flops_per_sample")
    return bool(network and (rate.get("device_name") or rate.get("device_peak_flops")))


def unknown_of(rate: ResultCell) -> list[str]:
    """Return what a rate with a network and a device says of them that no table of facts knows.

    A size that is not stated is the question of another check.
    """
    return [*_unknown_network(rate, str(rate.get("model"))), *_unknown_device(rate, str(rate.get("device_name")))]


def _unknown_network(rate: ResultCell, model: str) -> Iterator[str]:
    size = size_of(rate)
    if rate.get("flops_per_sample") or work_of(rate, size):
        return
    yield f"{model} at {size}" if _known_works(model) else model


def _unknown_device(rate: ResultCell, device: str) -> Iterator[str]:
    precision = rate.get("precision")
    if rate.get("device_peak_flops") or (precision and _known_peak(device, str(precision))):
        return
    if not any(peak.device.lower() in device.lower() for peak in peaks()):
        yield device
    elif precision:
        yield f"{device} in {precision}"
