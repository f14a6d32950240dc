"""One point of a study's grid, and the one declaration of every parameter."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any

from dlperf_study.errors import StudyFileError
from dlperf_study.paths import is_selftest
from dlperf_study.study.parameter import Parameter, Scalar, Scope, declared, parameter, parameter_of, typed

PLAN, NETWORK, MEASUREMENT, SELFTEST = Scope.PLAN, Scope.NETWORK, Scope.MEASUREMENT, Scope.SELFTEST
#: Far above what is built: a number beyond these is a typing error, which would otherwise fill a disk, a memory or a
#: week before anybody notices.
MAX_NODES, MAX_DEVICES_PER_NODE, MAX_STEPS = 10_000, 4_096, 1_000_000
MAX_WINDOW_SECONDS = 24 * 3600
SELFTEST_ONLY = "for studies of the [self-test](selftest.md) only"
DATA_SOURCES = ("synthetic_device", "synthetic_host", "python_queue", "python_dataset", "zmq", "files", "dali")


@dataclass(frozen=True)
class Configuration:
    """What one run trains, on what, and how it is measured.

    All values are flat scalars, by the same names in a study's YAML, in the ``parameters`` cell of the notebook, in
    ``run.json`` and as columns of the dataset. A field declares all there is to know of its parameter: everything
    that has to know it is derived from here, see ``parameter.py``.
    """

    study: str = field(metadata=declared("Study", "name of the study", scope=PLAN, always_known=True))
    cluster: str = field(metadata=declared("Cluster", "name of the cluster file", scope=PLAN))
    framework: str = field(
        metadata=declared(
            "Framework", "framework, with its way to exchange gradients", always_known=True, published=True
        )
    )
    strategy: str = field(
        metadata=declared(
            "Strategy",
            "how the framework distributes the training",
            note="`local` and `async` of `paddle_ps`; `all_reduce` of all others",
        )
    )
    model: str = field(metadata=declared("Model", "name of the model", always_known=True, published=True))
    quick: bool = parameter(
        False, "Quick", "a shrunken model for a first look, not for publication", scope=PLAN, always_known=True
    )
    image_size: int = parameter(
        224, "Image size", "height and width of an image", unit="pixels", bounds=(1, 16_384), published=True
    )
    classes: int = parameter(
        1000, "Classes", "number of classes of the classifier", bounds=(2, 100_000_000), published=True
    )
    nodes: int = parameter(1, "Nodes", "number of nodes", bounds=(1, MAX_NODES), always_known=True, published=True)
    devices_per_node: int = parameter(
        1,
        "Devices per node",
        "training processes per node, one per device",
        bounds=(1, MAX_DEVICES_PER_NODE),
        always_known=True,
        published=True,
    )
    servers: int = parameter(
        0,
        "Servers",
        "number of parameter servers, all nodes together",
        bounds=(0, MAX_NODES),
        always_known=True,
        published=True,
    )
    batch_per_device: int = parameter(
        32,
        "Batch per device",
        "samples per step and device",
        unit="samples",
        bounds=(1, 1_000_000),
        always_known=True,
        published=True,
        note="weak scaling only",
    )
    precision: str = parameter(
        "fp32",
        "Precision",
        "number format of the computation",
        levels=("fp32", "amp_fp16", "amp_bf16"),
        always_known=True,
        published=True,
        note="`amp_fp16` and `amp_bf16`: PyTorch and Horovod only",
    )
    loss_scaling: str = parameter(
        "none",
        "Loss scaling",
        "how losses are scaled in reduced precision",
        levels=("none", "dynamic", "static"),
        published=True,
        note="`dynamic`: for `amp_fp16`; `static`: not built yet",
    )
    compiler: str = parameter(
        "none",
        "Compiler",
        "compiler between model and device",
        levels=("none", "xla"),
        published=True,
        note="`xla`: not built yet",
    )
    memory_format: str = parameter(
        "nchw",
        "Memory format",
        "order of the dimensions of images and features in memory",
        levels=("nchw", "nhwc"),
        note="`nhwc` (channels last): PyTorch only; Horovod exchanges contiguous gradients only",
    )
    gradient_compression: str = parameter(
        "none",
        "Gradients travel as",
        "number format of exchanged gradients",
        scope=NETWORK,
        levels=("none", "fp16"),
        note="`fp16`: PyTorch and Horovod only",
    )
    fusion_mib: int = parameter(
        -1,
        "Fusion",
        "largest buffer that gradients are fused into; -1: the library's own choice",
        scope=NETWORK,
        unit="MiB",
        bounds=(0, 65_536),
        note="0: no fusion (Horovod only)",
    )
    cycle_time_ms: float = parameter(
        -1.0,
        "Cycle time",
        "interval at which Horovod looks for gradients; -1: its own choice",
        scope=NETWORK,
        unit="ms",
        bounds=(0, 60_000),
        note="Horovod only",
    )
    hierarchical: bool = parameter(
        False, "Hierarchical", "whether Horovod reduces within a node first", scope=NETWORK, note="Horovod on GPUs only"
    )
    optimizer: str = parameter(
        "sgd", "Optimizer", "rule of the update", levels=("sgd", "momentum"), note="with servers `sgd` only"
    )
    data_source: str = parameter(
        "synthetic_device",
        "Data source",
        "where samples come from",
        levels=DATA_SOURCES,
        published=True,
        note="all but `synthetic_device`: not built yet",
    )
    classifier: str = parameter(
        "replicated",
        "Classifier",
        "how the last layer is distributed over the devices",
        levels=("replicated", "sharded"),
        published=True,
        note="`sharded`: its columns divided among the devices (ArcFace only)",
    )
    sample_ratio: float = parameter(
        1.0,
        "Sample ratio",
        "share of the classes sampled in a step",
        bounds=(0, 1),
        above_bound=True,
        published=True,
        note="below 1 with a `sharded` classifier only",
    )
    threads_per_device: int = parameter(
        1, "Threads per device", "CPU threads of a training process", bounds=(1, MAX_DEVICES_PER_NODE), published=True
    )
    seed: int = parameter(0, "Seed", "seed of parameters and data", bounds=(0, 2**32 - 1))
    replica: int = parameter(
        0,
        "Replica",
        "another name of the same configuration",
        scope=SELFTEST,
        bounds=(0, 1_000),
        note=SELFTEST_ONLY,
    )
    planted_slowdown: float = parameter(
        0.0,
        "Planted slowdown",
        "busy wait after each step, as a share of the step",
        scope=SELFTEST,
        bounds=(0, 10),
        note=SELFTEST_ONLY,
    )
    slowed_rank: int = parameter(
        -1,
        "Slowed rank",
        "the rank with the planted slowdown; -1: all ranks",
        scope=SELFTEST,
        bounds=(0, MAX_NODES * MAX_DEVICES_PER_NODE),
        note=SELFTEST_ONLY,
    )
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
        unknown = sorted(set(values) - set(PARAMETERS))
        if unknown:
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
        return replace(training, computation_steps=0, exchange_steps=0)

    def computation_halves(self, measured_steps: int) -> tuple[int, int]:
        """Return the steps without exchange before and after a measured window of ``measured_steps``."""
        steps = measured_steps if self.computation_steps < 0 else self.computation_steps
        return steps // 2, steps - steps // 2

    def as_dict(self) -> dict[str, Scalar]:
        """Return the parameters in order of declaration."""
        return asdict(self)

    def identifying_values(self) -> dict[str, Scalar]:
        """Return the parameters without those that change how often and how long is measured, but not what."""
        always = [name for name, entry in PARAMETERS.items() if entry.in_identity and entry.scope is not SELFTEST]
        return {name: getattr(self, name) for name in always} | self.selftest_values()

    def selftest_values(self) -> dict[str, Scalar]:
        """Return the parameters of the self-test that do not have their defaults; none in any other study."""
        values: dict[str, Scalar] = {name: getattr(self, name) for name in parameters_of(SELFTEST)}
        return {name: value for name, value in values.items() if value != PARAMETERS[name].default}

    def displayed_values(self) -> dict[str, Scalar]:
        """Return the parameters as pages show them: the cluster without the folder of its file."""
        return self.as_dict() | {"cluster": cluster_title(self.cluster)}


#: Every parameter by name, in order of declaration.
PARAMETERS: dict[str, Parameter] = {entry.name: parameter_of(entry) for entry in fields(Configuration)}
FIELD_NAMES = tuple(PARAMETERS)
#: The parameters without a default.
REQUIRED = tuple(name for name, entry in PARAMETERS.items() if entry.default is None)

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
