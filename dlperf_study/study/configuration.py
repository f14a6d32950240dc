"""One point of a study's grid."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any

from dlperf_study.errors import StudyFileError

Scalar = str | int | float | bool

#: How a run is repeated and bounded; changing it does not make another configuration.
PROTOCOL = ("trace_steps", "repeats", "timeout_seconds")


def cluster_title(name: str) -> str:
    """Return what pages call a cluster: the name of its file, and not the folder where a user keeps it."""
    return PurePath(name).stem if "/" in name else name


@dataclass(frozen=True)
class Configuration:
    """What one run trains, on what, and how it is measured.

    The same names stand in a study's YAML, in the ``parameters`` cell of the notebook, in
    ``run.json`` and as columns of the dataset. All values are flat scalars.
    """

    study: str
    cluster: str
    framework: str
    strategy: str
    model: str
    quick: bool = False
    image_size: int = 224
    classes: int = 1000
    nodes: int = 1
    devices_per_node: int = 1
    servers: int = 0
    batch_per_device: int = 32
    precision: str = "fp32"
    loss_scaling: str = "none"
    compiler: str = "none"
    memory_format: str = "nchw"
    gradient_compression: str = "none"
    fusion_mib: int = -1
    cycle_time_ms: float = -1.0
    hierarchical: bool = False
    optimizer: str = "sgd"
    data_source: str = "synthetic_device"
    classifier: str = "replicated"
    sample_ratio: float = 1.0
    threads_per_device: int = 1
    seed: int = 0
    warmup_steps: int = 5
    measured_steps: int = 20
    computation_steps: int = 10
    exchange_steps: int = 10
    trace_steps: int = 0
    repeats: int = 3
    timeout_seconds: int = 600

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], source: str = "configuration") -> "Configuration":
        """Build one from names and values, refusing unknown names and wrong types."""
        known = {field.name: field.type for field in fields(cls)}
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise StudyFileError(f"{source}: unknown {', '.join(unknown)}; the parameters are {', '.join(known)}")
        missing = [name for name in ("study", "cluster", "framework", "strategy", "model") if name not in values]
        if missing:
            raise StudyFileError(f"{source}: missing {', '.join(missing)}")
        return cls(**{name: _scalar(source, name, value, known[name]) for name, value in values.items()})

    @property
    def world_size(self) -> int:
        """Number of training processes; one per device."""
        return self.nodes * self.devices_per_node

    @property
    def global_batch(self) -> int:
        """Samples per step, all devices together."""
        return self.batch_per_device * self.world_size

    @cached_property
    def identity(self) -> str:
        """A readable name, unique among all configurations, usable as a folder."""
        servers = f"{self.servers}s" if self.servers else ""
        return (
            f"{self.framework}-{self.strategy}-{self.model}-{self.nodes}n{self.devices_per_node}d{servers}"
            f"-b{self.batch_per_device}-{self.precision}-{self._digest()}"
        )

    @property
    def traced(self) -> "Configuration":
        """The run in which the library traces what it does: its steps are never counted."""
        return replace(self, measured_steps=self.trace_steps, computation_steps=0, exchange_steps=0, trace_steps=0)

    def as_dict(self) -> dict[str, Scalar]:
        """Return the parameters in order of declaration."""
        return asdict(self)

    def displayed_values(self) -> dict[str, Scalar]:
        """Return the parameters with the cluster called as on pages: not by the folder of its file."""
        return self.as_dict() | {"cluster": cluster_title(self.cluster)}

    def _digest(self) -> str:
        values = {name: value for name, value in self.as_dict().items() if name not in PROTOCOL}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


FIELD_NAMES = tuple(field.name for field in fields(Configuration))


def _scalar(source: str, name: str, value: Any, expected: Any) -> Any:
    """Return ``value`` as the field's type; an int may stand for a float, nothing else is converted."""
    if expected is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not expected:
        raise StudyFileError(f"{source}: {name} is {value!r}, which is not of type {expected.__name__}")
    return value
