"""Once a second: the GPUs, the memory, the network and the energy of the processors of a node during a run.

GPUs as NVIDIA's management library (NVML) reports them: by library calls, no process is started. One that does not
support a query has no value for it, and the reason is kept: a MIG device reports no power, a card before Volta counts
no energy. The processors have counters of their own (RAPL), which the kernel shows as files.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, cast

import psutil

from dlperf_study.core.user_commands import missing_package
from dlperf_study.machines.supervision.processes import RUN_MARK, is_marked
from dlperf_study.records.lines import GpuFacts, GpuSample, NodeSample
from dlperf_study.records.writers import TelemetryWriter

INTERVAL_SECONDS = 1.0
LOOPBACK_INTERFACE = "lo"


class Telemetry:
    """Samples of this node: before the run, then every second.

    ``uuids`` are those of the GPUs that the run uses; ``mark`` is in the environment of its processes.
    """

    def __init__(self, uuids: Iterable[str], mark: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._mark = mark
        self._clock = clock
        self._gpus, self._cpus = GpuTelemetry(uuids), CpuEnergy()
        obstacles = {"gpus": self._gpus.obstacle, "cpu_energy": self._cpus.obstacle}
        named_obstacles = {name: obstacle for name, obstacle in obstacles.items() if obstacle}
        self._writer = TelemetryWriter(INTERVAL_SECONDS, self._gpus.facts(), named_obstacles)
        self._due = clock()
        self._sample("before")

    def sample_if_due(self) -> bool:
        """Take a sample if the last is a second old."""
        now = self._clock()
        if now < self._due:
            return False
        self._due = max(self._due + INTERVAL_SECONDS, now + INTERVAL_SECONDS / 2)
        self._sample("sample")
        return True

    def _sample(self, kind: Literal["before", "sample"]) -> None:
        begin_ns = time.perf_counter_ns()
        gpus = self._gpus.sample()
        memory = psutil.virtual_memory()
        energy = self._cpus.joules()
        network = network_bytes()
        end_ns = time.perf_counter_ns()
        for gpu in gpus:
            if "process_ids" in gpu:
                # In a container the driver's ids may be those of other processes: the reader needs both lists.
                gpu["run_process_ids"] = [pid for pid in gpu["process_ids"] if is_marked(pid, RUN_MARK, self._mark)]
        sample: NodeSample = {
            "kind": kind,
            "clock_ns": begin_ns,
            "sampling_seconds": (end_ns - begin_ns) * 1e-9,
            "memory_used_bytes": memory.total - memory.available,
            "cpu_energy_joules": energy,
            "network_bytes": network,
            "gpus": gpus,
        }
        self._writer.add(sample)

    def close(self, path: Path, node: int) -> None:
        """Take the last sample, write all, and close the libraries."""
        self._sample("sample")
        self._gpus.close()
        self._writer.write(path, node, self._gpus.not_reported)


def network_bytes() -> dict[str, int]:
    """Return the bytes of each network interface, without loopback."""
    counters = psutil.net_io_counters(pernic=True)
    return {name: each.bytes_recv + each.bytes_sent for name, each in counters.items() if name != LOOPBACK_INTERFACE}


#: A query of one GPU: gets the module ``pynvml`` and the handle of the GPU.
Query = Callable[[Any, Any], Any]
MILLI = 1e-3


def _clock_limits(nvml: Any, gpu: Any) -> int:
    """Return the reasons for the clocks, a bit each."""
    try:
        return int(nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu))
    except nvml.NVMLError_FunctionNotFound:
        return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))


#: What does not change during a run, by its name in the evidence.
FACTS: Mapping[str, Query] = {
    "name": lambda nvml, gpu: nvml.nvmlDeviceGetName(gpu),
    "memory_bytes": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).total,
    "power_limit_watts": lambda nvml, gpu: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu) * MILLI,
    "default_power_limit_watts": lambda nvml, gpu: nvml.nvmlDeviceGetPowerManagementDefaultLimit(gpu) * MILLI,
    "largest_sm_clock_mhz": lambda nvml, gpu: nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_SM),
    "largest_memory_clock_mhz": lambda nvml, gpu: nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_MEM),
}
#: What every sample has, by its name in the evidence. Energy is counted since the driver was loaded.
SAMPLED: Mapping[str, Query] = {
    "utilisation": lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
    "memory_used_bytes": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used,
    "power_watts": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) * MILLI,
    "energy_joules": lambda nvml, gpu: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) * MILLI,
    "sm_clock_mhz": lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
    "memory_clock_mhz": lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM),
    "temperature_celsius": lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
    "clock_limits": _clock_limits,
    "process_ids": lambda nvml, gpu: sorted(each.pid for each in nvml.nvmlDeviceGetComputeRunningProcesses_v3(gpu)),
}


class GpuTelemetry:
    """Samples of these GPUs, or the ``obstacle``.

    ``uuids``: of GPUs or MIG devices, as ``nvidia-smi -L`` prints them. ``not_reported`` has, by UUID and query, why
    the library gave no value.
    """

    def __init__(self, uuids: Iterable[str]) -> None:
        self.obstacle = ""
        self.not_reported: dict[str, dict[str, str]] = {}
        self._handles: dict[str, Any] = {}
        self._nvml: Any = None
        if uuids := list(uuids):
            self._open(uuids)

    def _open(self, uuids: Iterable[str]) -> None:
        try:
            import pynvml
        except ImportError:
            self.obstacle = missing_package("pynvml", " in the Python of the node agent")
            return
        try:
            pynvml.nvmlInit()
            self._handles = {uuid: pynvml.nvmlDeviceGetHandleByUUID(uuid) for uuid in uuids}
        except pynvml.NVMLError as error:
            self.obstacle = f"NVML: {error}"
            return
        self._nvml = pynvml

    def facts(self) -> list[GpuFacts]:
        """Return what each GPU is and what limits it, with its ``uuid``."""
        return [cast(GpuFacts, {"uuid": uuid} | self._values(FACTS, uuid)) for uuid in self._handles if self._nvml]

    def sample(self) -> list[GpuSample]:
        """Return the state of each GPU now, in the same order."""
        return [cast(GpuSample, self._values(SAMPLED, uuid)) for uuid in self._handles if self._nvml]

    def _values(self, queries: Mapping[str, Query], uuid: str) -> dict[str, Any]:
        values = {}
        for name, query in queries.items():
            try:
                values[name] = query(self._nvml, self._handles[uuid])
            except self._nvml.NVMLError as error:
                self.not_reported.setdefault(uuid, {})[name] = str(error)
        return values

    def close(self) -> None:
        """Close the library."""
        if self._nvml:
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
            self._nvml = None


#: Where the kernel has the counters, in a folder for each zone: a package, a part of one, or the whole machine.
POWERCAP = Path("/sys/class/powercap")
_PACKAGE = "package-"
MICRO = 1e-6


class CpuEnergy:
    """Joules of each processor package, or the ``obstacle``.

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
            self.obstacle = f"no energy counter of a processor in {folder}"

    def joules(self) -> dict[str, float]:
        """Return joules by package, of readable counters."""
        joules = {}
        for name, counter in self._counters.items():
            with suppress(OSError, ValueError):
                joules[name] = counter.joules()
        return joules


class _Counter:
    """The energy counter of one zone, in microjoules."""

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
