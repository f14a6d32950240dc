"""The GPUs of a run, as NVIDIA's management library (NVML) reports them: by library calls, no process is started.

A GPU that does not support a query has no value for it, and the reason is kept: a MIG device reports no power, a card
before Volta counts no energy.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

#: A query of one GPU: gets the module ``pynvml`` and the handle of the GPU.
Query = Callable[[Any, Any], Any]
MILLI = 1e-3
PACKAGE = "nvidia-ml-py"


def _clock_limits(nvml: Any, gpu: Any) -> int:
    """Return why the clocks are as they are, a bit for each reason; drivers before 535 have the older name."""
    try:
        return int(nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu))
    except nvml.NVMLError_FunctionNotFound:
        return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))


def _process_ids(nvml: Any, gpu: Any) -> list[int]:
    return sorted(process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses_v3(gpu))


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
    "process_ids": _process_ids,
}


class GpuTelemetry:
    """Samples of these GPUs; ``obstacle`` says why there are none, and is empty if there are.

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
            self.obstacle = f"the package {PACKAGE} is not installed in the Python of the guard"
            return
        try:
            pynvml.nvmlInit()
            self._handles = {uuid: pynvml.nvmlDeviceGetHandleByUUID(uuid) for uuid in uuids}
        except pynvml.NVMLError as error:
            self.obstacle = f"NVML: {error}"
            return
        self._nvml = pynvml

    def facts(self) -> list[dict[str, Any]]:
        """Return what each GPU is and what limits it, with its ``uuid``."""
        return [{"uuid": uuid} | self._values(FACTS, uuid) for uuid in self._handles if self._nvml]

    def sample(self) -> list[dict[str, Any]]:
        """Return the state of each GPU now, in the same order."""
        return [self._values(SAMPLED, uuid) for uuid in self._handles if self._nvml]

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
