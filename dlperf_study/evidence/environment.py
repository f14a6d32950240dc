"""What a run took place on: hardware, software and passed variables of its first node, the state of the code."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dlperf_study.cluster.hardware import command_output
from dlperf_study.paths import PROJECT

Facts = Mapping[str, Any]
#: What makes a node faster or slower.
MUST_BE_ALIKE = ("cpu_model", "cores", "cpu_governor", "gpu_names", "gpu_driver")


def environment(nodes: Sequence[Facts]) -> dict[str, dict[str, Any]]:
    """Return four flat objects: ``hardware``, ``software``, ``variables`` and ``git``.

    ``nodes`` is what each node said of itself; the first three are empty when none said anything.
    """
    first = nodes[0] if nodes else {}
    return {name: dict(first.get(name, {})) for name in ("hardware", "software", "variables")} | {"git": git()}


def load(nodes: Sequence[Facts], busy_cores_during: float | None) -> dict[str, Any]:
    """Return what others did on the busiest node, and what was ended on all."""
    loads = [node["load"] for node in nodes]
    return {
        "waited_seconds": max((one["waited_seconds"] for one in loads), default=None),
        "busy_cores_before": max((one["busy_cores_before"] for one in loads), default=None),
        "survivors_ended": [
            f"{node['name']}: {survivor}" if node["name"] else survivor
            for node, one in zip(nodes, loads, strict=True)
            for survivor in one["survivors_ended"]
        ],
        "busy_cores_during": busy_cores_during,
    }


def unlike_nodes(nodes: Sequence[Facts]) -> list[dict[str, str]]:
    """Return a diagnostic for each way in which a node is not like the first: the slowest sets the pace of all."""
    return [
        {"subject": "nodes", "message": f"{name} is {there} on {node['name']}, but {here} on {nodes[0]['name']}"}
        for node in nodes[1:]
        for name in MUST_BE_ALIKE
        if (there := node["hardware"].get(name)) != (here := nodes[0]["hardware"].get(name))
    ]


def git() -> dict[str, Any]:
    """Return the commit of the checkout, and whether it has files beside that, changed or new; empty outside of one.

    New ones count, for they may be the study and the cluster; what git is told to ignore does not.
    """
    question = ("status", "--porcelain=v2", "--branch", "--untracked-files=normal")
    said = command_output("git", "-C", str(PROJECT), *question)
    commit = re.search(r"^# branch\.oid ([0-9a-f]+)$", said, re.MULTILINE)
    if not commit:
        return {}
    return {"commit": commit[1], "dirty": any(not line.startswith("#") for line in said.splitlines())}
