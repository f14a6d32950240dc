"""Cluster files: strict YAML to a Cluster."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from dlperf_study.errors import StudyFileError
from dlperf_study.registry import closest
from dlperf_study.study.cluster import DEFAULT, Cluster, Kubernetes, Slurm, Ssh
from dlperf_study.study.cluster_sections import (
    SECTIONS,
    HostName,
    IdleSection,
    Interface,
    KubernetesSection,
    SlurmSection,
    SshSection,
    Text,
    VariableName,
    Variables,
    Words,
)
from dlperf_study.study.parameters import MOST_DEVICES_PER_NODE, MOST_NODES
from dlperf_study.study.problems import Section, validate
from dlperf_study.study.strict_yaml import PARAMS, find_file, read_mapping, shown
from dlperf_study.study.this_machine import cpu_name, gpu_names, usable_cpus

AUTO = "auto"
#: Launchers with which it is known whether all nodes see the same ``outputs/``.
SHARED_FILES = {"local": True, "slurm": True, "kubernetes": False}


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


class ClusterFile(Section):
    """The machines a study runs on."""

    launcher: str = Field(min_length=1, description="how processes are started: a file in dlperf_study/launchers")
    hosts: list[HostName] = Field(default=[], description="one name per node, as ssh takes it; with launcher ssh")
    nodes: Annotated[int, Field(ge=1, le=MOST_NODES)] | None = Field(
        default=None, description="machines; left out: as many as hosts"
    )
    devices_per_node: NumberOrAuto = Field(description="devices of each; auto: what this machine has")
    device: Literal["cpu", "gpu", "auto"] = Field(description="auto: gpu where there is an NVIDIA GPU")
    device_name: str = Field(min_length=1, description="as its maker names it; auto: as this machine reports it")
    device_peak_flops: float | None = Field(
        default=None, ge=1e6, le=1e18, description="FLOP/s of one device; without it no MFU"
    )
    link: str = Field(min_length=1, description="what connects the nodes")
    idle: IdleSection = IdleSection()
    python: dict[str, Text] = Field(
        default={}, description="another Python for a framework: name to path; default: for all, and for the guards"
    )
    network_interface: Interface = Field(default="", description="that exchanges use; left out: as each library does")
    shared_files: bool | None = Field(default=None, description="whether outputs/ is the same folder on every node")
    work_folder: str = Field(default="", description="where nodes without it write; left out: their temporary folder")
    environment: Variables = Field(default={}, description="variables of every training process")
    pass_environment: list[VariableName] = Field(default=[], description="further variables to pass from your shell")
    container: Words = Field(default=[], description="what every training command is put behind, as apptainer exec")
    ssh: SshSection | None = None
    slurm: SlurmSection | None = None
    kubernetes: KubernetesSection | None = None


KEYS = {"": tuple(ClusterFile.model_fields), **{name: tuple(s.model_fields) for name, s in SECTIONS.items()}}


def load_cluster(name_or_path: str | Path) -> Cluster:
    """Return a cluster by its name in ``params/clusters`` or by the path of its file, every ``auto`` found out.

    Raises StudyFileError for any mistake in the file.
    """
    path = find_file("cluster", name_or_path)
    file = validate(ClusterFile, read_mapping(path), shown(path), KEYS)
    for problem in (_sections(file), _hosts(file), _auto(file), _shared(file), _work_folder(file)):
        if problem:
            raise StudyFileError(f"{shown(path)}: {problem}")
    device = _device(file)
    return Cluster(
        name=path.stem if path.parent == PARAMS / "clusters" else str(path.resolve()),
        nodes=file.nodes or len(file.hosts),
        devices_per_node=file.devices_per_node or _devices(device, shown(path)),
        device=device,
        device_name=_device_name(device) if file.device_name == AUTO else file.device_name,
        launcher=file.launcher,
        device_peak_flops=file.device_peak_flops,
        link=file.link,
        idle_max_busy_cores=file.idle.max_busy_cores,
        idle_wait_seconds=file.idle.wait_seconds,
        python=_pythons(file),
        hosts=tuple(file.hosts),
        network_interface=file.network_interface,
        shared_files=SHARED_FILES.get(file.launcher, bool(file.shared_files)),
        work_folder=file.work_folder,
        environment=file.environment,
        pass_environment=tuple(file.pass_environment),
        container=tuple(file.container),
        ssh=Ssh(**_values(file.ssh, path, "config_file")),
        slurm=Slurm(**_values(file.slurm, path)),
        kubernetes=Kubernetes(**_values(file.kubernetes, path, "kubeconfig")),
    )


def _sections(file: ClusterFile) -> str | None:
    """Return that a section stands beside another launcher than its own, or lacks beside its own."""
    for name in ("ssh", "slurm", "kubernetes"):
        if getattr(file, name) is not None and file.launcher != name:
            return f"{name} is a section for launcher {name}; the launcher is {file.launcher}"
    if file.launcher == "kubernetes" and file.kubernetes is None:
        return "kubernetes is missing; launcher kubernetes needs its images"
    return None


def _hosts(file: ClusterFile) -> str | None:
    """Return what is wrong with the number of nodes and their names."""
    if file.launcher == "ssh" and not file.hosts:
        return "hosts is missing; launcher ssh needs one name per node"
    if file.launcher != "ssh" and file.hosts:
        return f"hosts is for launcher ssh; launcher {file.launcher} finds its nodes itself"
    if repeated := sorted({host for host in file.hosts if file.hosts.count(host) > 1}):
        return f"hosts has {', '.join(repeated)} twice"
    if file.nodes is None and not file.hosts:
        return "nodes is missing"
    if file.hosts and (file.nodes or 0) > len(file.hosts):
        return f"nodes is {file.nodes}, but hosts has {len(file.hosts)}"
    return None


def _auto(file: ClusterFile) -> str | None:
    """Return that ``auto`` is asked for where runs take place on other machines than this one."""
    unknown = [name for name in ("device", "device_name") if getattr(file, name) == AUTO]
    unknown += ["devices_per_node"] if file.devices_per_node is None else []
    if not unknown or file.launcher == "local":
        return None
    question = closest(file.launcher, ["local"])
    return f"{', '.join(unknown)} can't be auto with launcher {file.launcher}; {question}only launcher local can ask"


def _shared(file: ClusterFile) -> str | None:
    """Return that it is not said whether files are shared, or said otherwise than the launcher has it."""
    known = SHARED_FILES.get(file.launcher)
    if file.launcher == "ssh" and file.shared_files is None:
        return "shared_files is missing; is outputs/ the same folder on every node (true or false)?"
    if known is not None and file.shared_files is (not known):
        return f"shared_files is {file.shared_files}; with launcher {file.launcher} it is always {known}"
    return None


def _work_folder(file: ClusterFile) -> str | None:
    """Return that the work folder would be another one wherever a guard happens to start."""
    if not file.work_folder or file.work_folder.startswith("/"):
        return None
    return f"work_folder is {file.work_folder!r}; it must be an absolute path"


def _pythons(file: ClusterFile) -> dict[str, str]:
    """Return the Pythons that are named; in a container image it is the one on the PATH, not that of this machine."""
    named = {framework: str(Path(python).expanduser()) for framework, python in file.python.items()}
    return {DEFAULT: "python", **named} if file.launcher == "kubernetes" else named


def _values(section: BaseModel | None, path: Path, *files: str) -> dict[str, Any]:
    """Return a section's values; a path in it begins at the folder of its file."""
    if section is None:
        return {}
    values = section.model_dump()
    found = {name: str(path.resolve().parent / Path(values[name]).expanduser()) for name in files if values[name]}
    for name, file in found.items():
        if not Path(file).is_file():
            raise StudyFileError(f"{shown(path)}: {name} is {values[name]!r}; there is no file {file}")
    return {name: tuple(v) if isinstance(v, list) else v for name, v in (values | found).items()}


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
