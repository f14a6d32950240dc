"""Check that the libraries of a framework are installed on all nodes, alike and able to train."""

from collections.abc import Mapping
from typing import Any

from dlperf_study import frameworks
from dlperf_study.check.result import CheckResult, missing, note, ok
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.cluster.gpu_support import gpu_contradictions, support_of
from dlperf_study.frameworks._base import Framework
from dlperf_study.guard.installed_packages import different_versions

#: What one node reports of itself (``guard.probe.facts``).
Facts = Mapping[str, Any]


def check_framework(cluster: Cluster, framework: str, facts: Mapping[str, Facts]) -> CheckResult:
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
    if obstacle := _installation_obstacle(cluster, declared, reference):
        return obstacle
    for name, of_node in installed.items():
        for package, version, _ in different_versions(of_node["software"], reference):
            detail = f"{package} is {version} on {name}, different from {first}"
            return missing(framework, detail, "install the same lock file everywhere")
    packages = (*declared.packages, *declared.further_packages)
    versions = [f"{package} {reference[package]}" for package in packages if package in reference]
    everywhere = f"{', '.join(versions)} everywhere"
    return _on_gpus(cluster, framework, facts, everywhere) if cluster.device == "gpu" else ok(framework, everywhere)


def _installation_obstacle(cluster: Cluster, framework: Framework, versions: Mapping[str, str]) -> CheckResult | None:
    """Return that a library is not installed, or in a version that can't train; ``versions`` are those of packages."""
    version, is_named = framework.version_in(versions), framework.name in cluster.python
    if version is None:
        detail = f"not installed in {cluster.python_for(framework.name)}"
        if not is_named:
            return note(framework.name, detail, "its configurations are unsupported")
        remedy = f"{_python_remedy(cluster, framework.name)}, or leave python.{framework.name} out"
        return missing(framework.name, detail, remedy)
    if wrong := framework.wrong_version(version):
        result = missing if is_named else note
        return result(framework.name, wrong, f"its configurations are unsupported: {framework.version_remedy}")
    return None


def _on_gpus(cluster: Cluster, framework: str, facts: Mapping[str, Facts], everywhere: str) -> CheckResult:
    """Return whether a framework whose libraries are installed ``everywhere`` can train on the GPUs of all nodes."""
    answers = {name: facts[name]["gpu_support"][framework] for name in facts}
    for name, answer in answers.items():
        if answer and "error" in answer:
            return missing(framework, f"{name}: {answer['error']}", _python_remedy(cluster, framework))
    if frameworks.load(framework).gpu_support is None:
        return note(framework, f"{everywhere}; trains on CPUs only", "its configurations are unsupported")
    supports = {name: support_of(answer) for name, answer in answers.items()}
    is_without_cuda = any(support and not support.cuda for support in supports.values())
    contradictions = gpu_contradictions(framework, supports, cluster.devices_per_node, cluster.device_name)
    if contradiction := next(contradictions, ""):
        if is_without_cuda and framework not in cluster.python:
            return note(framework, contradiction, "its configurations are unsupported")
        build = "a build for GPUs" if is_without_cuda else "a build for the CUDA of this driver, or a newer driver"
        return missing(framework, contradiction, f"docs/gpu.md says how to install {build}")
    support = next(iter(supports.values()))
    return ok(framework, f"{everywhere}, {support.build if support else ''}")


def _python_remedy(cluster: Cluster, framework: str) -> str:
    """Return what to do about an unusable Python: the cluster file names it, or the container that has it."""
    key = f"python.{framework}" if framework in cluster.python else "container" if cluster.container else "python"
    return f"{key} in the cluster file names it: install this package and the library there, or name another"
