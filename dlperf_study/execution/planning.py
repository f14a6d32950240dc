"""From the files of a study and of a cluster to a plan, and why a configuration can't run there."""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dlperf_study.core import user_commands, wording
from dlperf_study.core.errors import ImageDatasetError, StudyFileError, UnsupportedError
from dlperf_study.execution import libraries
from dlperf_study.machines import launchers
from dlperf_study.machines.cluster import DEFAULT, Cluster, cluster_file
from dlperf_study.machines.node_agent.installed_packages import UnusablePython
from dlperf_study.programs.command import command_obstacles, missing_command, untold_nodes, untold_processes
from dlperf_study.programs.program_files import identified, require_packed_size
from dlperf_study.study.configuration import PARAMETERS, Configuration
from dlperf_study.study.plan import Plan, build_plan
from dlperf_study.study.program import LOG, OWN_PROGRAM, RECORDER, Program
from dlperf_study.study.strict_yaml import Location, display_path, find_file, key_path, read_mapping
from dlperf_study.study.study import Study
from dlperf_study.study.study_file import load_study
from dlperf_study.training import data_loaders, frameworks, models
from dlperf_study.training.image_datasets import number_of_classes, require_classes
from dlperf_study.training.image_datasets._photographs import made_image_datasets
from dlperf_study.training.parts import Locate, require_framework_names, require_part_names

NO_IMAGES = PARAMETERS["image_dataset"].default


def make_plan(study_name: str, cluster_name: str, quick: bool) -> tuple[Plan, Cluster]:
    """Return the plan of a study on a cluster, and that cluster.

    Raises StudyFileError for any error in either file, with every misspelt name of the study file.
    """
    try:
        study = load_study(study_name, quick)
        if study.program:
            _require_log_format(study.program, study.source)
        cluster = cluster_for([study], cluster_name)
        launcher = launchers.load(cluster.launcher)
        if study.program and launcher.most_archive_bytes is not None:
            require_packed_size(study.program, study.source, launcher.most_archive_bytes, launcher.archive_remedy)
        return plan_study(study, cluster), cluster
    except StudyFileError as error:
        raise StudyFileError("\n".join([str(error), *_other_unknown_names(study_name, str(error))])) from error


def _require_log_format(program: Program, source: str) -> None:
    from dlperf_study.logs import formats
    from dlperf_study.logs.own_format import read_own_format

    if program.log_format:
        read_own_format(program.log_format.encode(), program.timing)
        return
    choices = (RECORDER, LOG, *formats.names())
    if program.timing not in choices:
        raise StudyFileError(wording.unknown_name(f"{source}: program.timing is", program.timing, "choices", choices))


def _other_unknown_names(study_name: str, message: str) -> list[str]:
    try:
        path = find_file("study", study_name)
        content = read_mapping(path)
    except StudyFileError:
        return []
    # The same name has another key in the messages about quick mode.
    messages = _unknown_names(content, display_path(path))
    return [line for line in messages if line.partition(" is ")[2] not in message]


def _unknown_names(content: Any, source: str, location: Location | None = None) -> Iterator[str]:
    """Yield a message for each unknown part of a study file.

    ``content`` may have any other error too.
    """
    location = location or []
    if isinstance(content, dict | list):
        for key, value in content.items() if isinstance(content, dict) else enumerate(content):
            yield from _unknown_names(value, source, [*location, key])
        return
    for parameter, registry in {"framework": frameworks, "model": models, "data_loader": data_loaders}.items():
        if parameter in location and isinstance(content, str) and content not in registry.names():
            kind = f"{parameter.replace('_', ' ')}s"
            yield wording.unknown_name(f"{source}: {key_path(location)} is", content, kind, registry.names())


def load_cluster(name_or_path: str | Path, framework_names: Collection[str] | None = None) -> Cluster:
    """Return a cluster by its name or path.

    ``framework_names`` are the frameworks that will train, on which the device ``auto`` depends; None: all.
    Raises StudyFileError for any error in the file.
    """
    reason = partial(libraries.cpu_reason, framework_names=framework_names)
    return cluster_file.read_cluster(name_or_path, launchers.by_name(), made_image_datasets(), reason)


def cluster_for(studies: Sequence[Study], cluster_name: str) -> Cluster:
    """Return the cluster for these studies."""
    names: dict[str, None] = {}
    for study in studies:
        if study.program:
            # Whether its library can use GPUs is not known before it runs.
            return load_cluster(cluster_name, [OWN_PROGRAM])
        names |= dict.fromkeys(str(point["framework"]) for point in study.points)
    # The plan refuses a name that doesn't exist, and says where it is.
    return load_cluster(cluster_name, [name for name in names if name in frameworks.names()])


def plan_study(study: Study, cluster: Cluster) -> Plan:
    """Return the plan of a study on a cluster.

    Raises StudyFileError where these can't be read or are too large.
    """
    if study.program:
        study = study.changed(program=identified(study.program, study.source))
    is_seen = cluster.is_this_machine and not cluster.container
    missing = missing_command(study.program) if study.program and is_seen else ""

    def unsupported(configuration: Configuration) -> str | None:
        reasons = [missing]
        if study.program:
            reasons.append(untold_nodes(study.program, configuration))
            if is_seen and cluster.device != "gpu":
                reasons.append(untold_processes(study.program, configuration))
        reasons.append(unsupported_here(configuration, cluster, study.locate) or "")
        return wording.all_reasons(reasons) or None

    _require_framework_keys(cluster)
    return build_plan(study, cluster, unsupported)


def unsupported_here(configuration: Configuration, cluster: Cluster, locate: Locate | None = None) -> str | None:
    """Return why the cluster's software can't run a configuration, or None.

    ``locate`` returns where a study file has a value; without it, messages name the study.
    Raises StudyFileError for a name that does not exist: it is misspelt, and not unsupported; and UnsupportedError
    when a Python can't be run or reached, so that its libraries are unknown.
    """
    if configuration.own_program:
        return command_obstacles(configuration, cluster) or None
    require_part_names(configuration, locate or (lambda name, _: f"study {configuration.study}: {name}"))
    framework = frameworks.load(configuration.framework)
    reasons: list[str] = []
    version: str | None = ""
    try:
        version = libraries.library_version(framework, cluster)
        reasons.extend(libraries.missing_packages(configuration, cluster))
    except UnusablePython as error:
        reasons.append(f"the Python for {framework.name} can't be used: {error}")
    reasons.extend(framework.obstacles(configuration, cluster, version))
    reasons.append(image_dataset_obstacle(configuration, cluster))
    if configuration.cpu_limit:
        reasons.append(launchers.load(cluster.launcher).cpu_limit_obstacle(cluster, configuration))
    if version and cluster.device == "gpu" and framework.gpu_support:
        reasons.append(libraries.gpu_obstacle(framework, cluster, configuration.devices_per_node))
    if cluster.is_this_machine:
        reasons.append(data_loaders.load(configuration.data_loader).obstacle_here(configuration))
    if version and cluster.is_this_machine:
        reasons.append(libraries.compiler_obstacle_here(configuration, cluster))
    return wording.all_reasons(reasons) or None


def _require_framework_keys(cluster: Cluster) -> None:
    """Refuse unknown frameworks in ``python`` and ``images``."""
    launcher = launchers.load(cluster.launcher)
    images = launcher.images(cluster) if launcher.images else {}
    for key, section in (("python", cluster.python), (f"{cluster.launcher}.images", images)):
        require_framework_names(set(section) - {DEFAULT}, f"cluster {cluster.name}: {key}")


def require_support(configuration: Configuration, cluster: Cluster) -> None:
    """Raise UnsupportedError with the reason when the configuration can't run here."""
    _require_framework_keys(cluster)
    if reasons := wording.all_reasons((*cluster.obstacles(configuration), unsupported_here(configuration, cluster))):
        raise UnsupportedError(f"{configuration.configuration_id}: {reasons}")


def image_dataset_obstacle(configuration: Configuration, cluster: Cluster) -> str:
    """Return why a cluster lacks a configuration's images, or nothing.

    Raises ImageDatasetError if they are on this machine and damaged, or of other classes than the configuration: that
    is an error of the user, while a set that is nowhere may be on another cluster.
    """
    name, folder = configuration.image_dataset, cluster.image_folder(configuration)
    if name == NO_IMAGES:
        return ""
    if not folder:
        names = ", ".join(cluster.image_datasets)
        where = f"cluster {cluster.title} has no folder for it under image_datasets"
        return f"image_dataset is {name}, but {where}: it has {names}"
    # Of other machines, each node is asked at the start of a run.
    if not cluster.is_this_machine:
        return ""
    if folder == made_image_datasets().get(name) and not Path(folder).exists():
        command = user_commands.make_or("data", user_commands.command_line("make-data"))
        return f"image_dataset {name} does not exist yet; `{command}` makes it"
    try:
        require_classes(Path(folder), number_of_classes(folder), configuration.classes)
    except ImageDatasetError as error:
        raise ImageDatasetError(f"image_dataset {name}: {error}") from error
    return ""
