"""Cluster files: strict YAML to a Cluster."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dlperf_study.core import resources, wording
from dlperf_study.core.errors import StudyFileError
from dlperf_study.machines.cluster import DEFAULT, Cluster, hardware
from dlperf_study.machines.cluster.sections import AUTO, FILE, ClusterFile, cluster_file_model, keys
from dlperf_study.study import environment_variables, strict_yaml, validation

#: The keys whose values a cluster has unchanged.
SAME_IN_CLUSTER = (
    *("launcher", "device", "device_name", "device_peak_flops", "interconnect"),
    *("network_interface", "work_folder", "environment"),
)


@dataclass(frozen=True, kw_only=True)
class LauncherFacts:
    """What a launcher declares for cluster files.

    ``settings`` is the class of the section with the launcher's name. ``needs_hosts``: the file names the nodes.
    ``is_this_machine``: the one node is the machine that drives the study. ``shared_files``: whether all nodes see the
    same ``outputs/``; None: each file says it.
    """

    settings: type[validation.Section] | None = None
    needs_hosts: bool = False
    is_this_machine: bool = False
    shared_files: bool | None = True

    @property
    def uses_images(self) -> bool:
        """Whether tasks run in container images."""
        return False


Launchers = Mapping[str, LauncherFacts]


#: Why runs on a cluster would be measured on the CPU of a machine with GPUs of these names; empty: on a GPU.
CpuReason = Callable[[Cluster, Sequence[str]], str]


def read_cluster(
    name_or_path: str | Path, launchers: Launchers, made_image_datasets: Mapping[str, str], cpu_reason: CpuReason
) -> Cluster:
    """Return a cluster by its name or path.

    ``made_image_datasets`` are the folders of images that this project makes itself, by name. The device ``auto`` of a
    machine with GPUs is what ``cpu_reason`` says.
    Raises StudyFileError for any mistake in the file: one line each.
    """
    path = strict_yaml.find_file("cluster", name_or_path)
    sections = launcher_sections(launchers)
    file = validation.validate(
        cluster_file_model(sections), strict_yaml.read_mapping(path), strict_yaml.display_path(path), keys(sections)
    )
    if errors := list(contradictions(file, launchers)):
        raise StudyFileError("\n".join(f"{strict_yaml.display_path(path)}: {error}" for error in errors))
    cluster = _cluster(file, launchers[file.launcher], path, made_image_datasets)
    if not cluster.is_this_machine:
        return cluster
    return _detected(cluster, strict_yaml.display_path(path), cpu_reason)


def _cluster(file: ClusterFile, facts: LauncherFacts, path: Path, made_image_datasets: Mapping[str, str]) -> Cluster:
    """Return the cluster as the file has it, ``auto`` included."""
    python = {framework: str(Path(interpreter).expanduser()) for framework, interpreter in file.python.items()}
    if facts.uses_images:
        # In an image the default is the one on the PATH, not that of this machine.
        python = {DEFAULT: "python", **python}
    # The name under which the cluster is found again.
    file_of_name = resources.named_files("cluster").get(path.stem)
    has_short_name = file_of_name is not None and file_of_name.resolve() == path.resolve()
    return Cluster(
        name=path.stem if has_short_name else str(path.resolve()),
        hosts=tuple(file.hosts),
        nodes=file.nodes or len(file.hosts),
        idle_max_busy_cores=file.idle.max_busy_cores,
        idle_wait_seconds=file.idle.wait_seconds,
        **file.start_up.model_dump(),
        python=python,
        pass_environment=tuple(file.pass_environment),
        container=tuple(file.container),
        image_datasets={**made_image_datasets, **file.image_datasets},
        shared_files=bool(file.shared_files) if facts.shared_files is None else facts.shared_files,
        settings=_settings(file, facts, path),
        is_this_machine=facts.is_this_machine,
        devices_per_node=file.devices_per_node or 0,
        **{name: getattr(file, name) for name in SAME_IN_CLUSTER},
    )


def launcher_sections(launchers: Launchers) -> dict[str, type[validation.Section]]:
    """Return the section of each launcher that has one, by launcher."""
    return {name: facts.settings for name, facts in launchers.items() if facts.settings}


def contradictions(file: ClusterFile, launchers: Launchers) -> Iterator[str]:
    """Yield where keys contradict each other or are missing."""
    # An unknown launcher is the only one: the others depend on it.
    if file.launcher not in launchers:
        yield wording.unknown_name("launcher is", file.launcher, "launchers", launchers)
        return
    facts = launchers[file.launcher]
    yield from _sections(file, launchers)
    yield from _hosts(file, launchers)
    detected = [name for name in ("device", "device_name", "interconnect") if getattr(file, name) == AUTO]
    detected += ["devices_per_node"] if file.devices_per_node is None else []
    if detected and not facts.is_this_machine:
        able = ", ".join(name for name, facts_of in launchers.items() if facts_of.is_this_machine)
        names = ", ".join(detected)
        yield f"{names} cannot be auto with launcher {file.launcher}; give a value (launcher {able} supports auto)"
    if facts.shared_files is None and file.shared_files is None:
        yield "shared_files is missing; write true if outputs/ is the same folder on every node, else false"
    if facts.shared_files is not None and file.shared_files is (not facts.shared_files):
        given, always = wording.as_yaml(file.shared_files), wording.as_yaml(facts.shared_files)
        yield f"shared_files is {given}; with launcher {file.launcher} it is always {always}"
    if file.work_folder and not file.work_folder.startswith("/"):
        # Node agents on different nodes start in different folders.
        yield f"work_folder is {file.work_folder!r}; it must be an absolute path"
    for name, folder in file.image_datasets.items():
        if not folder.startswith("/"):
            yield f"image_datasets.{name} is {folder!r}; it must be an absolute path"


def _sections(file: ClusterFile, launchers: Launchers) -> Iterator[str]:
    for name, section in launcher_sections(launchers).items():
        is_given = getattr(file, name) is not None
        if is_given and name != file.launcher:
            yield f"{name} is a section for launcher {name}; the launcher is {file.launcher}"
        required = [key for key, field in section.model_fields.items() if field.is_required()]
        if required and not is_given and name == file.launcher:
            yield f"{name} is missing; launcher {name} needs its {', '.join(required)}"


def _hosts(file: ClusterFile, launchers: Launchers) -> Iterator[str]:
    """Yield what is wrong with the number of nodes and their names."""
    facts_of_launcher = launchers[file.launcher]
    with_hosts = [name for name, facts in launchers.items() if facts.needs_hosts]
    if file.launcher in with_hosts and not file.hosts:
        yield f"hosts is missing; launcher {file.launcher} needs one name per node"
    elif file.launcher not in with_hosts and file.hosts:
        yield f"hosts is for launcher {', '.join(with_hosts)}; launcher {file.launcher} finds its nodes itself"
    elif file.nodes is None and not file.hosts:
        yield "nodes is missing"
    elif facts_of_launcher.is_this_machine and file.nodes != 1:
        yield f"nodes is {file.nodes}; launcher {file.launcher} has one node, this machine"
    elif file.hosts and (file.nodes or 0) > len(file.hosts):
        yield f"nodes is {file.nodes}, but hosts has {len(file.hosts)}"
    if repeated := sorted({host for host in file.hosts if file.hosts.count(host) > 1}):
        yield f"hosts has {', '.join(repeated)} twice"


def _detected(cluster: Cluster, source: str, cpu_reason: CpuReason) -> Cluster:
    """Return the cluster with the devices of this machine."""
    allowed = cluster.environment.get(
        environment_variables.VISIBLE_DEVICES, os.environ.get(environment_variables.VISIBLE_DEVICES)
    )
    devices = hardware.usable_gpus(allowed) if cluster.device != "cpu" else []
    gpus = [gpu.name for gpu in devices]
    if cluster.device == "gpu" and not gpus:
        raise StudyFileError(f"{source}: device is gpu, but nvidia-smi finds no GPU on this machine")
    reason = cpu_reason(cluster, gpus) if cluster.device == AUTO and gpus else ""
    device, name, available, used = "cpu", "", hardware.usable_cpus(), list[hardware.Gpu]()
    if gpus and not reason:
        device, name, available, used = "gpu", ", ".join(dict.fromkeys(gpus)), len(gpus), devices
    detected: dict[str, Any] = {}
    if cluster.device_name == AUTO:
        detected["device_name"] = name or hardware.cpu_name()
    if cluster.interconnect == AUTO:
        detected["interconnect"] = hardware.named_link(hardware.gpu_links(used)) or hardware.LOOPBACK
    return replace(
        replace(cluster, **detected),
        device=device,
        devices_per_node=cluster.devices_per_node or available,
        available_devices=available,
        why_not_gpu=reason,
    )


def _settings(file: ClusterFile, facts: LauncherFacts, path: Path) -> validation.Section | None:
    """Return the section of the launcher with absolute paths."""
    if not facts.settings:
        return None
    section: validation.Section = getattr(file, file.launcher) or facts.settings()
    paths = {}
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if FILE in field.metadata and value:
            paths[name] = str(path.resolve().parent / Path(value).expanduser())
            if not Path(paths[name]).is_file():
                key = f"{file.launcher}.{name}"
                raise StudyFileError(
                    f"{strict_yaml.display_path(path)}: {key} is {value!r}; there is no file {paths[name]}"
                )
    return section.model_copy(update=paths)
