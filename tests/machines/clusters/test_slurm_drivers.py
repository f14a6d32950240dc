"""Jobs outlive their controller: the next one follows them, whatever the last one had written down."""

from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.study.job import RunStatus
from tests.command_line import LIMIT_SECONDS, wait_for
from tests.machines.clusters.slurm_runs import caller, execute, jobs_of, runs

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def test_a_driver_that_comes_back_follows_its_job(tmp_path, slurm_cluster, slurm, busy):
    submissions = runs(tmp_path, slurm_cluster, ["true", "true"])
    controller = caller(submissions)
    wait_for(lambda: len(slurm.jobs()) == 2, "the job")
    wait_for(lambda: (jobs_of(submissions)[0] / "job_id.txt").exists(), "its number")
    controller.kill()
    controller.communicate()
    # As if it had been killed a moment before it wrote the number down.
    (jobs_of(submissions)[0] / "job_id.txt").unlink()
    [number] = set(slurm.jobs()) - {busy}
    slurm.command("scancel", busy)
    [result] = execute(submissions, slurm_cluster)
    assert result.status is RunStatus.COMPLETED, result
    [job] = jobs_of(submissions)
    assert (job / "job_id.txt").read_text().strip() == number


def test_what_a_job_did_while_nobody_watched_is_not_done_again(tmp_path, slurm_cluster, slurm):
    submissions = runs(tmp_path, slurm_cluster, ["date +%N > $FOLDER/now.txt"])
    controller = caller(submissions)
    wait_for(lambda: slurm.jobs(), "the job")
    controller.kill()
    controller.communicate()
    wait_for(lambda: not slurm.jobs(), "the job to end")
    when = (Path(submissions[0].folder) / "now.txt").read_text()
    assert [result.status for result in execute(submissions, slurm_cluster)] == [RunStatus.COMPLETED]
    assert (Path(submissions[0].folder) / "now.txt").read_text() == when
    execute(submissions, slurm_cluster)
    assert (Path(submissions[0].folder) / "now.txt").read_text() != when


def test_a_job_of_other_code_is_cancelled(tmp_path, slurm_cluster, slurm, busy):
    submissions = runs(tmp_path, slurm_cluster, ["true"])
    controller = caller(submissions)
    wait_for(lambda: len(slurm.jobs()) == 2, "the job")
    wait_for(lambda: (jobs_of(submissions)[0] / "job_id.txt").exists(), "its number")
    controller.kill()
    controller.communicate()
    [number] = set(slurm.jobs()) - {busy}
    slurm.command("scancel", busy)
    slurm.command("scontrol", "hold", number)
    [result] = execute([replace(submissions[0], cache_key="f2")], slurm_cluster)
    assert result.status is RunStatus.COMPLETED, result
    assert slurm.state(number) == "CANCELLED"
