"""The share of the cores that a rank may use, and how often it used it up in a window."""

import time
from dataclasses import asdict

from dlperf_study.cluster.cpu_group import CpuGroup


class CpuMeter:
    """Counts from its making on."""

    def __init__(self, group: CpuGroup) -> None:
        self._group = group
        self._usage, self._cpu_seconds = group.usage(), time.process_time()

    def counts(self) -> dict[str, float]:
        """Return the limit in cores as the kernel has it, what it counted, and the CPU seconds of this process."""
        used = {"cores": self._group.cores(), "cpu_seconds": time.process_time() - self._cpu_seconds}
        return used | asdict(self._group.usage().since(self._usage))
