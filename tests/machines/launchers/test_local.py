"""Real processes, and every way in which a run of them can end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import psutil
import pytest

from dlperf_study.machines.launchers.local import execute, nodes, render
from dlperf_study.machines.node_agent.coordinator import coordinate
from dlperf_study.machines.node_agent.submission import Command, Submission
from dlperf_study.machines.slurm.queue import SLURM_VARIABLES
from dlperf_study.machines.supervision.processes import RUN_MARK, marked, new_mark
from dlperf_study.study.job import JobResult, RunStatus
from dlperf_study.training import frameworks
from tests.command_line import wait_for
from tests.conftest import left_over
from tests.machines import submissions
from tests.training.frameworks.launching import CLUSTER, asynchronous, configuration
from tests.training.frameworks.test_jobs import CPUS

pytestmark = pytest.mark.timeout(60)

#: A child in a session of its own, which the death of its parent does not reach.
DEEP = 'setsid sleep 600 & touch "$FOLDER/started"; sleep 600'
SECRET = "hunter2-and-nobody-else"
CALLER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that started the tests in the background ignores it
from dlperf_study.machines.launchers._base import Submission
from dlperf_study.machines.launchers.local import execute
from tests.training.frameworks.launching import CLUSTER
[ending] = execute([Submission.from_json(sys.argv[1])], CLUSTER, 60)
print(ending.as_json())
"""


def submission(folder: Path, ports: int = 0, **scripts: str) -> Submission:
    """Return one command per shell script; a name that begins with ``server`` is a server's."""
    commands = []
    for name, script in scripts.items():
        role = "server" if name.startswith("server") else "trainer"
        log = str(folder / f"{name}.log")
        commands.append(Command(name, role, ("sh", "-c", script), {"FOLDER": str(folder)}, log))
    return submissions.submission("local", str(folder), tuple(commands), ports)


def run(folder: Path, timeout_seconds: float = 30, **scripts: str) -> JobResult:
    return execute_one(submission(folder, **scripts), timeout_seconds)


def execute_one(asked: Submission, timeout_seconds: float = 30) -> JobResult:
    [result] = execute([asked], CLUSTER, timeout_seconds)
    return result


def test_the_submission_of_a_job(snapshot):
    with_servers = asynchronous(2)
    job = frameworks.load("paddle_ps").job(with_servers, CPUS)
    assert render(job, CPUS, Path("/runs/1")).as_json() == snapshot


def test_success(tmp_path):
    result = run(tmp_path, one="echo first", two="echo second >&2")
    assert (result.status, result.reason, result.exit_codes) == (RunStatus.COMPLETED, "", {"one": 0, "two": 0})
    assert result.seconds > 0
    assert not result.interrupted
    assert ((tmp_path / "one.log").read_text(), (tmp_path / "two.log").read_text()) == ("first\n", "second\n")


def test_a_process_without_the_mark_of_its_run_is_ended_too(tmp_path):
    """As one that is just starting a program, whose environment can't be read."""
    server = """exec env -i FOLDER="$FOLDER" sh -c 'sleep 600 & echo $$ $! > "$FOLDER/pids"; wait'"""
    result = run(tmp_path, server=server, trainer='while [ ! -s "$FOLDER/pids" ]; do sleep 0.05; done')
    assert (result.status, result.exit_codes) == (RunStatus.COMPLETED, {"server": None, "trainer": 0})
    ended = set(map(int, (tmp_path / "pids").read_text().split()))
    # In a container there may be no process that reaps.
    alive = [each.pid for each in psutil.process_iter(["status"]) if each.info["status"] != psutil.STATUS_ZOMBIE]
    assert ended.isdisjoint(alive)


@pytest.mark.parametrize(
    ("script", "reason"), [("exit 3", "one exited with code 3"), ("kill -9 $$", "one was ended by signal SIGKILL")]
)
def test_a_failure_names_the_task_and_ends_the_others(tmp_path, script, reason):
    start = time.monotonic()
    result = run(tmp_path, one=script, two=DEEP)
    assert (result.status, result.reason, result.failed_task) == (RunStatus.FAILED, reason, "one")
    assert time.monotonic() - start < 15


@pytest.mark.parametrize("code", [0, 1])
def test_a_server_that_exits_early_is_a_failure(tmp_path, code, snapshot):
    result = run(tmp_path, server=f"exit {code}", trainer="sleep 600")
    assert (result.status, result.reason) == (RunStatus.FAILED, snapshot)


def test_where_the_queue_has_its_files_is_passed_on_and_is_nobodys_business(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", "/of/mine/slurm.conf")
    passing = submissions.changed(submission(tmp_path, one="echo $SLURM_CONF"), pass_environment=("SLURM_CONF",))
    [node] = coordinate(passing, nodes(CLUSTER), 30, unrecorded=SLURM_VARIABLES).nodes
    assert (tmp_path / "one.log").read_text() == "/of/mine/slurm.conf\n"
    assert "SLURM_CONF" not in node["variables"]


def test_a_hanging_task_is_a_timeout(tmp_path, snapshot):
    result = run(tmp_path, timeout_seconds=1, deaf="trap '' TERM INT; " + DEEP)
    assert (result.status, result.reason) == (RunStatus.TIMEOUT, snapshot)
    assert 1 <= result.seconds < 15


def test_a_command_that_is_not_there_is_a_failure(tmp_path):
    nowhere = Command("one", "trainer", ("/nowhere/python",), {}, str(tmp_path / "one.log"))
    result = execute_one(submissions.submission("local", str(tmp_path), (nowhere,), 0))
    assert result.status is RunStatus.FAILED
    assert "/nowhere/python" in result.reason


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGKILL, "the node agent was ended by signal SIGKILL"),
        (signal.SIGTERM, "the node agent was told to end the run"),
    ],
)
def test_the_end_of_the_guard_is_the_end_of_the_run(tmp_path, number, reason):
    thread = Thread(target=_signal_agent, args=(tmp_path, number))
    thread.start()
    result = run(tmp_path, one=DEEP)
    thread.join()
    assert (result.status, result.reason, result.interrupted) == (RunStatus.KILLED, reason, False)
    assert 0 < result.seconds < 15


def _signal_agent(folder: Path, number: int) -> None:
    wait_for((folder / "started").exists, "the task")
    [agent] = [p for p in psutil.Process().children() if "dlperf_study.machines.node_agent.agent" in p.cmdline()]
    agent.send_signal(number)


def test_nothing_survives_the_caller(tmp_path):
    caller = _caller(tmp_path)
    caller.kill()
    caller.wait()
    wait_for(lambda: not left_over(), "the run to end", 20)
    caller.communicate()


def test_an_interrupt_ends_the_run_and_is_told(tmp_path):
    caller = _caller(tmp_path)
    caller.send_signal(signal.SIGINT)
    output, errors = caller.communicate(timeout=30)
    result = json.loads(output)
    assert (result["status"], result["reason"], result["interrupted"]) == ("killed", "interrupted", True), errors


def _caller(folder: Path) -> "subprocess.Popen[str]":
    """Return a process that executes a run, once the run's task is there."""
    order = submission(folder, one=DEEP).as_json()
    pipe = subprocess.PIPE
    caller = subprocess.Popen([sys.executable, "-c", CALLER, order], stdout=pipe, stderr=pipe, text=True)
    wait_for((folder / "started").exists, "the task")
    return caller


def test_ports_are_free_and_different(tmp_path):
    result = execute_one(submission(tmp_path, ports=3, one="echo {port_0} {port_1} {port_2}"))
    ports = [int(word) for word in (tmp_path / "one.log").read_text().split()]
    assert result.status is RunStatus.COMPLETED
    assert len(set(ports)) == 3
    assert min(ports) > 1023


def test_secrets_stay_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", SECRET)
    monkeypatch.setenv("OMP_PLACES", "cores")
    run(tmp_path, one='env; tr "\\0" "\\n" < /proc/self/environ')
    printed = (tmp_path / "one.log").read_text()
    assert "OMP_PLACES=cores" in printed
    assert RUN_MARK in printed
    assert "SECRET_TOKEN" not in printed
    assert [file for file in tmp_path.rglob("*") if file.is_file() and SECRET in file.read_text()] == []


@pytest.mark.parametrize(
    ("framework", "written", "kept"),
    [
        ("paddle_collective", "ranks-of-node-0/workerlog.1", "node-0-rank-1.log"),
        ("torch_ddp", "ranks-of-node-1/none_x1/attempt_0/0/stderr.log", "node-1-rank-0-stderr.log"),
        ("horovod_torch", "ranks/rank.03/stdout", "rank-03-stdout.log"),
    ],
)
def test_what_the_ranks_printed_is_kept_and_scratch_is_not(tmp_path, framework, written, kept):
    two_nodes = configuration(framework=framework, nodes=2, devices_per_node=2)
    pattern = frameworks.load(framework).job(two_nodes, CPUS).rank_output
    script = f"mkdir -p $(dirname {written}); echo hello > {written}; touch {written}.empty; env > everything"
    execute_one(submissions.changed(submission(tmp_path, one=script), rank_output=pattern))
    assert (tmp_path / kept).read_text() == "hello\n"
    assert not (tmp_path / "scratch").exists()
    assert sorted(file.name for file in tmp_path.glob("*.log")) == sorted([kept, "one.log"])


def test_the_watch_of_these_tests_sees_a_survivor():
    """Otherwise its silence would mean nothing."""
    # Its owner lives: a study that begins elsewhere ends what has none.
    mark = new_mark()
    with subprocess.Popen(["sleep", "60"], env={**os.environ, RUN_MARK: mark}) as orphan:
        assert orphan.pid in [process.pid for process in left_over()]
        assert orphan.pid in [process.pid for process in marked(RUN_MARK, mark)]
        orphan.kill()
