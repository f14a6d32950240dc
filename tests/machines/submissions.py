"""Submissions of commands that a test gives, without a framework that makes them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.node_agent.submission import Command, Submission
from dlperf_study.study.job import Job

IDLE = {"idle_max_busy_cores": 1e9, "idle_wait_seconds": 0.0, "ready_seconds": 180.0, "interconnect": ""}
CLUSTER = Cluster("test", 1, 1, device="cpu", device_name="", launcher="test", **IDLE)  # type: ignore[arg-type]


def submission(
    launcher: str, folder: str, commands: Sequence[Command] = (), ports: int = 0, **values: Any
) -> Submission:
    """Return the submission of these commands; ``values`` are of it, of its job or of its cluster."""
    empty = Submission(launcher, folder, tuple(commands), Job((), ports=ports), CLUSTER)
    return changed(empty, **values)


def changed(given: Submission, **values: Any) -> Submission:
    """Return a submission with other values of its own, of its job or of its cluster."""
    for name in [*values]:
        for part in ("job",) if name == "nodes" else ("cluster", "job"):
            facts = getattr(given, part)
            if name in values and name not in vars(given) and name in vars(facts):
                given = replace(given, **{part: replace(facts, **{name: values.pop(name)})})
    return replace(given, **values)
