"""What the checks know of devices, machines and networks; every line of these tables names its source."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

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
