"""One point of a study's grid: a training and how it is measured, with the one declaration of every parameter."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any

from dlperf_study.errors import StudyFileError
from dlperf_study.paths import is_selftest
from dlperf_study.study.parameter import Parameter, Scalar, Scope, parameter, parameter_of, typed
from dlperf_study.study.training_parameters import TrainingParameters

MEASUREMENT, SELFTEST = Scope.MEASUREMENT, Scope.SELFTEST
#: The parameters of which the default is part of an identity as well; of all others, which were added later, only
#: another value is, so that a configuration that does not use them keeps its name and its runs.
IDENTIFIED_BY_DEFAULT = frozenset(
    (
        *("study", "cluster", "framework", "strategy", "model", "quick", "image_size", "classes", "nodes"),
        *("devices_per_node", "servers", "batch_per_device", "precision", "loss_scaling", "compiler", "memory_format"),
        *("gradient_compression", "fusion_mib", "cycle_time_ms", "hierarchical", "optimizer", "data_source"),
        *("classifier", "sample_ratio", "threads_per_device", "seed", "warmup_steps", "max_warmup_seconds"),
        *("measured_steps", "measured_seconds", "computation_steps", "exchange_steps"),
    )
)
#: Far above what anybody measures, as the limits of ``training_parameters.py`` are.
MAX_STEPS, MAX_WINDOW_SECONDS = 1_000_000, 24 * 3600


@dataclass(frozen=True)
class Configuration(TrainingParameters):
    """What one run trains, on what, and how it is measured.

    All values are flat scalars, by the same names in a study's YAML, in the ``parameters`` cell of the notebook, in
    ``run.json`` and as columns of the dataset. A field declares all there is to know of its parameter: everything
    that has to know it is derived from here, see ``parameter.py``.
    """

    warmup_steps: int = parameter(
        5,
        "Warm-up steps",
        "least steps before the measured window",
        scope=MEASUREMENT,
        unit="steps",
        bounds=(1, MAX_STEPS),
    )
    max_warmup_seconds: float = parameter(
        10.0,
        "Longest warm-up",
        "time within which further warm-up steps follow until steps are alike; 0: the warm-up steps alone",
        scope=MEASUREMENT,
        unit="s",
        bounds=(0, MAX_WINDOW_SECONDS),
    )
    measured_steps: int = parameter(
        20,
        "Measured steps",
        "least steps of the measured window",
        scope=MEASUREMENT,
        unit="steps",
        bounds=(1, MAX_STEPS),
        note="fewer than 9 can't be tested for a steady state, and fewer than 50 rarely show one",
    )
    measured_seconds: float = parameter(
        0.0,
        "Measured time",
        "time for which the measured window has steps enough; 0: the measured steps alone",
        scope=MEASUREMENT,
        unit="s",
        bounds=(0, MAX_WINDOW_SECONDS),
        note="the ranks agree on the number of steps at the pace of the last warm-up steps",
    )
    computation_steps: int = parameter(
        -1,
        "Computation steps",
        "steps without exchange, half before and half after the measured window; -1: as many as it has; 0: none",
        default_name="as many as are measured",
        scope=MEASUREMENT,
        unit="steps",
        bounds=(0, MAX_STEPS),
        note="fewer than the measured steps make what is exposed less certain",
    )
    exchange_steps: int = parameter(
        10,
        "Exchange steps",
        "exchanges of each window without computation; 0: not measured",
        scope=MEASUREMENT,
        unit="exchanges",
        bounds=(0, MAX_STEPS),
    )
    input_steps: int = parameter(
        10,
        "Input steps",
        "batches of the window in which the data source delivers and nothing trains; 0: not measured",
        scope=MEASUREMENT,
        unit="batches",
        bounds=(0, MAX_STEPS),
        note="measured last, and only of sources for which steps wait",
    )
    trace_steps: int = parameter(
        0,
        "Traced steps",
        "steps of one more run, never counted, that is traced; 0: no such run",
        scope=MEASUREMENT,
        unit="steps",
        bounds=(0, 1_000),
        in_identity=False,
        note="Horovod writes a [timeline](horovod.md#the-timeline), other libraries write none",
    )
    repeats: int = parameter(
        3,
        "Repeats",
        "runs planned for each configuration",
        scope=MEASUREMENT,
        unit="runs",
        bounds=(1, 1_000),
        in_identity=False,
        always_known=True,
        note="an interval needs 3",
    )
    timeout_seconds: int = parameter(
        600,
        "Timeout",
        "time after which a run is ended",
        scope=MEASUREMENT,
        unit="s",
        bounds=(1, 30 * 24 * 3600),
        in_identity=False,
    )

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], source: str = "configuration") -> "Configuration":
        """Build one from names and values.

        Raises:
            StudyFileError: a name is unknown or missing, a value is of a wrong type, or a study that is none of the
                self-test uses a parameter of the self-test; the message names ``source``.

        """
        if not PARAMETERS.keys() >= values.keys():
            unknown = sorted(values.keys() - PARAMETERS.keys())
            raise StudyFileError(f"{source}: unknown {', '.join(unknown)}; the parameters are {', '.join(PARAMETERS)}")
        missing = [name for name in REQUIRED if name not in values]
        if missing:
            raise StudyFileError(f"{source}: missing {', '.join(missing)}")
        configuration = cls(**{name: typed(source, PARAMETERS[name], value) for name, value in values.items()})
        if not is_selftest(configuration.study):
            for name, value in configuration.selftest_values().items():
                study = f"study {configuration.study!r} is none of it"
                raise StudyFileError(f"{source}: {name} is {value}, which is for the self-test only, and {study}")
        return configuration

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
        values = json.dumps(self.identifying_values(), sort_keys=True)
        digest = hashlib.sha256(values.encode()).hexdigest()[:8]
        servers = f"{self.servers}s" if self.servers else ""
        return (
            f"{self.framework}-{self.strategy}-{self.model}-{self.nodes}n{self.devices_per_node}d{servers}"
            f"-b{self.batch_per_device}-{self.precision}-{digest}"
        )

    @property
    def traced(self) -> "Configuration":
        """The run in which the library traces what it does: its steps are never counted."""
        training = replace(self, measured_steps=self.trace_steps, measured_seconds=0.0, trace_steps=0)
        return replace(training, computation_steps=0, exchange_steps=0, input_steps=0)

    @property
    def reported(self) -> "Configuration":
        """The run in which NCCL reports what it chose: two steps, and an exchange of each size; none is counted."""
        training = replace(self, measured_steps=2, measured_seconds=0.0, trace_steps=0, max_warmup_seconds=0.0)
        return replace(training, computation_steps=0, exchange_steps=1, input_steps=0)

    def computation_halves(self, measured_steps: int) -> tuple[int, int]:
        """Return the steps without exchange before and after a measured window of ``measured_steps``."""
        steps = measured_steps if self.computation_steps < 0 else self.computation_steps
        return steps // 2, steps - steps // 2

    def as_dict(self) -> dict[str, Scalar]:
        """Return the parameters in order of declaration."""
        return {name: getattr(self, name) for name in FIELD_NAMES}

    def identifying_values(self) -> dict[str, Scalar]:
        """Return the parameters without those that change how often and how long is measured, but not what.

        A parameter that is not in ``IDENTIFIED_BY_DEFAULT`` is left out while it has its default.
        """
        return self._values_other_than(_LEFT_OUT_VALUES)

    def selftest_values(self) -> dict[str, Scalar]:
        """Return the parameters of the self-test that do not have their defaults; none in any other study."""
        return self._values_other_than(_SELFTEST_DEFAULTS)

    def _values_other_than(self, left_out: Mapping[str, Scalar | None]) -> dict[str, Scalar]:
        """Return those of some parameters that do not have the value given for each."""
        values: dict[str, Scalar] = {}
        for name, left_out_value in left_out.items():
            value = getattr(self, name)
            if value != left_out_value:
                values[name] = value
        return values

    def displayed_values(self) -> dict[str, Scalar]:
        """Return the parameters as pages show them: the cluster without the folder of its file."""
        return self.as_dict() | {"cluster": cluster_title(self.cluster)}


#: Every parameter by name, in order of declaration.
PARAMETERS: dict[str, Parameter] = {entry.name: parameter_of(entry) for entry in fields(Configuration)}
FIELD_NAMES = tuple(PARAMETERS)
#: The parameters without a default.
REQUIRED = tuple(name for name, entry in PARAMETERS.items() if entry.default is None)
#: The parameters of an identity, each with the value at which it is left out; None, which none has: it never is.
_LEFT_OUT_VALUES = {
    name: None if name in IDENTIFIED_BY_DEFAULT else entry.default
    for name, entry in PARAMETERS.items()
    if entry.in_identity
}
_SELFTEST_DEFAULTS = {name: entry.default for name, entry in PARAMETERS.items() if entry.scope is SELFTEST}

#: What a study of strong scaling gives in place of ``batch_per_device``, which a configuration has.
GLOBAL_BATCH = Parameter(
    "Global batch",
    "samples per step, all devices together",
    unit="samples",
    bounds=(1, 100_000_000),
    note="strong scaling only",
    name="global_batch",
    type=int,
)


def parameters_of(*scopes: Scope) -> dict[str, Parameter]:
    """Return the parameters of some scopes by name, in order of declaration."""
    return {name: entry for name, entry in PARAMETERS.items() if entry.scope in scopes}


def study_parameters() -> dict[str, Parameter]:
    """Return what a study may fix or vary, by name: of workload, network and self-test, and the global batch."""
    parameters = {}
    for name, entry in parameters_of(Scope.WORKLOAD, Scope.NETWORK, SELFTEST).items():
        parameters[name] = entry
        if name == "batch_per_device":
            parameters[GLOBAL_BATCH.name] = GLOBAL_BATCH
    return parameters


def cluster_title(name: str) -> str:
    """Return what pages call a cluster: the name of its file, and not the folder where a user keeps it."""
    return PurePath(name).stem if "/" in name else name
