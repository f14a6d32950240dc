"""What nodes say of themselves, against what the cluster file says and against each other. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from dlperf_study import frameworks
from dlperf_study.check.result import CheckResult, CheckStatus, holds, missing, note
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.guard.installed_packages import different_versions

Facts = Mapping[str, Any]

#: Logs say when things happened; numbers never come from comparing clocks.
MOST_SECONDS_APART = 1.0
LEAST_MEMORY_BYTES, LEAST_DISK_BYTES = 2e9, 2e8


def each_node(cluster: Cluster, name: str, facts: Facts) -> Iterator[CheckResult]:
    """Yield what one node has and lacks."""
    yield holds(f"{name}: reached", f"{facts['hardware']['host']}, {facts['hardware']['cpu_model']}")
    yield _devices(cluster, f"{name}: devices", facts["hardware"])
    yield _load(cluster, f"{name}: idle", facts["busy_cores"])
    yield _enough(f"{name}: memory", "free", facts["free_memory_bytes"], LEAST_MEMORY_BYTES)
    yield _folder(cluster, name, facts)
    if not cluster.is_this_machine:
        yield _address(f"{name}: address", facts["address"])


def together(cluster: Cluster, told: Mapping[str, Facts], offsets: Mapping[str, float]) -> Iterator[CheckResult]:
    """Yield whether all nodes would run the same."""
    yield _code(told)
    found = [_framework(cluster, name, told) for name in frameworks.names()]
    yield from found
    if not any(result.status is CheckStatus.HOLDS for result in found):
        yield missing("a framework", "none can train", "install one on every node: docs/clusters.md")
    if not cluster.is_this_machine:
        yield _clocks(offsets)


def _devices(cluster: Cluster, subject: str, hardware: Facts) -> CheckResult:
    if cluster.device == "cpu":
        found, name = hardware["cores"], hardware["cpu_model"]
    else:
        names = [gpu for gpu in hardware.get("gpu_names", "").split("; ") if gpu]
        found, name = len(names), names[0] if names else "no GPU"
    words = f"{found} × {name}"
    if found < cluster.devices_per_node:
        return missing(subject, words, f"the cluster file says devices_per_node: {cluster.devices_per_node}; lower it")
    if cluster.device_name != name:
        remedy = f"the cluster file, and so every caption, says {cluster.device_name!r}; write device_name: {name}"
        return note(subject, words, remedy)
    return holds(subject, words)


def _load(cluster: Cluster, subject: str, busy_cores: float) -> CheckResult:
    words = f"{busy_cores:.1f} cores busy"
    if busy_cores > cluster.idle_max_busy_cores:
        remedy = (
            f"a run waits {cluster.idle_wait_seconds:.0f} s, then starts with a diagnostic: end what else runs there"
        )
        return note(subject, words, remedy)
    return holds(subject, words)


def _enough(subject: str, what: str, found_bytes: float, least_bytes: float) -> CheckResult:
    words = f"{found_bytes / 1e9:.1f} GB {what}"
    if found_bytes < least_bytes:
        return missing(subject, words, f"a run needs at least {least_bytes / 1e9:.1f} GB")
    return holds(subject, words)


def _folder(cluster: Cluster, name: str, facts: Facts) -> CheckResult:
    """Return whether a node can write, or sees what this machine writes."""
    if not cluster.is_this_machine and cluster.shared_files:
        if facts["sees_shared_file"]:
            return holds(f"{name}: outputs/", "is shared with this machine")
        return missing(
            f"{name}: outputs/",
            "is not the one of this machine",
            "put it on a shared file system and name it by DLPERF_STUDY_OUTPUTS, or (ssh only) say shared_files: false",
        )
    subject = f"{name}: {facts['work_folder']}"
    if not facts["is_writable"]:
        return missing(subject, "can't be made or written", "name another work_folder in the cluster file")
    return _enough(subject, "free", facts["free_disk_bytes"], LEAST_DISK_BYTES)


def _address(subject: str, found: Mapping[str, str]) -> CheckResult:
    if "error" in found:
        return missing(subject, found["error"], "set network_interface in the cluster file")
    return holds(subject, f"{found['address']} on {found['interface']}")


def _code(told: Mapping[str, Facts]) -> CheckResult:
    first, *_ = told
    others = [name for name, facts in told.items() if facts["code"] != told[first]["code"]]
    if others:
        return missing(
            "measuring code", f"other on {', '.join(others)} than on {first}", "bring all to the same commit"
        )
    return holds("measuring code", f"the same everywhere ({told[first]['code'][:12]})")


def _framework(cluster: Cluster, framework: str, told: Mapping[str, Facts]) -> CheckResult:
    """Return whether a framework's libraries are there, at the same versions, in the Python the cluster file names."""
    first, *_ = told
    brought = {name: facts["software"][framework] for name, facts in told.items()}
    if broken := next((f"{name}: {one['error']}" for name, one in brought.items() if "error" in one), ""):
        return missing(framework, broken, _named(cluster, framework))
    if others := [name for name, one in brought.items() if one["code"] != told[first]["code"]]:
        words = f"{', '.join(others)}: this Python has other measuring code"
        return missing(framework, words, "install this very checkout there")
    packages = (*frameworks.load(framework).packages, *frameworks.load(framework).further_packages)
    if not (versions := _versions(brought[first], packages)):
        return _not_installed(cluster, framework)
    for name, one in brought.items():
        for package, there, _ in different_versions(one["software"], brought[first]["software"]):
            words = f"{package} is {there} on {name}, other than on {first}"
            return missing(framework, words, "install the same lock file everywhere")
    return holds(framework, f"{versions} everywhere")


def _not_installed(cluster: Cluster, framework: str) -> CheckResult:
    """Return that nobody has a framework's library: a mistake where the file names a Python for it, else a choice."""
    words = f"not installed in {cluster.python_for(framework)}"
    if framework in cluster.python:
        return missing(framework, words, f"{_named(cluster, framework)}, or leave python.{framework} out")
    return note(framework, words, "its configurations are unsupported")


def _named(cluster: Cluster, framework: str) -> str:
    """Return what to do about a Python that is of no use: it is named, or stands in a container that is."""
    key = f"python.{framework}" if framework in cluster.python else "container" if cluster.container else "python"
    return f"{key} in the cluster file names it: install this package and the library there, or name another"


def _versions(brought: Facts, packages: tuple[str, ...]) -> str:
    software = brought["software"]
    return ", ".join(f"{name} {software[name]}" for name in packages if name in software)


def _clocks(offsets: Mapping[str, float]) -> CheckResult:
    far = {name: seconds for name, seconds in offsets.items() if abs(seconds) > MOST_SECONDS_APART}
    if far:
        words = ", ".join(f"{name} {seconds:+.1f} s" for name, seconds in far.items())
        return note("clocks", words, "set them by NTP; no number depends on it, but times in logs do")
    return holds("clocks", f"within {MOST_SECONDS_APART:.0f} s of this machine")
