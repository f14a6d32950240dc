"""Check the facts that nodes report against the cluster file and against each other. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from dlperf_study import frameworks
from dlperf_study.check.result import CheckResult, CheckStatus, missing, note, ok
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.guard.installed_packages import different_versions

#: What one node reports of itself (``guard.probe.facts``).
Facts = Mapping[str, Any]

#: Logs have the time of events; numbers never come from comparing clocks.
MAX_CLOCK_OFFSET_SECONDS = 1.0
MIN_MEMORY_BYTES, MIN_DISK_BYTES = 2e9, 2e8


def check_node(cluster: Cluster, name: str, facts: Facts) -> Iterator[CheckResult]:
    """Yield what one node has and what is missing there."""
    yield ok(f"{name}: reached", f"{facts['hardware']['host']}, {facts['hardware']['cpu_model']}")
    yield _devices(cluster, f"{name}: devices", facts["hardware"])
    busy = f"{facts['busy_cores']:.1f} cores busy"
    if facts["busy_cores"] <= cluster.idle_max_busy_cores:
        yield ok(f"{name}: idle", busy)
    else:
        wait = f"{cluster.idle_wait_seconds:.0f} s"
        yield note(
            f"{name}: idle", busy, f"a run waits {wait}, then starts with a diagnostic: end what else runs there"
        )
    yield _enough(f"{name}: memory", "free", facts["free_memory_bytes"], MIN_MEMORY_BYTES)
    yield _folder(cluster, name, facts)
    if cluster.is_this_machine:
        return
    address = facts["address"]
    if "error" in address:
        yield missing(f"{name}: address", address["error"], "set network_interface in the cluster file")
    else:
        yield ok(f"{name}: address", f"{address['address']} on {address['interface']}")


def check_together(
    cluster: Cluster, facts: Mapping[str, Facts], clock_offsets: Mapping[str, float]
) -> Iterator[CheckResult]:
    """Yield whether all nodes would run the same; facts and clock offsets (seconds) are by name of node."""
    first, *_ = facts
    code = facts[first]["code"]
    if different := [name for name in facts if facts[name]["code"] != code]:
        detail = f"different on {', '.join(different)} than on {first}"
        yield missing("measuring code", detail, "bring all to the same commit")
    else:
        yield ok("measuring code", f"the same everywhere ({code[:12]})")
    results = [_framework(cluster, name, facts) for name in frameworks.names()]
    yield from results
    if not any(result.status is CheckStatus.OK for result in results):
        yield missing("a framework", "none can train", "install one on every node: docs/clusters.md")
    if cluster.is_this_machine:
        return
    wrong = []
    for name, offset in clock_offsets.items():
        if abs(offset) > MAX_CLOCK_OFFSET_SECONDS:
            wrong.append(f"{name} {offset:+.1f} s")
    if wrong:
        yield note("clocks", ", ".join(wrong), "set them by NTP; no number depends on it, but times in logs do")
    else:
        yield ok("clocks", f"within {MAX_CLOCK_OFFSET_SECONDS:.0f} s of this machine")


def _devices(cluster: Cluster, subject: str, hardware: Facts) -> CheckResult:
    if cluster.device == "cpu":
        count, name = hardware["cores"], hardware["cpu_model"]
    else:
        names = [gpu for gpu in hardware.get("gpu_names", "").split("; ") if gpu]
        count, name = len(names), names[0] if names else "no GPU"
    detail = f"{count} × {name}"
    if count < cluster.devices_per_node:
        return missing(subject, detail, f"the cluster file says devices_per_node: {cluster.devices_per_node}; lower it")
    if cluster.device_name != name:
        remedy = f"the cluster file, and so every caption, says {cluster.device_name!r}; write device_name: {name}"
        return note(subject, detail, remedy)
    return ok(subject, detail)


def _enough(subject: str, label: str, available_bytes: float, min_bytes: float) -> CheckResult:
    detail = f"{available_bytes / 1e9:.1f} GB {label}"
    if available_bytes < min_bytes:
        return missing(subject, detail, f"a run needs at least {min_bytes / 1e9:.1f} GB")
    return ok(subject, detail)


def _folder(cluster: Cluster, name: str, facts: Facts) -> CheckResult:
    """Return whether a node can write to its folder, or sees what this machine writes to ``outputs/``."""
    if not cluster.is_this_machine and cluster.shared_files:
        if facts["sees_shared_file"]:
            return ok(f"{name}: outputs/", "is shared with this machine")
        return missing(
            f"{name}: outputs/",
            "is not the one of this machine",
            "put it on a shared file system and name it by DLPERF_STUDY_OUTPUTS, or (ssh only) say shared_files: false",
        )
    subject = f"{name}: {facts['work_folder']}"
    if not facts["is_writable"]:
        return missing(subject, "can't be made or written", "name another work_folder in the cluster file")
    return _enough(subject, "free", facts["free_disk_bytes"], MIN_DISK_BYTES)


def _framework(cluster: Cluster, framework: str, facts: Mapping[str, Facts]) -> CheckResult:
    """Return whether the Python of the cluster file has a framework's libraries, in the same versions on all nodes."""
    first, *_ = facts
    installed = {name: facts[name]["software"][framework] for name in facts}
    for name, of_node in installed.items():
        if "error" in of_node:
            return missing(framework, f"{name}: {of_node['error']}", _python_remedy(cluster, framework))
    if different := [name for name in facts if installed[name]["code"] != facts[first]["code"]]:
        detail = f"{', '.join(different)}: this Python has different measuring code"
        return missing(framework, detail, "install this very checkout there")
    reference = installed[first]["software"]
    declared = frameworks.load(framework)
    packages = (*declared.packages, *declared.further_packages)
    versions = [f"{package} {reference[package]}" for package in packages if package in reference]
    if not versions:
        return _not_installed(cluster, framework)
    for name, of_node in installed.items():
        for package, version, _ in different_versions(of_node["software"], reference):
            detail = f"{package} is {version} on {name}, different from {first}"
            return missing(framework, detail, "install the same lock file everywhere")
    return ok(framework, f"{', '.join(versions)} everywhere")


def _not_installed(cluster: Cluster, framework: str) -> CheckResult:
    """Return that no node has a framework's library: an error if the file names a Python for it, else a choice."""
    detail = f"not installed in {cluster.python_for(framework)}"
    if framework in cluster.python:
        remedy = f"{_python_remedy(cluster, framework)}, or leave python.{framework} out"
        return missing(framework, detail, remedy)
    return note(framework, detail, "its configurations are unsupported")


def _python_remedy(cluster: Cluster, framework: str) -> str:
    """Return what to do about an unusable Python: the cluster file names it, or the container that has it."""
    key = f"python.{framework}" if framework in cluster.python else "container" if cluster.container else "python"
    return f"{key} in the cluster file names it: install this package and the library there, or name another"
