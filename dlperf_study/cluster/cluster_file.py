"""Cluster files: strict YAML to a Cluster."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from dlperf_study.cluster.cluster import DEFAULT, Cluster, Kubernetes, Slurm, Ssh
from dlperf_study.cluster.hardware import cpu_name, gpu_names, usable_cpus
from dlperf_study.cluster.sections import AUTO, KEYS, ClusterFile
from dlperf_study.errors import StudyFileError
from dlperf_study.study.strict_yaml import PARAMS, display_path, find_file, read_mapping
from dlperf_study.study.validation import validate
from dlperf_study.wording import unknown

# Where the keys of a cluster file contradict each other, or lack what another needs.


#: Launchers with which it is known whether all nodes see the same ``outputs/``.
SHARED_FILES = {"local": True, "slurm": True, "kubernetes": False}


def contradiction(file: ClusterFile, launchers: Collection[str]) -> str | None:
    """Return the first contradiction, or None; a launcher that is none of those there are comes before all others."""
    if file.launcher not in launchers:
        return unknown("launcher is", file.launcher, "launchers", launchers)
    checks = (_section_contradiction, _hosts, _auto, _shared, _work_folder)
    return next(filter(None, (check(file) for check in checks)), None)


def _section_contradiction(file: ClusterFile) -> str | None:
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
    asked = [name for name in ("device", "device_name") if getattr(file, name) == AUTO]
    asked += ["devices_per_node"] if file.devices_per_node is None else []
    if not asked or file.launcher == "local":
        return None
    return f"{', '.join(asked)} can't be auto with launcher {file.launcher}; only launcher local can ask"


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


#: What a cluster has as its file says it.
AS_WRITTEN = (
    *("launcher", "hosts", "device_peak_flops", "link", "network_interface", "work_folder"),
    *("environment", "pass_environment", "container"),
)


def read_cluster(name_or_path: str | Path, launchers: Collection[str]) -> Cluster:
    """Return a cluster by its name in ``params/clusters`` or by the path of its file, every ``auto`` found out.

    ``launchers`` are the names of those there are.
    Raises StudyFileError for any mistake in the file.
    """
    path = find_file("cluster", name_or_path)
    file = validate(ClusterFile, read_mapping(path), display_path(path), KEYS)
    if problem := contradiction(file, launchers):
        raise StudyFileError(f"{display_path(path)}: {problem}")
    return Cluster(
        name=_name(path.resolve()),
        nodes=file.nodes or len(file.hosts),
        idle_max_busy_cores=file.idle.max_busy_cores,
        idle_wait_seconds=file.idle.wait_seconds,
        python=_pythons(file),
        shared_files=SHARED_FILES.get(file.launcher, bool(file.shared_files)),
        **_devices_of(file, display_path(path)),
        **_sections(file, path),
        **{name: _frozen(getattr(file, name)) for name in AS_WRITTEN},
    )


def _name(path: Path) -> str:
    """Return by what the cluster is found again: its name here, or where its file lies."""
    return path.stem if path.parent == (PARAMS / "clusters").resolve() else str(path)


def _devices_of(file: ClusterFile, source: str) -> dict[str, Any]:
    """Return the devices of each node, asked for on this machine where the file says ``auto``."""
    device = _device(file)
    return {
        "device": device,
        "devices_per_node": file.devices_per_node or _devices(device, source),
        "device_name": _device_name(device) if file.device_name == AUTO else file.device_name,
    }


def _sections(file: ClusterFile, path: Path) -> dict[str, Any]:
    """Return what the file says to its launcher."""
    return {
        "ssh": Ssh(**_values(file.ssh, path, "config_file")),
        "slurm": Slurm(**_values(file.slurm, path)),
        "kubernetes": Kubernetes(**_values(file.kubernetes, path, "kubeconfig")),
    }


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
            raise StudyFileError(f"{display_path(path)}: {name} is {values[name]!r}; there is no file {file}")
    return {name: _frozen(value) for name, value in (values | found).items()}


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


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
