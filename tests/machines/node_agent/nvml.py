"""NVIDIA's management library of a machine with GPUs, for machines without: the C functions that ``pynvml`` calls.

The real package loads it in place of ``libnvidia-ml.so.1``, so that names, arguments and errors are the library's own.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.nvidia_smi import A100, UUIDS

pynvml = pytest.importorskip("pynvml", reason="needs nvidia-ml-py (enable: make)")

MIG_UUID = "MIG-7e1b2c1e-58a0-5f4c-9d0e-0d8f5a3c2b11"
GIB = 2**30
#: What a MIG device does not say: `nvidia-smi` prints N/A for it.
UNSUPPORTED_BY_MIG = (
    *("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEnergyConsumption"),
    *("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementDefaultLimit", "nvmlDeviceGetTemperature"),
    *("nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetCurrentClocksEventReasons"),
)


@dataclass
class Gpu:
    """A device: what its functions answer, and those that it does not support."""

    uuid: str = UUIDS[0]
    name: str = A100
    millijoules: int = 9_000_000_000
    milliwatts: int = 400_000
    limit_milliwatts: int = 400_000
    default_limit_milliwatts: int = 400_000
    clocks_mhz: dict[int, int] = field(default_factory=lambda: {1: 1410, 2: 1593})
    used_bytes: int = 30 * GIB
    percent: int = 97
    celsius: int = 61
    limits: int = 0
    process_ids: tuple[int, ...] = ()
    unsupported: tuple[str, ...] = ()


#: The functions that answer with one number, and the field of the device that has it.
NUMBERS = {
    "nvmlDeviceGetEnforcedPowerLimit": "limit_milliwatts",
    "nvmlDeviceGetPowerManagementDefaultLimit": "default_limit_milliwatts",
    "nvmlDeviceGetPowerUsage": "milliwatts",
    "nvmlDeviceGetTotalEnergyConsumption": "millijoules",
    "nvmlDeviceGetTemperature": "celsius",
    "nvmlDeviceGetCurrentClocksEventReasons": "limits",
    "nvmlDeviceGetCurrentClocksThrottleReasons": "limits",
}


class Library:
    """The functions of the library; each gets what ``pynvml`` passes, and returns a code."""

    def __init__(self, *gpus: Gpu, lacks: tuple[str, ...] = (), initialised: int = pynvml.NVML_SUCCESS) -> None:
        self.gpus, self._lacks, self._initialised = gpus, lacks, initialised
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        function = getattr(type(self), f"_{name}", None)
        if (function is None and name not in NUMBERS) or name in self._lacks:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if not name.startswith("nvmlDeviceGet") or name == "nvmlDeviceGetHandleByUUID":
                return int(function(self, *arguments))
            gpu = self.gpus[ctypes.cast(arguments[0], ctypes.c_void_p).value - 1]  # type: ignore[operator]
            if name in gpu.unsupported:
                return int(pynvml.NVML_ERROR_NOT_SUPPORTED)
            if name in NUMBERS:
                arguments[-1]._obj.value = getattr(gpu, NUMBERS[name])
                return int(pynvml.NVML_SUCCESS)
            return int(function(self, gpu, *arguments[1:]) or pynvml.NVML_SUCCESS)

        return call

    def _nvmlInitWithFlags(self, flags: int) -> int:
        return self._initialised

    def _nvmlShutdown(self) -> int:
        return int(pynvml.NVML_SUCCESS)

    def _nvmlDeviceGetHandleByUUID(self, uuid: Any, handle: Any) -> int:
        for number, gpu in enumerate(self.gpus, 1):
            if gpu.uuid.encode() == uuid.value:
                # A handle is a pointer; here it is the number of the device.
                ctypes.c_void_p.from_address(ctypes.addressof(handle._obj)).value = number
                return int(pynvml.NVML_SUCCESS)
        return int(pynvml.NVML_ERROR_NOT_FOUND)

    def _nvmlDeviceGetName(self, gpu: Gpu, buffer: Any, size: Any) -> None:
        buffer.value = gpu.name.encode()

    def _nvmlDeviceGetMemoryInfo(self, gpu: Gpu, memory: Any) -> None:
        memory._obj.total, memory._obj.used = 80 * GIB, gpu.used_bytes

    def _nvmlDeviceGetMaxClockInfo(self, gpu: Gpu, kind: Any, clock: Any) -> None:
        clock._obj.value = {1: 1410, 2: 1593}[kind.value]

    def _nvmlDeviceGetUtilizationRates(self, gpu: Gpu, throughputs: Any) -> None:
        throughputs._obj.gpu = gpu.percent

    def _nvmlDeviceGetClockInfo(self, gpu: Gpu, kind: Any, clock: Any) -> None:
        clock._obj.value = gpu.clocks_mhz[kind.value]

    def _nvmlDeviceGetComputeRunningProcesses_v3(self, gpu: Gpu, count: Any, processes: Any) -> int | None:
        size, count._obj.value = count._obj.value, len(gpu.process_ids)
        if size < len(gpu.process_ids):
            return int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
        for index, pid in enumerate(gpu.process_ids):
            processes[index].pid = pid
        return None


def load(library: Library, monkeypatch: pytest.MonkeyPatch) -> Library:
    """Let ``pynvml`` call this library."""
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return library
