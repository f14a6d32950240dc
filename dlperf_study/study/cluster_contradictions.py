"""Where the keys of a cluster file contradict each other, or lack what another needs."""

from collections.abc import Collection

from dlperf_study.spelling import unknown
from dlperf_study.study.cluster_sections import AUTO, ClusterFile

#: Launchers with which it is known whether all nodes see the same ``outputs/``.
SHARED_FILES = {"local": True, "slurm": True, "kubernetes": False}


def contradiction(file: ClusterFile, launchers: Collection[str]) -> str | None:
    """Return the first contradiction, or None; a launcher that is none of those there are comes before all others."""
    if file.launcher not in launchers:
        return unknown("launcher is", file.launcher, "launchers", launchers)
    checks = (_sections, _hosts, _auto, _shared, _work_folder)
    return next(filter(None, (check(file) for check in checks)), None)


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
