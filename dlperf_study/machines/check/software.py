"""Check that all nodes have the same libraries and images, and that a framework can train with them."""

from collections.abc import Iterator, Mapping
from typing import Any

from dlperf_study.core.user_commands import SAME_PACKAGE
from dlperf_study.machines.check import CheckResult, missing, note, ok
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.node_agent.installed_packages import different_versions
from dlperf_study.study.gpu_support import GpuQuestion, GpuSupport
from dlperf_study.study.job import FrameworkFacts

#: What one node reports of itself (``agent.probe.facts``).
Facts = Mapping[str, Any]


def check_framework(
    cluster: Cluster, declared: FrameworkFacts, question: GpuQuestion, facts: Mapping[str, Facts]
) -> CheckResult:
    """Return whether all nodes have the libraries of a framework.

    ``question`` is how its library was asked what it can do with GPUs.
    """
    framework, (first, *_) = declared.name, facts
    installed = {name: facts[name]["software"][framework] for name in facts}
    for name, of_node in installed.items():
        if "error" in of_node:
            return missing(framework, f"{name}: {of_node['error']}", _python_remedy(cluster, framework))
    if different := [name for name in facts if installed[name]["code"] != facts[first]["code"]]:
        detail = f"{', '.join(different)}: this Python has different measuring code"
        return missing(framework, detail, SAME_PACKAGE)
    reference = installed[first]["software"]
    if obstacle := _installation_obstacle(cluster, declared, reference):
        return obstacle
    for name, of_node in installed.items():
        for package, version, _ in different_versions(of_node["software"], reference):
            detail = f"{package} is {version} on {name}, different from {first}"
            return missing(framework, detail, "install the same lock file everywhere")
    packages = (*declared.packages, *declared.further_packages)
    versions = [f"{package} {reference[package]}" for package in packages if package in reference]
    everywhere = f"{', '.join(versions)} everywhere"
    if cluster.device == "gpu":
        return _check_gpus(cluster, question, facts, everywhere)
    return ok(framework, everywhere)


def _installation_obstacle(
    cluster: Cluster, framework: FrameworkFacts, versions: Mapping[str, str]
) -> CheckResult | None:
    """Return that a library is missing or too old or new."""
    version, is_named = framework.version_in(versions), framework.name in cluster.python
    if version is None:
        detail = f"not installed in {cluster.python_for(framework.name)}"
        if not is_named:
            return note(framework.name, detail, "its configurations are unsupported")
        remedy = f"{_python_remedy(cluster, framework.name)}, or leave python.{framework.name} out"
        return missing(framework.name, detail, remedy)
    if wrong := framework.wrong_version(version):
        result = missing if is_named else note
        remedy = f": {framework.version_remedy}" if framework.version_remedy else ""
        return result(framework.name, wrong, f"its configurations are unsupported{remedy}")
    return None


def _check_gpus(cluster: Cluster, question: GpuQuestion, facts: Mapping[str, Facts], everywhere: str) -> CheckResult:
    """Return whether a framework can train on all GPUs."""
    framework = question.framework
    answers = {name: facts[name]["gpu_support"][framework] for name in facts}
    for name, answer in answers.items():
        if answer and "error" in answer:
            return missing(framework, f"{name}: {answer['error']}", _python_remedy(cluster, framework))
    if not question.arguments:
        return note(framework, f"{everywhere}; trains on CPUs only", "its configurations are unsupported")
    supports = {name: GpuSupport.of(answer) for name, answer in answers.items()}
    is_without_cuda = any(support and not support.cuda for support in supports.values())
    contradictions = question.contradictions(supports, cluster.devices_per_node, cluster.device_name)
    if contradiction := next(contradictions, ""):
        if is_without_cuda and framework not in cluster.python:
            return note(framework, contradiction, "its configurations are unsupported")
        build = "a build for GPUs" if is_without_cuda else "a build for the CUDA of this driver, or a newer driver"
        return missing(framework, contradiction, f"docs/gpu.md says how to install {build}")
    support = next(iter(supports.values()))
    return ok(framework, f"{everywhere}, {support.build if support else ''}")


def _python_remedy(cluster: Cluster, framework: str) -> str:
    """Return what to do about an unusable Python."""
    key = f"python.{framework}" if framework in cluster.python else "container" if cluster.container else "python"
    return f"{key} in the cluster file names it: install this package and the library there, or name another"


def check_images(
    cluster: Cluster, made_image_datasets: Mapping[str, str], facts: Mapping[str, Mapping[str, Any]]
) -> Iterator[CheckResult]:
    """Yield a result for each image dataset.

    ``made_image_datasets`` are the folders of those. ``facts`` are those of ``agent.probe.facts`` by name of node.
    """
    for name, folder in cluster.image_datasets.items():
        answers = {node: of_node["image_datasets"][name] for node, of_node in facts.items()}
        is_anywhere = any("classes" in answer for answer in answers.values())
        if not is_anywhere and folder == made_image_datasets.get(name):
            continue
        subject = f"image dataset {name}"
        errors = [f"{node}: {answer['error']}" for node, answer in answers.items() if "error" in answer]
        counts = {node: answer["classes"] for node, answer in answers.items() if "classes" in answer}
        if errors:
            remedy = (
                f"put the images there on every node, or name another folder: image_datasets.{name} of the cluster file"
            )
            yield missing(subject, "; ".join(errors), remedy)
        elif len(set(counts.values())) > 1:
            detail = ", ".join(f"{node} has {count} classes" for node, count in counts.items())
            yield missing(subject, detail, "copy the same images to every node")
        else:
            yield ok(subject, f"{next(iter(counts.values()))} classes in {folder}")
