"""One point of a study's grid: a training and how it is measured, with the one declaration of every parameter."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any

from dlperf_study.core.errors import RecordError, StudyFileError
from dlperf_study.core.paths import is_selftest
from dlperf_study.study import parallel_parameters, renamed, training_parameters
from dlperf_study.study.layout import Layout
from dlperf_study.study.parameter import (
    IMAGES,
    SEQUENCES,
    Parameter,
    Scalar,
    Scope,
    Value,
    declared_parameter,
    parameter,
    typed,
)
from dlperf_study.study.program import OWN_PROGRAM, program_values

PLAN, SELFTEST = Scope.PLAN, Scope.SELFTEST
#: The parameters of which the default is part of an identity as well; of all others, which were added later, only
#: another value is, so that a configuration that does not use them keeps its name and its runs.
IDENTIFIED_BY_DEFAULT = {"study", "cluster", "framework", "strategy", "model", "quick", "image_size", "classes"}
IDENTIFIED_BY_DEFAULT |= {"devices_per_node", "parameter_servers", "batch_per_device", "precision", "loss_scaling"}
IDENTIFIED_BY_DEFAULT |= {"compiler", "memory_format", "gradient_compression", "fusion_mib", "cycle_time_ms"}
IDENTIFIED_BY_DEFAULT |= {"hierarchical", "optimizer", "data_loader", "classifier", "sample_ratio"}
IDENTIFIED_BY_DEFAULT |= {"threads_per_device", "seed", "warmup_steps", "max_warmup_seconds", "measured_steps"}
IDENTIFIED_BY_DEFAULT |= {"nodes", "measured_seconds", "compute_only_steps", "communication_only_steps"}
#: How many processes train, where, and on how many samples: known of every program.
SCALE = ("nodes", "devices_per_node", "parameter_servers", "batch_per_device")
#: The steps of a run without the windows of computation, communication and input.
_TRAINING_ALONE: dict[str, Any] = {"compute_only_steps": 0, "communication_only_steps": 0, "input_only_steps": 0}
#: Far above what anybody measures, as the limits of ``training_parameters.py`` are.
MAX_STEPS, MAX_WINDOW_SECONDS = 1_000_000, 24 * 3600


def _measurement(
    default: Value, label: str, meaning: str, unit: str, bounds: tuple[float, float], **details: Any
) -> Value:
    """Return the field of a parameter of the measurement."""
    return parameter(default, label, meaning, scope=Scope.MEASUREMENT, unit=unit, bounds=bounds, **details)


#: Parameters of earlier versions, which records may have, with what to do about them in a study file: none of them
#: identified a configuration.
FORMER_PARAMETERS = {"trace_steps": "leave it out: the timeline of Horovod is not recorded any more"}


@dataclass(frozen=True)
class Configuration(parallel_parameters.ParallelParameters, training_parameters.TrainingParameters):
    """What one run trains, on what, and how it is measured.

    All values are flat scalars, by the same names in a study's YAML, in the ``parameters`` cell of the notebook, in
    ``run.json`` and as columns of the dataset. A field declares all there is to know of its parameter: everything
    that has to know it is derived from here, see ``parameter.py``.
    """

    warmup_steps: int = _measurement(5, "Warm-up steps", "minimum number of warm-up steps", "steps", (1, MAX_STEPS))
    max_warmup_seconds: float = _measurement(
        10.0,
        "Longest warm-up",
        "time limit of further warm-up until steps converge; 0: no further warm-up",
        "s",
        (0, MAX_WINDOW_SECONDS),
    )
    measured_steps: int = _measurement(
        20,
        "Measured steps",
        "minimum steps of the measured window",
        "steps",
        (1, MAX_STEPS),
        note="the steady-state test needs 9 and is rarely conclusive below 50",
    )
    measured_seconds: float = _measurement(
        0.0,
        "Measured time",
        "minimum duration of the measured window; 0: measured_steps alone decide",
        "s",
        (0, MAX_WINDOW_SECONDS),
        default_name="not set",
        note="ranks agree on the number of steps from the speed of the warm-up",
    )
    compute_only_steps: int = _measurement(
        -1,
        "Compute-only steps",
        "compute-only steps, half before and half after the measured window; -1: measured_steps; 0: none",
        "steps",
        (0, MAX_STEPS),
        default_name="as many as are measured",
        note="fewer widen the CI of exposed communication",
    )
    communication_only_steps: int = _measurement(
        10,
        "Communication-only steps",
        "repetitions per communication-only window; 0: none",
        "steps",
        (0, MAX_STEPS),
    )
    input_only_steps: int = _measurement(
        10,
        "Input-only steps",
        "batches of the data-loader-only window; 0: none",
        "batches",
        (0, MAX_STEPS),
        note="only for data loaders that make steps wait",
    )
    breakdown_from: int = _measurement(
        1,
        "Broken down from run",
        "first repetition that measures the step breakdown",
        "",
        (1, 1_000),
        in_identity=False,
        note="leave at least three repetitions with it",
    )
    repetitions: int = _measurement(
        3,
        "Repetitions",
        "planned runs per configuration",
        "runs",
        (1, 1_000),
        in_identity=False,
        always_known=True,
        note="a CI needs 3",
    )
    timeout_seconds: int = _measurement(
        600, "Timeout", "time limit of a run", "s", (1, 30 * 24 * 3600), in_identity=False
    )
    own_program: str = parameter("", "Own program", "user's program; empty: built-in model", scope=PLAN)
    settings: str = parameter("", "Settings", "program settings of the study as JSON", scope=PLAN)
    program_hash: str = parameter(
        "", "Program hash", "hash of a program's declaration and files", scope=PLAN, in_identity=False
    )

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], source: str = "configuration") -> "Configuration":
        """Build one from names and values.

        Raises StudyFileError, which names ``source``, where a name is unknown or missing, a value is of a wrong type,
        or a study that is none of the self-test uses a parameter of the self-test.
        """
        if not PARAMETERS.keys() >= values.keys():
            unknown = sorted(values.keys() - PARAMETERS.keys())
            raise StudyFileError(f"{source}: unknown {', '.join(unknown)}; the parameters are {', '.join(PARAMETERS)}")
        missing = [name for name in REQUIRED if name not in values]
        if missing:
            raise StudyFileError(f"{source}: missing {', '.join(missing)}")
        configuration = cls(**{name: typed(source, PARAMETERS[name], value) for name, value in values.items()})
        if settings := configuration.settings:
            # Of a record, which may be damaged.
            try:
                values_of_settings = json.loads(settings).values()
            except (ValueError, AttributeError, RecursionError):
                message = f"settings is {settings[:100]!r}, which is not an object in JSON"
                raise StudyFileError(f"{source}: {message}") from None
            if not all(isinstance(value, Scalar) for value in values_of_settings):
                raise StudyFileError(f"{source}: settings is {settings[:100]!r}, of which a value is no scalar")
        if not is_selftest(configuration.study):
            for name in configuration.selftest_values():
                raise StudyFileError(f"{source}: {name} is allowed in self-test studies only")
        return configuration

    @classmethod
    def for_program(cls, program: str, values: Mapping[str, Any], source: str = "configuration") -> "Configuration":
        """Build the configuration of a user's program from the values of its study.

        Raises StudyFileError as ``from_mapping`` does.
        """
        settings = {name: value for name, value in values.items() if name in _OF_WORKLOADS or name not in PARAMETERS}
        parameters = {name: value for name, value in values.items() if name in PARAMETERS}
        defaults = {"framework": OWN_PROGRAM, "strategy": OWN_PROGRAM, "model": program, "max_warmup_seconds": 0.0}
        declared = {"own_program": program, "settings": json.dumps(settings, sort_keys=True)}
        return cls.from_mapping(_TRAINING_ALONE | defaults | parameters | declared, source)

    @classmethod
    def from_record(cls, values: Mapping[str, Any], source: str) -> "Configuration":
        """Build the configuration of a record; later parameters have their defaults.

        Parameters of earlier versions are left out.
        Raises RecordError where the file is damaged, or a later version of this package wrote it.
        """
        try:
            kept = {name: value for name, value in values.items() if name not in FORMER_PARAMETERS}
            return cls.from_mapping(renamed.rename(kept, renamed.PARAMETERS), source)
        except StudyFileError as error:
            later = "; a later version of this package may know it" if values.keys() - PARAMETERS.keys() else ""
            raise RecordError(f"{error}{later}") from error

    @property
    def world_size(self) -> int:
        """Number of training processes; one per device."""
        return self.nodes * self.devices_per_node

    @cached_property
    def layout(self) -> Layout:
        """Which ranks have samples of their own, and which share a model."""
        return parallel_parameters.parallel_layout(vars(self))

    @property
    def global_batch(self) -> int:
        """Samples per step, all devices together."""
        return self.batch_per_device * self.layout.replicas

    @cached_property
    def configuration_id(self) -> str:
        """A readable name, unique among all configurations, usable as a folder."""
        values = _AS_JSON(renamed.earlier_names(self.identifying_values()))
        digest = hashlib.sha256(values.encode()).hexdigest()[:8]
        scale = f"{self.nodes}n{self.devices_per_node}d"
        if self.own_program:
            return f"{self.own_program}-{scale}-b{self.batch_per_device}-{digest}"
        if self.parameter_servers:
            scale += f"{self.parameter_servers}s"
        trained = f"{self.framework}-{self.strategy}-{self.model}-{scale}"
        return f"{trained}-b{self.batch_per_device}-{self.precision}-{digest}"

    @property
    def runtime(self) -> str:
        """The key of its Python in a cluster file: framework, or ``program``."""
        return OWN_PROGRAM if self.own_program else self.framework

    @property
    def reported(self) -> "Configuration":
        """The short run in which NCCL reports what it chose."""
        training = replace(self, measured_steps=2, measured_seconds=0.0, max_warmup_seconds=0.0)
        return replace(training, **_TRAINING_ALONE | {"communication_only_steps": 1, "breakdown_from": 1})

    def is_broken_down(self, repetition: int) -> bool:
        """Return whether a run measures computation, communication and input too."""
        return repetition >= self.breakdown_from

    def for_run(self, repetition: int) -> "Configuration":
        """Return the configuration with the steps of one run.

        Only for its steps: the identity of a run is that of its configuration.
        """
        if self.is_broken_down(repetition):
            return self
        return replace(self, **_TRAINING_ALONE)

    def computation_halves(self, measured_steps: int) -> tuple[int, int]:
        """Return the compute-only steps before and after the measured window."""
        steps = measured_steps if self.compute_only_steps < 0 else self.compute_only_steps
        return steps // 2, steps - steps // 2

    def as_dict(self) -> dict[str, Scalar]:
        """Return the parameters in order of declaration."""
        return {name: getattr(self, name) for name in FIELD_NAMES}

    def identifying_values(self) -> dict[str, Scalar]:
        """Return the parameters that change what is measured.

        A parameter that is not in ``IDENTIFIED_BY_DEFAULT`` is left out while it has its default. Of a user's program
        those about sequences are among its settings, as they were before they were parameters.
        """
        values = self._values_other_than(_LEFT_OUT_VALUES)
        if self.own_program:
            for name in _OF_SEQUENCES:
                values.pop(name, None)
        return values

    def selftest_values(self) -> dict[str, Scalar]:
        """Return the parameters of the self-test without their defaults."""
        return self._values_other_than(_SELFTEST_DEFAULTS)

    def _values_other_than(self, left_out: Mapping[str, Scalar | None]) -> dict[str, Scalar]:
        """Return those parameters whose value is not the given one."""
        values = vars(self)
        return {name: values[name] for name, left_out_value in left_out.items() if values[name] != left_out_value}

    @cached_property
    def own_settings(self) -> dict[str, Scalar]:
        """The settings of a user's program besides the parameters, by name."""
        settings: dict[str, Scalar] = json.loads(self.settings or "{}")
        return {name: value for name, value in settings.items() if name not in PARAMETERS}

    @property
    def program_values(self) -> dict[str, Scalar]:
        """The values of a program's placeholders, by name."""
        return program_values(self.as_dict() | self.own_settings)

    @property
    def samples(self) -> str:
        """The kind of a sample: ``IMAGES``, or ``SEQUENCES`` of tokens."""
        return SEQUENCES if self.sequence_length else IMAGES

    @cached_property
    def unstated(self) -> tuple[str, ...]:
        """The parameters without a meaning or a value in the study."""
        if not self.own_program:
            return _OF_OTHER_SAMPLES[self.samples]
        settings = json.loads(self.settings)
        return tuple(name for name in _OF_WORKLOADS if name not in settings)

    def parameter_value(self, name: str) -> Scalar:
        """Return the value of a parameter or setting."""
        values: dict[str, Scalar] = {**vars(self), **self.own_settings}
        return values[name]

    def displayed_values(self) -> dict[str, Scalar | None]:
        """Return parameters and settings as pages show them.

        None: unstated.
        """
        values: dict[str, Scalar | None] = {**self.as_dict(), "cluster": cluster_title(self.cluster)}
        return values | dict.fromkeys(self.unstated) | self.own_settings


#: Every parameter by name, in order of declaration.
PARAMETERS: dict[str, Parameter] = {entry.name: declared_parameter(entry) for entry in fields(Configuration)}
FIELD_NAMES = tuple(PARAMETERS)
#: The values that parameters have unless a study says otherwise, and the parameters without.
DEFAULTS = {name: entry.default for name, entry in PARAMETERS.items() if entry.default is not None}
REQUIRED = tuple(name for name, entry in PARAMETERS.items() if entry.default is None)
#: The parameters of an identity, each with the value at which it is left out; None, which none has: it never is.
_LEFT_OUT_VALUES = {
    name: None if name in IDENTIFIED_BY_DEFAULT else entry.default
    for name, entry in PARAMETERS.items()
    if entry.in_identity
}
#: An encoder that is made once takes half the time of ``json.dumps``.
_AS_JSON = json.JSONEncoder(sort_keys=True).encode
_OF_OTHER_SAMPLES = {
    samples: tuple(name for name, entry in PARAMETERS.items() if entry.samples not in ("", samples))
    for samples in (IMAGES, SEQUENCES)
}
_OF_SEQUENCES = _OF_OTHER_SAMPLES[IMAGES]
_SELFTEST_DEFAULTS = {name: entry.default for name, entry in PARAMETERS.items() if entry.scope is SELFTEST}
#: What is said of a user's program as a whole: its settings are named one by one.
OF_WHOLE_PROGRAM = ("own_program", "settings", "program_hash")
#: What is trained and how gradients travel, of which nothing is known of a user's program unless its study says it.
_OF_WORKLOADS = tuple(
    name
    for name, entry in PARAMETERS.items()
    if entry.scope in (Scope.WORKLOAD, Scope.NETWORK) and name not in ("framework", "model", *SCALE)
)

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


def parameters_in_scope(*scopes: Scope) -> dict[str, Parameter]:
    """Return the parameters of some scopes by name, in order of declaration."""
    return {name: entry for name, entry in PARAMETERS.items() if entry.scope in scopes}


def study_parameters() -> dict[str, Parameter]:
    """Return the parameters that a study may fix or vary, by name."""
    parameters = {}
    for name, entry in parameters_in_scope(Scope.WORKLOAD, Scope.NETWORK, SELFTEST).items():
        parameters[name] = entry
        if name == "batch_per_device":
            parameters[GLOBAL_BATCH.name] = GLOBAL_BATCH
    return parameters


def shared_batch(global_batch: int, replicas: int) -> int:
    """Return the batch per replica; 0 if it can't be shared equally."""
    if not replicas or global_batch % replicas:
        return 0
    return global_batch // replicas


def cluster_title(name: str) -> str:
    """Return the name of a cluster without the folder of its file."""
    return PurePath(name).stem if "/" in name else name
