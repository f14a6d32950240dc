"""What a cluster file may hold: the type and the bounds of every key.

Each launcher declares its own section as a class below ``Section``; ``cluster_file_model`` puts them together.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, create_model

from dlperf_study.study import device_peaks, environment_variables, training_parameters, validation
from dlperf_study.study.validation import VariableName, matching

AUTO = "auto"
DAY_SECONDS = 24 * 3600
MAX_SECONDS = 30 * DAY_SECONDS
#: Marks a key of a section that names a file: its path starts at the folder of the cluster file, and it must exist.
FILE = "a file"


def _number_or_auto(value: Any) -> int | None:
    if value == AUTO:
        return None
    if type(value) is int and 1 <= value <= training_parameters.MAX_DEVICES_PER_NODE:
        return value
    raise ValueError(f"it must be an integer from 1 to {training_parameters.MAX_DEVICES_PER_NODE}, or auto")


String = Annotated[str, Field(min_length=1)]
FilePath = Annotated[str, FILE]
#: Neither host nor user starts with a dash, so that no command takes it for an option.
HostName = Annotated[
    str,
    matching(r"(?:\w[\w.-]*@)?[A-Za-z0-9][\w.-]*", "a host name, an address, or a name of the ssh configuration"),
]
SetName = Annotated[str, matching(r"[A-Za-z]\w*", "a name of letters, digits and '_'")]
Interface = Annotated[str, matching(r"[\w.:-]{0,15}", "the name of a network interface, as `ip link` shows it")]
NumberOrAuto = Annotated[
    int | None,
    BeforeValidator(
        _number_or_auto,
        json_schema_input_type=Annotated[int, Field(ge=1, le=training_parameters.MAX_DEVICES_PER_NODE)]
        | Literal["auto"],
    ),
]


class IdleSection(validation.Section):
    """How quiet a machine must be before a run starts."""

    max_busy_cores: float = Field(
        default=0.5,
        gt=0,
        le=training_parameters.MAX_DEVICES_PER_NODE,
        description="cores other processes may keep busy",
    )
    wait_seconds: float = Field(default=20.0, ge=0, le=DAY_SECONDS, description="how long to wait for that")


class StartUpSection(validation.Section):
    """The time limits of the start and of a transfer."""

    ready_seconds: float = Field(
        default=180.0, gt=0, le=DAY_SECONDS, description="a node to prepare: to list its packages and free ports"
    )
    meet_seconds: float = Field(
        default=environment_variables.MEET_SECONDS,
        gt=0,
        le=DAY_SECONDS,
        description="ranks to meet: to import their library, on all nodes",
    )
    collective_seconds: float = Field(
        default=environment_variables.COLLECTIVE_SECONDS,
        gt=0,
        le=DAY_SECONDS,
        description="one collective, in libraries that limit it",
    )


class ClusterFile(validation.Section):
    """The machines a study runs on."""

    launcher: str = Field(
        min_length=1, description="how processes are started: a file in dlperf_study/machines/launchers"
    )
    hosts: list[HostName] = Field(default=[], description="one name per node, as ssh takes it; with launcher ssh")
    nodes: Annotated[int, Field(ge=1, le=training_parameters.MAX_NODES)] | None = Field(
        default=None, description="machines; left out: as many as hosts"
    )
    devices_per_node: NumberOrAuto = Field(description="devices of each; auto: what this machine has")
    device: Literal["cpu", "gpu", "auto"] = Field(description="auto: gpu where a library of the study can use one")
    device_name: str = Field(min_length=1, description="as its maker names it; auto: as this machine reports it")
    device_peak_flops: Annotated[device_peaks.PeakFlops, device_peaks.number_or(device_peaks.PeaksByFormat)] | None = (
        Field(
            default=None,
            description="FLOP/s of one device, also by number format; left out: its data sheet's, if known",
        )
    )
    interconnect: str = Field(min_length=1, description="interconnect; auto: as this machine reports it")
    # Built at the first use of a cluster file, with the rest of it.
    idle: IdleSection = IdleSection.model_construct()
    start_up: StartUpSection = StartUpSection.model_construct()
    python: dict[str, String] = Field(
        default={}, description="another Python for a framework, by name; default: for all and for the node agents"
    )
    network_interface: Interface = Field(
        default="", description="for the communication between nodes; left out: as each library does"
    )
    shared_files: bool | None = Field(default=None, description="whether outputs/ is the same folder on every node")
    work_folder: str = Field(default="", description="where nodes without it write; left out: their temporary folder")
    image_datasets: dict[SetName, String] = Field(
        default={}, description="labelled images that studies read: name to folder, the same path on every node"
    )
    environment: dict[VariableName, str] = Field(default={}, description="variables of every training process")
    pass_environment: list[VariableName] = Field(default=[], description="further variables to pass from your shell")
    container: list[String] = Field(
        default=[], description="command prefix of every training command, as apptainer exec"
    )


def cluster_file_model(settings: Mapping[str, type[validation.Section]]) -> type[ClusterFile]:
    """Return the model of a cluster file with launchers' sections."""
    sections: dict[str, Any] = {name: (section | None, None) for name, section in settings.items()}
    return create_model("ClusterFile", __base__=ClusterFile, __doc__=ClusterFile.__doc__, **sections)


def keys(settings: Mapping[str, type[validation.Section]]) -> dict[str, tuple[str, ...]]:
    """Return the keys of each section by its name."""
    sections: dict[str, type[validation.Section]] = {
        "": cluster_file_model(settings),
        "idle": IdleSection,
        "start_up": StartUpSection,
        "device_peak_flops": device_peaks.PeaksByFormat,
        **settings,
    }
    return {name: tuple(section.model_fields) for name, section in sections.items()}
