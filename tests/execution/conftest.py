"""A cluster whose launcher writes rank logs where others train."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.core.paths import OUTPUTS_VARIABLE, RunPaths
from dlperf_study.machines import launchers
from dlperf_study.machines.launchers import local
from dlperf_study.machines.node_agent.submission import Submission
from dlperf_study.machines.supervision import locks
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import JobResult, RunStatus
from dlperf_study.study.plan import Entry, Plan
from dlperf_study.training import models
from tests.command_line import CLUSTER
from tests.evidence_factory import Recipe, rank_lines, write_lines
from tests.training.frameworks.launching import configuration


@pytest.fixture
def three_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configuration:
    """A configuration of two ranks and three repetitions, on a cluster of this test."""
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    return configuration(cluster=str(file), devices_per_node=2, repetitions=3)


@pytest.fixture
def constructed_runs(three_runs: Configuration, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the launcher write rank logs, with constructed timings, instead of training."""

    def execute(submissions: list[Submission], *_: object) -> Iterator[JobResult]:
        for submission in submissions:
            paths = RunPaths(Path(submission.folder))
            paths.folder.mkdir(parents=True)
            trained = Configuration.from_mapping(json.loads(submission.files[paths.configuration_file.name]))
            for rank in range(trained.world_size):
                flops = models.load(trained.model).flops(trained)
                lines = rank_lines(trained, rank, int(paths.folder.name), Recipe(flops_per_sample=flops))
                write_lines(paths.rank_log(rank), [lines[0] | {"code": submission.code}, *lines[1:]])
            yield JobResult(RunStatus.COMPLETED, "", 600.0, {"node-0": 0}, started="2024-05-01T00:00:00+00:00")

    launcher = replace(local.LAUNCHER, execute=execute)
    monkeypatch.setattr(launchers, "load", lambda _: launcher)
    monkeypatch.setattr(locks, "machine_lock_file", lambda: Path(three_runs.cluster).with_name("lock"))


@pytest.fixture
def plan(three_runs: Configuration) -> Plan:
    """Three configurations of three repetitions each."""
    configurations = [replace(three_runs, batch_per_device=batch) for batch in (4, 8, 16)]
    entries = tuple(
        Entry(configuration=configuration, baseline_id=configurations[0].configuration_id)
        for configuration in configurations
    )
    return Plan(
        study=three_runs.study,
        cluster=three_runs.cluster,
        title="An example",
        about="Made for a test.",
        scaling="weak",
        sections=("scaling",),
        factors=("batch_per_device",),
        published=(),
        quick=False,
        entries=entries,
        order="interleaved",
    )
