"""Cluster files: strict YAML to a Cluster."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from dlperf_study.errors import StudyFileError
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.parameters import MOST_DEVICES_PER_NODE, MOST_NODES
from dlperf_study.study.problems import validate
from dlperf_study.study.strict_yaml import PARAMS, closest, find_file, read_mapping, shown
from dlperf_study.study.this_machine import cpu_name, gpu_names, usable_cpus

AUTO = "auto"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class IdleSection(_Section):
    """How quiet a machine must be before a run starts."""

    max_busy_cores: float = Field(
        default=0.5, gt=0, le=MOST_DEVICES_PER_NODE, description="cores other processes may keep busy"
    )
    wait_seconds: float = Field(default=20.0, ge=0, le=24 * 3600, description="how long to wait for that")


def _number_or_auto(value: Any) -> int | None:
    if value == AUTO:
        return None
    if type(value) is int and 1 <= value <= MOST_DEVICES_PER_NODE:
        return value
    raise ValueError(f"it must be a whole number from 1 to {MOST_DEVICES_PER_NODE}, or auto")


NumberOrAuto = Annotated[
    int | None,
    BeforeValidator(
        _number_or_auto, json_schema_input_type=Annotated[int, Field(ge=1, le=MOST_DEVICES_PER_NODE)] | Literal["auto"]
    ),
]


class ClusterFile(_Section):
    """The machines a study runs on."""

    launcher: str = Field(min_length=1, description="how processes are started: a file in dlperf_study/launchers")
    nodes: int = Field(ge=1, le=MOST_NODES, description="machines")
    devices_per_node: NumberOrAuto = Field(description="devices of each; auto: what this machine has")
    device: Literal["cpu", "gpu", "auto"] = Field(description="auto: gpu where there is an NVIDIA GPU")
    device_name: str = Field(min_length=1, description="as its maker names it; auto: as this machine reports it")
    device_peak_flops: float | None = Field(
        default=None, ge=1e6, le=1e18, description="FLOP/s of one device; without it no MFU"
    )
    link: str = Field(min_length=1, description="what connects the nodes")
    idle: IdleSection = IdleSection()
    python: dict[str, str] = Field(default={}, description="another Python for a framework: name to path")


KEYS = {"": tuple(ClusterFile.model_fields), "idle": tuple(IdleSection.model_fields)}


def load_cluster(name_or_path: str | Path) -> Cluster:
    """Return a cluster by its name in ``params/clusters`` or by the path of its file, every ``auto`` found out.

    Raises StudyFileError for any mistake in the file.
    """
    path = find_file("cluster", name_or_path)
    file = validate(ClusterFile, read_mapping(path), shown(path), KEYS)
    _check_auto(file, shown(path))
    device = _device(file)
    return Cluster(
        name=path.stem if path.parent == PARAMS / "clusters" else str(path.resolve()),
        nodes=file.nodes,
        devices_per_node=file.devices_per_node or _devices(device, shown(path)),
        device=device,
        device_name=_device_name(device) if file.device_name == AUTO else file.device_name,
        launcher=file.launcher,
        device_peak_flops=file.device_peak_flops,
        link=file.link,
        idle_max_busy_cores=file.idle.max_busy_cores,
        idle_wait_seconds=file.idle.wait_seconds,
        python={framework: str(Path(python).expanduser()) for framework, python in file.python.items()},
    )


def _check_auto(file: ClusterFile, source: str) -> None:
    """Refuse ``auto`` where runs take place on other machines than this one."""
    unknown = [name for name in ("device", "device_name") if getattr(file, name) == AUTO]
    unknown += ["devices_per_node"] if file.devices_per_node is None else []
    if unknown and file.launcher != "local":
        raise StudyFileError(
            f"{source}: {', '.join(unknown)} can't be auto with launcher {file.launcher}; "
            f"{closest(file.launcher, ['local'])}only launcher local can ask"
        )


def _device(file: ClusterFile) -> str:
    if file.device != AUTO:
        return file.device
    return "gpu" if gpu_names() else "cpu"


def _devices(device: str, source: str) -> int:
    if device == "cpu":
        return usable_cpus()
    if found := len(gpu_names()):
        return found
    raise StudyFileError(f"{source}: device is gpu, but nvidia-smi finds no GPU on this machine")


def _device_name(device: str) -> str:
    return cpu_name() if device == "cpu" else ", ".join(dict.fromkeys(gpu_names()))
