"""Runs as the launcher renders them, and pods as the API describes them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes_validate

from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.launchers import kubernetes as launcher
from dlperf_study.machines.node_agent.submission import Submission
from dlperf_study.study.configuration import Configuration
from dlperf_study.training import frameworks

FOLDER = Path("/outputs/example/configurations/one")
VERSIONS = [f"1.{minor}" for minor in range(25, int(kubernetes_validate.latest_version().split(".")[1]) + 1)]


def submission(configuration: Configuration, cluster: Cluster, folder: Path = FOLDER) -> Submission:
    job = frameworks.load(configuration.framework).job(configuration, cluster)
    return launcher.render(replace(job, framework=configuration.framework), cluster, folder / "runs" / "1")


def pod(phase: str, **status: Any) -> dict[str, Any]:
    spec = {"hostname": "trainer-1", "nodeName": "node-7"}
    return {"metadata": {"name": "x"}, "spec": spec, "status": {"phase": phase, **status}}


def ended(**terminated: Any) -> dict[str, Any]:
    return pod("Failed", containerStatuses=[{"state": {"terminated": terminated}}])
