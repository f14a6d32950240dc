"""Energy, memory and limited clocks."""

from collections.abc import Iterator
from dataclasses import dataclass

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings import number

#: The memory that decides what fits: that of a GPU if it is known, else that of a process.
MEMORY = ("peak_device_bytes", "peak_process_bytes")


@dataclass(frozen=True)
class Energy:
    """The energy per sample of one configuration; ``device``: whose energy it is.

    ``extreme``: it is the lowest or the highest of several.
    """

    subject: str
    energy: number.Number
    device: str
    extreme: str = ""


@dataclass(frozen=True)
class NoEnergy:
    """Why no energy was measured."""

    obstacles: tuple[str, ...]


@dataclass(frozen=True)
class PeakMemory:
    """The largest peak of memory; ``column``: of a GPU or of a process."""

    subject: str
    bytes: float
    column: str


@dataclass(frozen=True)
class LimitedClocks:
    """Runs in which power or temperature limited a GPU's clock; ``share``: of the telemetry readings, at most."""

    runs: int
    total: int
    share: float


def page(dataset: Dataset) -> Iterator[object]:
    """Yield energy, memory and clocks."""
    yield from energy(dataset)
    yield from memory(dataset)
    yield from clocks(dataset)


def energy(dataset: Dataset) -> Iterator[object]:
    """Yield the least and the most energy per sample."""
    runs = dataset.completed_runs
    rows = dataset.measured.dropna(subset="energy_per_sample").sort_values("energy_per_sample")
    if rows.empty:
        obstacles = tuple(dict.fromkeys(runs["energy_obstacle"].dropna()))
        if obstacles:
            yield NoEnergy(obstacles)
        return
    devices = ", ".join(dict.fromkeys(runs["energy_of"].dropna()))
    extremes = {"lowest": rows["configuration_id"].iloc[0], "highest": rows["configuration_id"].iloc[-1]}
    if len(rows) == 1:
        extremes = {"": rows["configuration_id"].iloc[0]}
    for extreme, configuration_id in extremes.items():
        row = dataset.configuration_rows[configuration_id]
        yield Energy(configuration_id, number.from_column(row, "energy_per_sample"), devices, extreme)


def memory(dataset: Dataset) -> Iterator[PeakMemory]:
    """Yield the largest peak of memory."""
    for column in MEMORY:
        peaks = dataset.measured.dropna(subset=column)
        if len(peaks):
            row = next(peaks.sort_values(column).iloc[::-1].itertuples())
            yield PeakMemory(str(row.configuration_id), float(getattr(row, column)), column)
            return


def clocks(dataset: Dataset) -> Iterator[LimitedClocks]:
    """Yield in how many runs clocks were limited, if known."""
    shares = dataset.completed_runs["clock_limited_share"].dropna()
    if len(shares):
        yield LimitedClocks(int((shares > 0).sum()), len(shares), float(shares.max()))
