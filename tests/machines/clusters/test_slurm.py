"""A real Slurm: what a job does on its nodes, and jobs that never start."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.study.job import RunStatus
from tests.command_line import LIMIT_SECONDS
from tests.machines import submissions
from tests.machines.clusters.namespaces import PREFIX
from tests.machines.clusters.slurm_runs import execute, jobs_of, runs

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def test_all_runs_of_a_configuration_are_one_job(tmp_path, slurm_cluster, slurm):
    """Also where the path has a space."""
    text = "hostname; echo {host_0} {host_1} {port_0} $SLURM_JOB_ID $SECRET"
    submissions = runs(tmp_path / "a folder", slurm_cluster, [text, text], [text, text])
    results = execute(submissions, slurm_cluster)
    assert [(result.status, result.reason) for result in results] == [("completed", ""), ("completed", "")], results
    names = [host.name for host in slurm.hosts[:2]]
    for submission, result in zip(submissions, results, strict=True):
        logs = [(Path(submission.folder) / f"node-{k}.log").read_text().split() for k in range(2)]
        assert [words[0] for words in logs] == names
        assert [node["hardware"]["host"] for node in result.nodes] == names
        assert logs[0][1:] == logs[1][1:]
        assert logs[0][1:3] == [host.address for host in slurm.hosts[:2]]
        assert len(logs[0]) == 4, "what Slurm sets for its own is no business of training processes"
    [job] = jobs_of(submissions)
    states = (job / "states.txt").read_text()
    assert f"RUNNING on {PREFIX}[1-2]" in states
    assert "{" not in (job / "job.sbatch").read_text()
    assert not list(job.parents[1].glob("runs/*/job.sbatch")), "the job has it, once"


def test_ranks_are_shown_as_many_gpus_of_a_node_as_they_ask_for(tmp_path, slurm_cluster):
    shown = runs(tmp_path, replace(slurm_cluster, device="gpu"), [f"echo {{devices_{k}}}" for k in range(2)])
    asked = [submissions.changed(one, gpus_per_node=1) for one in shown]
    [result] = execute(asked, slurm_cluster)
    assert result.status is RunStatus.COMPLETED, result
    assert [(Path(asked[0].folder) / f"node-{k}.log").read_text() for k in range(2)] == ["0\n", "0\n"]


def test_a_run_has_all_gpus_of_its_nodes(tmp_path, slurm_cluster):
    shown = runs(tmp_path, replace(slurm_cluster, device="gpu"), ["echo $CUDA_VISIBLE_DEVICES"] * 2)
    asked = [submissions.changed(one, pass_environment=("CUDA_VISIBLE_DEVICES",)) for one in shown]
    [result] = execute(asked, slurm_cluster)
    assert result.status is RunStatus.COMPLETED, result
    assert [(Path(asked[0].folder) / f"node-{k}.log").read_text() for k in range(2)] == ["0,1\n", "0,1\n"]


def test_a_run_that_fails_does_not_keep_the_next_from_being_tried(tmp_path, slurm_cluster):
    submissions = runs(tmp_path, slurm_cluster, ["sleep 600", "exit 3"], ["true", "sleep 600"], ["true", "true"])
    results = execute(submissions, slurm_cluster, timeout_seconds=2)
    assert [(result.status, result.reason) for result in results] == [
        (RunStatus.FAILED, f"node-1 on {PREFIX}2 exited with code 3"),
        (RunStatus.TIMEOUT, "not finished after 2 s"),
        (RunStatus.COMPLETED, ""),
    ]


@pytest.mark.parametrize(
    ("settings", "nodes", "status", "words"),
    [
        ({"partition": "two"}, 3, RunStatus.UNSUPPORTED, "it can never start"),
        ({"options": ("--hold",)}, 1, RunStatus.FAILED, "PENDING (JobHeldUser): it is held"),
        ({"partition": "nowhere"}, 1, RunStatus.FAILED, "Slurm rejected the job: sbatch: error: invalid partition"),
        ({"options": ("--constraint=v100",)}, 1, RunStatus.FAILED, "Invalid feature specification"),
        ({"options": ("--begin=now+1hour",), "start_within_seconds": 1}, 1, RunStatus.FAILED, "not started within 1 s"),
    ],
)
def test_a_job_that_does_not_start_is_not_waited_for(tmp_path, slurm_cluster, settings, nodes, status, words):
    place = replace(slurm_cluster, settings=slurm_cluster.settings.model_copy(update=settings))
    begin = time.monotonic()
    results = execute(runs(tmp_path, place, ["true"] * nodes, ["true"] * nodes), place)
    assert [result.status for result in results] == [status, status], results
    assert all(words in result.reason for result in results), results
    assert time.monotonic() - begin < 20
