"""What a call that measures a study did: the runs it measured, what failed, and which configurations nodes refuse."""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dlperf_study.study.configuration import Configuration

if TYPE_CHECKING:
    from dlperf_study.execution.measurement import MeasurementSummary


@dataclass
class Refusals:
    """The configurations that failed before their start, by reason."""

    _configurations: dict[tuple[str, str], list[Configuration]] = field(default_factory=dict)

    def add(self, configuration: Configuration, message: str) -> None:
        """Note that an execution failed before anything started."""
        refused = self._configurations.setdefault((configuration.framework, re.sub(r"\d+", "#", message)), [])
        if configuration not in refused:
            refused.append(configuration)

    def forget(self, configuration: Configuration) -> None:
        """Note that an execution started: the nodes refuse this framework no more."""
        for key in [key for key in self._configurations if key[0] == configuration.framework]:
            del self._configurations[key]

    def would_refuse(self, configuration: Configuration) -> bool:
        """Return whether two smaller configurations were refused alike.

        A configuration with fewer nodes, or fewer devices on each, may have what it needs.
        """
        for (framework, _), refused in self._configurations.items():
            is_large = any(
                configuration.nodes >= entry.nodes and configuration.devices_per_node >= entry.devices_per_node
                for entry in refused
            )
            if framework == configuration.framework and len(refused) > 1 and is_large:
                return True
        return False


@dataclass
class StudyResult:
    """The measured runs and the failures of a call.

    ``out_of_memory``: why configurations do not fit in memory, by identity, also those found by earlier calls.
    ``failure_reasons``: why executions failed, by the identity of a configuration, since it last completed a run.
    ``refusals``: those that failed before anything started.
    """

    measured: int = 0
    already_measured: int = 0
    failures: list[str] = field(default_factory=list)
    out_of_memory: dict[str, str] = field(default_factory=dict)
    failure_reasons: dict[str, list[str]] = field(default_factory=dict)
    refusals: Refusals = field(default_factory=Refusals)

    def add(self, configuration_id: str, summary: "MeasurementSummary") -> None:
        """Count what an execution of a configuration did."""
        self.measured += summary.completed
        if summary.out_of_memory:
            self.measured += 1
            self.out_of_memory[configuration_id] = summary.out_of_memory
        reasons = self.failure_reasons.setdefault(configuration_id, [])
        if summary.completed:
            reasons.clear()
        if summary.is_failure:
            self.failures.append(f"{configuration_id}: {summary.message}")
            reasons.append(re.sub(r"\d+", "#", summary.message))

    def keeps_failing(self, configuration_id: str) -> bool:
        """Return whether a configuration failed twice for one reason.

        Numbers in a reason, as those of runs, processes and ports, may differ.
        """
        last_two = self.failure_reasons.get(configuration_id, [])[-2:]
        return len(last_two) == 2 and len(set(last_two)) == 1
