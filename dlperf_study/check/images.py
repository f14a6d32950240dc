"""Check that every node has the image sets of a cluster, with the same classes."""

from collections.abc import Iterator, Mapping
from typing import Any

from dlperf_study.check.result import CheckResult, missing, ok
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.image_sets.photographs import made_image_sets


def check_images(cluster: Cluster, facts: Mapping[str, Mapping[str, Any]]) -> Iterator[CheckResult]:
    """Yield a result for each image set; none for one that `make data` would make and that no node has.

    ``facts`` are those of ``guard.probe.facts`` by name of node.
    """
    for name, folder in cluster.image_sets.items():
        answers = {node: of_node["image_sets"][name] for node, of_node in facts.items()}
        is_anywhere = any("classes" in answer for answer in answers.values())
        if is_anywhere or folder != made_image_sets().get(name):
            yield _image_set(name, folder, answers)


def _image_set(name: str, folder: str, answers: Mapping[str, Mapping[str, Any]]) -> CheckResult:
    subject = f"image set {name}"
    errors = [f"{node}: {answer['error']}" for node, answer in answers.items() if "error" in answer]
    if errors:
        remedy = f"put the images there on every node, or name another folder: image_sets.{name} of the cluster file"
        return missing(subject, "; ".join(errors), remedy)
    counts = {node: answer["classes"] for node, answer in answers.items()}
    if len(set(counts.values())) > 1:
        detail = ", ".join(f"{node} has {count} classes" for node, count in counts.items())
        return missing(subject, detail, "copy the same images to every node")
    return ok(subject, f"{next(iter(counts.values()))} classes in {folder}")
