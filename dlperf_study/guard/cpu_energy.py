"""The energy that the processors of a node used, by their own counters (RAPL), which the kernel shows as files."""

from contextlib import suppress
from pathlib import Path

#: Where the kernel has the counters, in a folder for each zone: a package, a part of one, or the whole machine.
POWERCAP = Path("/sys/class/powercap")
_PACKAGE = "package-"
MICRO = 1e-6


class CpuEnergy:
    """Joules of each processor package since this object was made; ``obstacle`` says why there are none.

    Call ``joules`` often enough that no counter begins again from 0 twice between two calls: once a minute is enough.
    """

    def __init__(self, powercap: Path | None = None) -> None:
        folder = powercap or POWERCAP
        self._counters: dict[str, _Counter] = {}
        self.obstacle = ""
        for zone in sorted(folder.glob("intel-rapl:*")):
            try:
                name = (zone / "name").read_text().strip()
                if name.startswith(_PACKAGE):
                    self._counters[name] = _Counter(zone)
            except (OSError, ValueError) as error:
                self._counters = {}
                self.obstacle = f"the energy counter in {zone} can't be read: {_reason(error)}"
                return
        if not self._counters:
            self.obstacle = f"the kernel shows no energy counter of a processor in {folder}"

    def joules(self) -> dict[str, float]:
        """Return joules by package; a package whose counter can't be read any more is missing."""
        joules = {}
        for name, counter in self._counters.items():
            with suppress(OSError, ValueError):
                joules[name] = counter.joules()
        return joules


class _Counter:
    """The counter of one zone, in microjoules, which begins again from 0 after ``max_energy_range_uj``."""

    def __init__(self, zone: Path) -> None:
        self._file = zone / "energy_uj"
        self._range = int((zone / "max_energy_range_uj").read_text())
        self._last = self._read()
        self._total = 0

    def joules(self) -> float:
        """Return the energy since the beginning in joules."""
        microjoules = self._read()
        used = microjoules - self._last
        self._total += used if used >= 0 else used + self._range
        self._last = microjoules
        return self._total * MICRO

    def _read(self) -> int:
        return int(self._file.read_text())


def _reason(error: Exception) -> str:
    """Return why; since 2020 kernels let only root read the counters."""
    if isinstance(error, PermissionError):
        return "only root may read it"
    return getattr(error, "strerror", None) or str(error)
