"""What nodes refused before anything started, and which configurations they would refuse for the same reason."""

import re
from dataclasses import dataclass, field

from dlperf_study.study.configuration import Configuration


@dataclass
class Refusals:
    """The configurations that failed before anything started, by framework and reason; numbers in one may differ."""

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
        """Return whether two of its framework were refused alike, and it needs no less than the smallest of them.

        A configuration with fewer nodes, or fewer devices on each, may have what it needs.
        """
        for (framework, _), refused in self._configurations.items():
            least = [min(entry.nodes for entry in refused), min(entry.devices_per_node for entry in refused)]
            is_large = configuration.nodes >= least[0] and configuration.devices_per_node >= least[1]
            if framework == configuration.framework and len(refused) > 1 and is_large:
                return True
        return False
