"""A training on several hosts, as small as it can be, and what it leaves wherever it was launched."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dlperf_study.core.paths import RunPaths
from dlperf_study.records.rank_agreement import complete_logs, contradiction
from dlperf_study.records.rank_log import RankLog
from dlperf_study.study.configuration import Configuration
from tests.evidence_factory import Recipe, run_json
from tests.machines.clusters.namespaces import Host
from tests.training.frameworks.launching import configuration

#: Every way to train, and what it needs besides its name.
FRAMEWORKS: dict[str, dict[str, Any]] = {
    "paddle_collective": {},
    "paddle_ps": {"strategy": "async", "parameter_servers": 2},
    "torch_ddp": {},
    "horovod_torch": {},
}
STEPS = {
    "warmup_steps": 1,
    "max_warmup_seconds": 0.0,
    "measured_steps": 2,
    "compute_only_steps": 1,
    "communication_only_steps": 3,
}
#: Fewer images and batch normalisation has too few values to normalise over.
BATCH = 4
#: Bytes of the gradients of the model with ten classes.
GRADIENTS = 4 * 2_236_682


def asked_for(framework: str, nodes: int) -> Configuration:
    """Return one rank a node, that trains a few steps."""
    return configuration(framework=framework, nodes=nodes, batch_per_device=BATCH, **STEPS, **FRAMEWORKS[framework])


def check_trained_together(
    folder: Path, asked: Configuration, names: Sequence[str], code: str = ""
) -> tuple[RankLog, ...]:
    """Check that one rank on each of these hosts trained the same network on data of its own; return their logs.

    ``code``: the digest of the controller's code, if there was one.
    """
    paths = RunPaths(folder)
    logs, problem = complete_logs(paths, asked.world_size)
    assert problem == ""
    assert [log.facts["host"] for log in logs] == list(names)
    assert {log.facts["world_size"] for log in logs} == {len(names)}
    assert {log.facts["gradient_bytes"] for log in logs} == {GRADIENTS}
    assert {log.windows["communication"].bytes for log in logs} == {GRADIENTS}
    assert len({log.end["parameter_checksum"] for log in logs}) == 1
    assert all(np.isfinite(log.windows["training"].losses).all() for log in logs)
    assert len({log.windows["training"].losses[0] for log in logs}) == len(names)
    facts = run_json(asked, paths.repetition, Recipe()) | {"seconds": None, "code": code}
    assert contradiction(logs, facts, asked, paths) == ""
    return tuple(logs)


def least_traffic(asked: Configuration) -> int:
    """Return how many bytes must travel between the hosts of a run, whatever way its gradients take.

    To reduce them, all but one rank must send them or what has become of them; to spread the result, all but one must
    get it. With servers, the rank next to one of two has no more than one half of each way to itself.
    """
    steps = asked.warmup_steps + asked.measured_steps + asked.communication_only_steps
    return 2 * (asked.nodes - 1) * GRADIENTS * steps


def traffic(hosts: Sequence[Host]) -> int:
    """Return how many bytes these hosts have sent so far."""
    return sum(host.sent_bytes for host in hosts)
