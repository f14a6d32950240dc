"""What is handed to Slurm, and what its words mean. Nothing is submitted here."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.core.errors import RecordError, RunError
from dlperf_study.core.paths import JobPaths, RunPaths
from dlperf_study.execution.planning import load_cluster
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.cluster.software import IMPORT_SECONDS
from dlperf_study.machines.launchers import slurm as launcher
from dlperf_study.machines.node_agent.submission import Submission
from dlperf_study.machines.slurm import queue, submitted_job
from dlperf_study.machines.slurm.allocation import allocated_nodes, srun
from dlperf_study.machines.slurm.queue import (
    Partition,
    Phase,
    QueuedJob,
    Unreachable,
    parse_accounting,
    parse_job,
    parse_partitions,
)
from dlperf_study.machines.slurm.script import SlurmSettings, allotted_seconds, filled, script, slurm_time
from dlperf_study.machines.slurm.submitted_job import (
    SETTLE_SECONDS,
    Patience,
    SubmittedJob,
    Watch,
    explain_by_slurm,
    failure,
    has_decided,
    read_job,
    submit_job,
)
from dlperf_study.study.job import JobResult, RunStatus
from dlperf_study.training import frameworks
from tests.shell_program import program
from tests.training.frameworks.launching import configuration

CLUSTER = replace(load_cluster("slurm"), python={"default": "/shared/dlperf/bin/python"})
FOLDER = Path("/outputs/example/configurations/one/runs/1")
#: As Slurm 22.05.8 printed it, but for the names in it.
SHOWN = (
    "JobId=5247858 JobName=one UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294901759 Nice=0 "
    "Account=(null) QOS=(null) JobState={state} Reason={reason} Dependency=(null) Requeue=0 Restarts=0 BatchFlag=1 "
    "Reboot=0 ExitCode=0:0 RunTime=00:00:06 TimeLimit=00:05:00 TimeMin=N/A SubmitTime=2026-11-21T07:57:41 "
    "EligibleTime=2026-11-21T07:57:41 AccrueTime=2026-11-21T07:57:41 StartTime=2026-11-21T07:57:42 "
    "EndTime=2026-11-21T07:57:48 Deadline=N/A SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-21T07:57:42 "
    "Scheduler=Backfill Partition=all AllocNode:Sid=localhost:22724 ReqNodeList=(null) ExcNodeList=(null) "
    "NodeList={nodes} BatchHost=h1 NumNodes=2 NumCPUs=4 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:* "
    "TRES=cpu=4,node=2,billing=4 Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=* MinCPUsNode=1 "
    "Command=/outputs/job.sbatch WorkDir=/outputs Comment=/outputs/a JobState=RUNNING  StdErr=/outputs/output.txt "
    "StdIn=/dev/null StdOut=/outputs/output.txt Power= \n"
)
PATIENCE = Patience(start_seconds=100, run_seconds=1000)


def submission(cluster: Cluster = CLUSTER, nodes: int = 2) -> Submission:
    distributed = configuration(nodes=nodes, devices_per_node=8)
    job = frameworks.load(distributed.framework).job(distributed, cluster)
    return launcher.render(job, cluster, FOLDER)


def test_the_script_of_a_job(snapshot):
    rendered = submission()
    assert rendered.files["job.sbatch"] == snapshot(name="job.sbatch")
    assert rendered.as_json() == snapshot(name="submission")


def test_a_script_is_filled_with_its_folder_and_its_time():
    text = filled(submission().files["job.sbatch"], "/outputs/a b/jobs/1", 3601)
    assert "#SBATCH --time=1:01:00\n" in text
    assert "#SBATCH --output='/outputs/a b/jobs/1'/output.txt\n" in text
    assert text.endswith("-m dlperf_study.machines.slurm.allocation '/outputs/a b/jobs/1'\n")
    assert not re.search(r"\{(job|time)\}", text)


def test_a_job_that_is_interrupted_ends_as_shells_say_it(tmp_path):
    """Slurm interrupts it while it asks for the names of its nodes."""
    order = {"timeout_seconds": 1.0, "submissions": [json.loads(submission().as_json())]}
    JobPaths(tmp_path).order.write_text(json.dumps(order))
    program(tmp_path, "kill -TERM $PPID; sleep 5", "scontrol")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    environment |= {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "h1"}
    command = (sys.executable, "-m", "dlperf_study.machines.slurm.allocation", str(tmp_path))
    assert subprocess.run(command, env=environment, timeout=60).returncode == 143


def test_only_gpus_are_asked_for_by_number():
    lines = script("one", 3, replace(CLUSTER, device="cpu", settings=SlurmSettings(account="a")))
    assert "gres" not in lines
    assert "partition" not in lines
    assert "#SBATCH --account=a\n" in lines
    assert "#SBATCH --nodes=3\n" in lines


@pytest.mark.parametrize(("seconds", "text"), [(1, "0:01:00"), (60, "0:01:00"), (61, "0:02:00"), (90_000, "25:00:00")])
def test_times_are_rounded_up_to_minutes(seconds, text):
    assert slurm_time(seconds) == text


def test_a_job_may_last_as_long_as_its_runs_and_what_comes_around_them():
    run = submission()
    assert allotted_seconds([run, run, run], 600) == 60 + 3 * (600 + run.preparing_seconds + 60)
    assert run.preparing_seconds == CLUSTER.idle_wait_seconds + CLUSTER.ready_seconds + IMPORT_SECONDS


def test_the_run_of_nccls_report_is_of_the_same_configuration_as_the_others():
    home = RunPaths(FOLDER).home
    assert home.folder.name == "one"
    assert home.nccl_report("reported").home == home


@pytest.mark.parametrize(
    ("state", "reason", "nodes", "expected", "phase"),
    [
        ("PENDING", "Resources", "", QueuedJob("PENDING", "Resources"), Phase.WAITING),
        ("PENDING", "None", "", QueuedJob("PENDING"), Phase.WAITING),
        ("RUNNING", "None", "h[1-2]", QueuedJob("RUNNING", "", "h[1-2]"), Phase.RUNNING),
        ("COMPLETING", "NodeDown", "h1", QueuedJob("COMPLETING", "NodeDown", "h1"), Phase.RUNNING),
        ("CANCELLED", "PartitionNodeLimit", "(null)", QueuedJob("CANCELLED", "PartitionNodeLimit"), Phase.OVER),
        ("NODE_FAIL", "NodeDown", "h[1-2]", QueuedJob("NODE_FAIL", "NodeDown", "h[1-2]"), Phase.OVER),
        ("SUSPENDED", "None", "h[1-2]", QueuedJob("SUSPENDED", "", "h[1-2]"), Phase.SUSPENDED),
        ("A_STATE_OF_TOMORROW", "None", "h1", QueuedJob("A_STATE_OF_TOMORROW", "", "h1"), Phase.RUNNING),
    ],
)
def test_what_scontrol_shows(state, reason, nodes, expected, phase):
    assert parse_job(SHOWN.format(state=state, reason=reason, nodes=nodes)) == expected
    assert expected.phase is phase


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("COMPLETED|None|h[1-2]\nCOMPLETED|None|h1\n", QueuedJob("COMPLETED", "", "h[1-2]")),
        ("CANCELLED by 1000|None|None assigned\n", QueuedJob("CANCELLED")),
        ("|None|None assigned\n", None),
        ("Unknown|None|h1\n", None),
        ("", None),
    ],
)
def test_what_the_accounting_remembers(text, expected):
    assert parse_accounting(text) == expected


@pytest.mark.parametrize(
    ("job", "since", "status", "words"),
    [
        (QueuedJob("PENDING", "Resources"), 99, None, ""),
        (QueuedJob("PENDING", "Resources"), 101, RunStatus.FAILED, "PENDING (Resources): not started within 100 s"),
        (
            QueuedJob("PENDING", "PartitionConfig"),
            0,
            RunStatus.UNSUPPORTED,
            "PENDING (PartitionConfig): it can never start",
        ),
        (QueuedJob("PENDING", "PartitionTimeLimit"), 0, RunStatus.UNSUPPORTED, "it can never start"),
        (QueuedJob("PENDING", "QOSMaxNodePerJobLimit"), 0, RunStatus.UNSUPPORTED, "it can never start"),
        (QueuedJob("PENDING", "AssocMaxJobsLimit"), 0, None, ""),
        (QueuedJob("PENDING", "QOSMaxNodePerUserLimit"), 0, None, ""),
        (QueuedJob("PENDING", "JobHeldAdmin"), 0, RunStatus.FAILED, "it is held, so it would never start"),
        (QueuedJob("CONFIGURING", "", "h1"), 101, RunStatus.FAILED, "not started"),
        (QueuedJob("RUNNING", "", "h1"), 999, None, ""),
        (QueuedJob("RUNNING", "", "h1"), 1001, RunStatus.FAILED, "RUNNING on h1: still after 1001 s"),
        (QueuedJob("SUSPENDED", "", "h1"), 0, RunStatus.KILLED, "a measurement across a suspension is invalid"),
        (QueuedJob("TIMEOUT", "TimeLimit", "h1"), SETTLE_SECONDS, None, ""),
        (QueuedJob("TIMEOUT", "TimeLimit", "h1"), SETTLE_SECONDS + 1, RunStatus.TIMEOUT, "TIMEOUT (TimeLimit) on h1"),
        (QueuedJob("CANCELLED"), SETTLE_SECONDS + 1, RunStatus.KILLED, "CANCELLED, and no result of this run"),
        (QueuedJob("PREEMPTED"), SETTLE_SECONDS + 1, RunStatus.KILLED, "PREEMPTED"),
        (QueuedJob("OUT_OF_MEMORY"), SETTLE_SECONDS + 1, RunStatus.OUT_OF_MEMORY, "OUT_OF_MEMORY"),
        (QueuedJob("NODE_FAIL", "", "h[1-2]", ("h2",)), SETTLE_SECONDS + 1, RunStatus.FAILED, "on h[1-2]; h2 is down"),
        (QueuedJob("COMPLETED"), SETTLE_SECONDS + 1, RunStatus.FAILED, "COMPLETED, and no result of this run"),
        (QueuedJob("FORGOTTEN"), SETTLE_SECONDS + 1, RunStatus.FAILED, "FORGOTTEN"),
    ],
)
def test_when_a_job_is_no_longer_waited_for(job, since, status, words):
    result = failure(job, since, PATIENCE)
    assert (result and result[0]) == status
    assert words in (result[1] if result else "")


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command of that name, to be written; no other command of Slurm is there."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin/nowhere:/bin/nowhere")
    return tmp_path / "scontrol"


@pytest.mark.parametrize(
    ("diagnostic", "expected"),
    [
        ("slurm_load_jobs error: Invalid job id specified", QueuedJob("FORGOTTEN", job_id="7")),
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", Unreachable),
        ("slurm_load_jobs error: Protocol authentication error", Unreachable),
    ],
)
def test_who_does_not_answer_has_not_forgotten(scontrol, diagnostic, expected):
    program(scontrol.parent, f"echo '{diagnostic}' >&2; exit 1", scontrol.name)
    if isinstance(expected, QueuedJob):
        assert queue.job("7") == expected
        return
    with pytest.raises(expected, match=re.escape(diagnostic)):
        queue.job("7")


def test_without_slurm_the_message_says_so(scontrol, refused):
    with refused(RunError):
        queue.job("7")


def test_where_slurm_ended_a_run_that_is_why(snapshot):
    result = JobResult(RunStatus.FAILED, "node-0 on h2 exited with code 1", 3.0, {"node-0": 1}, failed_task="node-0")
    cut = explain_by_slurm(result, QueuedJob("PREEMPTED", "", "h[1-2]", job_id="7"))
    assert (cut.status, cut.reason) == (RunStatus.KILLED, snapshot)
    assert (cut.seconds, cut.exit_codes, cut.failed_task) == (3.0, {"node-0": 1}, "")
    for state in ("RUNNING", "COMPLETED", "FAILED", "FORGOTTEN"):
        assert explain_by_slurm(result, QueuedJob(state)) == result


def test_slurm_s_word_is_waited_for_when_a_task_was_killed(tmp_path, monkeypatch):
    """Slurm ends processes first, and then shows that it ends their job; it may not answer, or show an older state."""
    killed = JobResult(
        RunStatus.FAILED, "node-0 was ended by signal SIGKILL", 3.0, {"node-0": -9}, failed_task="node-0"
    )
    job = SubmittedJob(JobPaths(tmp_path), (), 600)
    (tmp_path / "job_id.txt").write_text("7\n")
    job.paths.result(0).write_text(killed.as_json())
    answers = [Unreachable("Socket timed out"), *map(QueuedJob, ("RUNNING", "COMPLETING", "NODE_FAIL"))]

    def answer(job_id: str) -> QueuedJob:
        if isinstance(following := answers.pop(0), Unreachable):
            raise following
        return following

    monkeypatch.setattr(queue, "job", answer)
    result = Watch(job, SlurmSettings(poll_seconds=0.01)).result(0)
    assert (result.status, result.reason) == (RunStatus.FAILED, f"NODE_FAIL: {killed.reason}")
    assert not answers


def test_a_job_that_failed_before_its_run_says_what_it_printed(tmp_path, monkeypatch):
    job = SubmittedJob(JobPaths(tmp_path), (), 600)
    job.paths.job_id.write_text("7\n")
    job.paths.output.write_text("Traceback (most recent call last):\nModuleNotFoundError: No module named 'numpy'\n")
    monkeypatch.setattr(submitted_job, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(queue, "job", lambda job_id: QueuedJob("FAILED", job_id=job_id))
    result = Watch(job, SlurmSettings(poll_seconds=0.01)).result(0)
    assert result.status is RunStatus.FAILED
    assert f"No module named 'numpy' ({job.paths.output})" in result.reason


def test_a_submitted_job_is_read_as_it_was_submitted(tmp_path, monkeypatch):
    program(tmp_path, "echo 17", name="sbatch")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    rendered = replace(
        submission(), folder=str(tmp_path / "configurations" / "one" / "runs" / "1"), cache_key="f", code="c"
    )
    submitted = submit_job([rendered], 600)
    job = read_job(submitted.paths)
    assert (job.job_id, job.timeout_seconds) == ("17", 600)
    without_script = {name: text for name, text in rendered.files.items() if name != "job.sbatch"}
    assert job.submissions == (replace(rendered, files=without_script),)
    result = JobResult(RunStatus.FAILED, "node-0 exited with code 1", 2.5, {"node-0": 1}, nodes=({"node": 0},))
    submitted.paths.result(0).write_text(result.as_json())
    assert (job.result(0), job.result(1)) == (result, None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON (EOF while parsing an object at line 1 column 1)"),
        ("[]", "is not a JSON object"),
        ("{}", "timeout_seconds is missing; 1 more of its values are wrong"),
        ('{"timeout_seconds": "9", "submissions": []}', "timeout_seconds is '9', which is not a number"),
        (
            '{"timeout_seconds": 9, "submissions": [{"launcher": "slurm", "folder": "f", "commands": 5}]}',
            "submissions[0]: commands is 5, which is not a list; write [5]; 2 more of its values are wrong",
        ),
    ],
)
def test_a_damaged_order_of_a_job_is_refused(tmp_path, text, problem):
    paths = JobPaths(tmp_path)
    paths.order.write_text(text)
    remedy = f"delete {tmp_path}, and the same command submits its runs again"
    with pytest.raises(RecordError, match=re.escape(f"{paths.order}: {problem}")) as caught:
        read_job(paths)
    assert str(caught.value).endswith(remedy)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("null", "is not a JSON object"),
        (
            '{"status": "fine", "reason": "", "seconds": 1.0}',
            "status is 'fine'; the choices are 'completed', 'failed'",
        ),
        ('{"status": "failed", "reason": "", "seconds": [1]}', "seconds is [1], which is not a number"),
    ],
)
def test_a_damaged_result_of_a_job_is_refused(tmp_path, text, problem):
    paths = JobPaths(tmp_path)
    paths.result(0).write_text(text)
    with pytest.raises(RecordError, match=re.escape(f"{paths.result(0)}: {problem}")):
        SubmittedJob(paths, (), 600).result(0)


@pytest.mark.parametrize(
    ("state", "codes", "task", "seconds", "decided"),
    [
        ("RUNNING", {"node-0": 1}, "node-0", 0.0, True),
        ("RUNNING", {"node-0": -9}, "node-0", 0.0, False),
        ("RUNNING", {"node-0": 137}, "node-0", 0.0, False),
        ("RUNNING", {"node-0": None}, "", 0.0, False),
        ("RUNNING", {"node-0": -9}, "node-0", SETTLE_SECONDS + 1, True),
        ("COMPLETING", {"node-0": 1}, "node-0", SETTLE_SECONDS + 1, False),
        ("NODE_FAIL", {"node-0": -9}, "node-0", 0.0, True),
    ],
)
def test_when_slurm_has_decided_why_a_run_failed(state, codes, task, seconds, decided):
    result = JobResult(RunStatus.FAILED, "it failed", 3.0, codes, failed_task=task)
    assert has_decided(QueuedJob(state), result, seconds) is decided


def test_outside_of_a_job_there_are_no_nodes(refused):
    with refused(RunError):
        allocated_nodes("python", {})


def test_a_command_on_a_node_names_its_job():
    assert {"--jobid=7", "--nodelist=h1", "--overlap"} <= set(srun("7", "h1"))


def test_the_evidence_of_a_submission_has_no_secret():
    rendered = submission(replace(CLUSTER, environment={"SECRET_TOKEN": "hunter2", "NCCL_DEBUG": "INFO"}))
    assert "hunter2" not in rendered.as_json() + json.dumps(dict(rendered.files))


#: As Slurm 22.05.8 printed them, but for what nothing here reads.
PARTITIONS = """\
PartitionName=all AllowAccounts=ALL Default=YES MaxNodes=UNLIMITED MaxTime=01:00:00 Nodes=h[1-4] State=UP TotalNodes=4
PartitionName=two AllowAccounts=ALL Default=NO MaxNodes=1 MaxTime=UNLIMITED Nodes=h[1-2] State=UP TotalNodes=2
"""


def test_what_slurm_says_of_its_partitions():
    assert parse_partitions(PARTITIONS) == (
        Partition("all", nodes=4, max_nodes=4, max_time="01:00:00", is_default=True),
        Partition("two", nodes=2, max_nodes=1, max_time="UNLIMITED", is_default=False),
    )
