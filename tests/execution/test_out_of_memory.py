"""A training that finds too little memory: a result that is recorded, reported and not measured again."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.dataset.dataset import collect
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.repetitions import ConfigurationRuns, configuration_paths, require_no_failure
from dlperf_study.machines import launchers
from dlperf_study.machines.launchers import local
from dlperf_study.machines.node_agent.submission import Submission
from dlperf_study.machines.supervision import locks
from dlperf_study.study.job import JobResult, RunStatus
from tests.command_line import LIMIT_SECONDS, finish, workplace
from tests.conftest import left_over
from tests.evidence_factory import change
from tests.execution.constructed import missing_runs
from tests.memory_group import memory_group, processes_started_in

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)

#: One configuration that trains anywhere, and one of over 2 GB; two runs of each.
BATCHES = """\
title: Batches
about: Made for tests.
sections: [quality]
scaling: weak
constants: {framework: paddle_collective, strategy: all_reduce, model: mobilenet_v2, image_size: 32, classes: 10}
factors: {batch_per_device: [4, 4096], memory_limit_mib: [LIMIT]}
baseline: {batch_per_device: 4}
measurement: {warmup_steps: 1, max_warmup_seconds: 0, measured_steps: 1, repetitions: 2, timeout_seconds: 120}
"""
SMALL, LARGE = "b4-", "b4096"


def test_what_exceeds_its_limit_is_a_result_and_is_not_run_again(tmp_path):
    place = workplace(tmp_path, BATCHES.replace("LIMIT", "640"), shares_machine=True)
    done = place.command("run --no-report")
    assert (done.returncode, done.stderr) == (0, "")
    facts = place.run_facts(LARGE)
    assert facts["status"] == "out_of_memory"
    assert "MemoryError: (ResourceExhausted) Fail to alloc memory" in facts["reason"]
    assert facts["seconds"] < 60
    assert [path.name for path in (place.configuration(LARGE).folder / "runs").iterdir()] == ["1"]
    assert done.stdout.count(f"    out of memory: {facts['reason']}") == 1
    assert place.run_facts(SMALL, repetition=2)["status"] == "completed"
    assert not left_over()

    again = place.command("run --no-report")
    assert again.returncode == 0
    assert "nothing to do: 2 runs, all finished\nout of memory: " in again.stdout
    planned = place.command("plan").stdout
    assert f"Out of memory, not run again:\n#  reason\n2  {facts['reason']}\n" in planned
    assert "in 2 runs." in planned

    dataset = collect(place.study)
    diagnostics = dataset.select_diagnostics(place.configuration(LARGE).folder.name)
    in_memory = diagnostics[diagnostics["message"].str.contains("out of memory: ")]
    assert in_memory["severity"].tolist() == ["note"]
    assert "error" not in set(dataset.diagnostics["severity"]) - set(in_memory["severity"])


def test_by_hand_nothing_is_tried_after_a_run_that_found_too_little(three_runs, monkeypatch):
    """Until the benchmark code is another one: then it may need less."""
    begun: list[str] = []

    def execute(submissions: list[Submission], *_: object) -> Iterator[JobResult]:
        for submission in submissions:
            begun.append(submission.folder)
            Path(submission.folder).mkdir(parents=True)
            (Path(submission.folder) / "node-0.log").write_text("MemoryError\n")
            codes = {"node-0": 1}
            yield JobResult(
                RunStatus.FAILED, "node-0 exited with code 1", 1.0, codes, started="2024-05-01T00:00:00+00:00"
            )

    monkeypatch.setattr(locks, "machine_lock_file", lambda: Path(three_runs.cluster).with_name("lock"))
    monkeypatch.setattr(launchers, "load", lambda _: replace(local.LAUNCHER, execute=execute))
    records = ConfigurationRuns(three_runs).perform()
    require_no_failure(records)
    assert [(facts["repetition"], facts["status"]) for facts in records] == [(1, RunStatus.OUT_OF_MEMORY)]
    assert ConfigurationRuns(three_runs).perform() == records
    assert len(begun) == 1
    change(configuration_paths(three_runs).run(1), cache_key="of other code")
    assert len(missing_runs(three_runs, load_cluster(three_runs.cluster))) == 3


def test_what_the_kernel_kills_in_a_group_with_little_memory_found_too_little(tmp_path):
    study = BATCHES.replace("LIMIT", "0").replace("[4, 4096]", "[4096]").replace(": 4}", ": 4096}")
    place = workplace(tmp_path, study, shares_machine=True)
    with memory_group(1_300_000_000) as group:
        with processes_started_in(group):
            controller = place.start("run --no-report")
        done = finish(controller)
        assert not left_over()
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(place.configuration(LARGE).run(1).run_file.read_text())
    assert facts["status"] == "out_of_memory"
    assert facts["reason"].endswith("processes that the kernel killed because memory was full: 1")
