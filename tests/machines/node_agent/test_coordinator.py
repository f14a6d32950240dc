"""Several nodes, each a node agent of its own on this machine: what only their coordinator can know."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from dlperf_study.machines.cluster.software import software
from dlperf_study.machines.node_agent import coordinator
from dlperf_study.machines.node_agent.agents import Agents
from dlperf_study.machines.node_agent.coordinator import coordinate
from dlperf_study.machines.node_agent.installed_packages import version_mismatch
from dlperf_study.machines.node_agent.messages import SILENCE, SILENCE_SECONDS, Message
from dlperf_study.machines.node_agent.submission import Command, Node, Submission
from dlperf_study.study.job import Job, JobResult
from dlperf_study.training.questions import described, gpu_question
from tests.command_line import PATIENCE_SECONDS, wait_for
from tests.machines import submissions
from tests.nvidia_smi import A100, two_a100
from tests.training.frameworks.launching import configuration
from tests.training.image_datasets import tiny

pytestmark = pytest.mark.timeout(60)

#: A login shell that greets, which is none of what a node agent says.
GREETING = ("sh", "-c", 'echo Welcome; exec "$@"', "sh")
ONE, TWO = Node("one", GREETING), Node("two", ("env",))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "1"


def submission(folder: Path, *scripts: str, **changes: Any) -> Submission:
    """Return one trainer per node; a script that begins with ``server`` is for a server."""
    commands = tuple(_command(node, script, folder) for node, script in enumerate(scripts))
    values = {"ports": 0, "nodes": len(scripts), "network_interface": "lo", **changes}
    return submissions.submission("test", str(folder), commands, **values)


def _command(node: int, script: str, folder: Path) -> Command:
    role = "server" if script.startswith("server") else "trainer"
    argv = ("sh", "-c", script.removeprefix("server: "))
    return Command(f"{role}-{node}", role, argv, {"FOLDER": str(folder)}, str(folder / f"node-{node}.log"), node)


def run(asked: Submission, *places: Node) -> JobResult:
    return coordinate(asked, places or (ONE, TWO), 30)


def test_a_run_is_over_when_the_trainers_of_all_nodes_are(folder):
    result = run(submission(folder, "true", "sleep 1; echo late"))
    assert (result.status, result.exit_codes) == ("completed", {"trainer-0": 0, "trainer-1": 0})
    assert (folder / "node-1.log").read_text() == "late\n"
    assert [(node["node"], node["name"], node["address"]) for node in result.nodes] == [
        (0, "one", "127.0.0.1"),
        (1, "two", "127.0.0.1"),
    ]


def test_a_server_serves_until_the_trainers_of_other_nodes_are_done(folder):
    result = run(submission(folder, "server: sleep 600", "sleep 0.5"))
    # Both nodes are this machine: the node agent of the other one may be the first to end the server.
    assert (result.status, result.exit_codes.pop("server-0") in (None, -9)) == ("completed", True)
    assert result.exit_codes == {"trainer-1": 0}


def test_a_server_that_ends_after_the_trainers_of_its_node_is_still_a_failure(folder, snapshot):
    requested = submission(folder, "true", "sleep 600")
    server = replace(_command(0, "server: sleep 0.5", folder), log=str(folder / "server.log"))
    result = run(submissions.changed(requested, commands=(*requested.commands, server)))
    assert (result.status, result.reason) == ("failed", snapshot)


def test_a_node_without_a_command_has_a_guard_and_a_way_there(folder):
    requested = submission(folder, "ssh -o A=b {host_1} 'echo $FOLDER-there; exit 4'; echo $?")
    result = run(submissions.changed(requested, nodes=2, starts_other_nodes=True))
    assert result.status == "completed", result
    assert [path.name for path in sorted(folder.glob("telemetry-*"))] == [f"telemetry-0000{k}.jsonl" for k in range(2)]
    assert (folder / "node-0.log").read_text() == f"{folder}-there\n4\n"
    assert [node["load"]["busy_cores_during"] is None for node in result.nodes] == [False, True]


def test_a_failure_names_the_node(folder, snapshot):
    result = run(submission(folder, "sleep 600", "exit 3"))
    assert (result.status, result.reason) == ("failed", snapshot)
    assert (result.failed_task, result.exit_codes["trainer-1"]) == ("trainer-1", 3)
    # Both nodes are this machine: the node agent of one may end the marked processes of both before the other looks.
    assert result.exit_codes["trainer-0"] in (None, -signal.SIGKILL)


def test_a_trainer_that_was_running_when_the_run_ended_has_no_exit_code(folder):
    both = submission(folder, "sleep 600", "exit 3")
    on_one_node = submissions.changed(
        both, nodes=1, commands=tuple(replace(command, node=0) for command in both.commands)
    )
    result = run(on_one_node, ONE)
    assert (result.failed_task, result.exit_codes) == ("trainer-1", {"trainer-0": None, "trainer-1": 3})


def test_what_a_run_waits_for_is_written_while_it_waits_and_gone_at_its_end(folder, snapshot):
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    with busy:
        request = submission(folder, "cat waiting.txt", idle_max_busy_cores=0.05, idle_wait_seconds=2.0)
        result = run(request, ONE)
        busy.kill()
    assert result.status == "completed", result
    [line] = (folder / "node-0.log").read_text().splitlines()
    assert line.partition("background load: ")[0] == snapshot
    assert not (folder / "scratch").exists()


def test_too_few_nodes_are_said(folder, snapshot):
    result = run(submission(folder, "true", "true"), ONE)
    assert (result.status, result.reason) == ("failed", snapshot)
    assert (result.seconds, result.exit_codes) == (None, {})


def test_a_way_that_does_not_exist_is_said(folder):
    result = run(submission(folder, "true", "true"), ONE, Node("two", ("/no/way",)))
    assert (result.status, result.seconds) == ("failed", None)
    assert result.reason.startswith("two can't be reached: ")


def test_a_node_that_does_not_answer_is_said(folder, monkeypatch, snapshot):
    monkeypatch.setattr(coordinator, "GIVING_UP_SECONDS", 0.1)
    result = run(submission(folder, "true", "true", ready_seconds=3.0), ONE, Node("two", ("sh", "-c", "cat", "sh")))
    assert (result.status, result.reason) == ("failed", snapshot)


def test_the_last_words_of_what_reaches_a_node_are_told(folder, snapshot):
    lost = Node("two", ("sh", "-c", "echo no such road >&2; exit 9", "sh"))
    result = run(submission(folder, "true", "true"), ONE, lost)
    assert (result.status, result.reason) == ("failed", snapshot)
    assert result.failed_task == ""


def test_what_nodes_write_apart_is_brought_home_and_removed_there(folder, tmp_path):
    there = f"{tmp_path}/{{unique}}"
    requested = submission(folder, "cat ../asked.txt; echo kept > ../kept.txt", files={"asked.txt": "asked\n"})
    commands = tuple(replace(command, log=f"{there}/1/{command.name}.log") for command in requested.commands)
    result = run(submissions.changed(requested, commands=commands, node_folder=there, cache_key="f"))
    assert result.status == "completed", result
    names = {"asked.txt", "kept.txt", "submission.json", "trainer-0.log", "telemetry-00000.jsonl"}
    assert {file.name for file in folder.iterdir()} == names
    assert (folder / "trainer-0.log").read_text() == "asked\n"
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert Submission.from_json((folder / "submission.json").read_text()).cache_key == "f"


def test_ranks_are_shown_those_gpus_that_their_own_node_allows(folder):
    requested = submission(folder, "echo $SHOWN", "echo $SHOWN", gpus_per_node=2)
    commands = (replace(c, environment={"SHOWN": f"{{devices_{c.node}}}"}) for c in requested.commands)
    result = run(
        submissions.changed(requested, commands=tuple(commands)), _allowing("4,5,6"), _allowing("GPU-7f,GPU-81")
    )
    assert result.status == "completed", result
    assert [(folder / f"node-{k}.log").read_text() for k in range(2)] == ["4,5\n", "GPU-7f,GPU-81\n"]
    assert [node["devices"] for node in result.nodes] == ["4,5", "GPU-7f,GPU-81"]


def test_gpus_that_the_cluster_file_names_come_first(folder):
    requested = submission(folder, "echo {devices_0}", gpus_per_node=1, environment={"CUDA_VISIBLE_DEVICES": "2,3"})
    assert run(requested, _allowing("4,5")).status == "completed"
    assert (folder / "node-0.log").read_text() == "2\n"


def test_a_node_that_allows_too_few_gpus_is_said(folder, snapshot):
    result = run(submission(folder, "true", "true", gpus_per_node=2), _allowing("4,5"), _allowing("6"))
    assert (result.status, result.reason, result.seconds) == ("failed", snapshot, None)


def _allowing(gpus: str) -> Node:
    """Return a node on which processes are allowed these GPUs, as a queue would say it."""
    return Node(f"with {gpus}", ("env", f"CUDA_VISIBLE_DEVICES={gpus}"))


def test_a_work_folder_that_cant_be_made_is_said(folder, tmp_path, snapshot):
    (tmp_path / "file").touch()
    there = f"{tmp_path}/file/{{unique}}"
    result = run(submission(folder, "true", node_folder=there), ONE)
    assert result.status == "failed"
    assert re.sub("file/[^:]+", "file/…", result.reason) == snapshot
    assert result.exit_codes == {"trainer-0": None}


def test_nodes_that_share_a_work_folder_by_mistake_are_told(folder, tmp_path, snapshot):
    there = f"{tmp_path}/shared-{{unique}}"
    result = run(submission(folder, "sleep 600", "sleep 600", node_folder=there), ONE, TWO)
    assert result.status == "failed"
    assert re.sub("(one|two): (.*shared-)[^ ]+", r"{node}: \2…", result.reason) == snapshot


def test_an_earlier_attempt_is_kept_aside(folder):
    for _ in range(2):
        run(submission(folder, "echo again"), ONE)
    assert (folder.parents[1] / "interrupted" / "1" / "node-0.log").read_text() == "again\n"
    assert (folder / "node-0.log").exists()


HERE = {"code": "c", "software": software()}
PLANNED = submissions.submission("local", "", (), 0, code="c")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({}, ""),
        ({"software": {**software(), "system": "another"}}, ""),
        ({"code": "0"}, "two has other benchmark code than the controller had when it started"),
        (
            {"software": {**software(), "numpy": "0.1"}},
            f"numpy is 0.1 on two, but {software()['numpy']} on this machine",
        ),
        ({"software": {**software(), "extra": "1"}}, "extra is 1 on two, but not installed on this machine"),
    ],
)
def test_what_must_be_the_same_everywhere(other, words):
    assert version_mismatch([HERE, HERE | other], ["one", "two"], PLANNED) == words


def test_of_another_python_nodes_must_have_the_same(snapshot):
    old, new = ({"code": "c", "software": {"torch": version}} for version in ("1.0", "2.0"))
    submission = submissions.changed(PLANNED, python=("/other/python",))
    assert version_mismatch([old, old], ["one", "two"], submission) == ""
    assert version_mismatch([old, new], ["one", "two"], submission) == snapshot


def test_nobody_else_may_read_what_launchers_write_in_the_working_folder(folder):
    assert run(submission(folder, "stat -c %a ."), ONE).status == "completed"
    assert (folder / "node-0.log").read_text() == "700\n"


def test_what_a_guard_started_dies_with_it(folder):
    """Killed together with its coordinator, which would end all that is left on this machine."""
    kill = "S=$(ps -o ppid= -p $PPID); kill -9 $(ps -o ppid= -p $S) $S $PPID"
    request = submission(folder, f"echo $$ > $FOLDER/pid; {kill}; exec sleep 98765")
    coordinator_process = multiprocessing.get_context("fork").Process(target=run, args=(request, ONE))
    coordinator_process.start()
    coordinator_process.join()
    assert coordinator_process.exitcode == -signal.SIGKILL
    pid = int((folder / "pid").read_text())
    wait_for(lambda: not psutil.pid_exists(pid), "the process to die", PATIENCE_SECONDS)


def test_nothing_starts_on_gpus_that_the_library_cannot_use(folder, monkeypatch, snapshot):
    two_a100(folder.parents[1], monkeypatch)
    on_gpus = submission(folder, "touch started", gpus_per_node=2, gpu_question=gpu_question("paddle_collective"))
    result = run(submissions.changed(on_gpus, python=(sys.executable,), device_name=A100), Node())
    assert result.status == "failed"
    assert result.reason == snapshot
    assert (result.seconds, result.exit_codes) == (None, {})
    [node] = result.nodes
    assert (node["devices"], node["gpu_support"]["gpus"]) == ("0,1", [])
    assert node["hardware"]["gpu_names"] == f"{A100}; {A100}"


def test_nothing_starts_where_the_link_is_not_that_of_the_cluster_file(folder, monkeypatch, snapshot):
    two_a100(folder.parents[1], monkeypatch, link="SYS")
    result = run(submission(folder, "touch started", interconnect="NVLink"), Node())
    assert (result.status, result.reason, result.seconds) == ("failed", snapshot, None)


def test_a_coordinator_that_was_stopped_and_goes_on_says_so(folder):
    context = multiprocessing.get_context("fork")
    results, sender = context.Pipe(duplex=False)
    request = submission(folder, "echo $$ > $FOLDER/pid; exec sleep 98765")
    process = context.Process(target=lambda: sender.send(run(request, ONE)))
    process.start()
    wait_for(lambda: (folder / "pid").exists() and (folder / "pid").read_text(), "the trainer")
    assert process.pid
    os.kill(process.pid, signal.SIGSTOP)
    trainer = int((folder / "pid").read_text())
    wait_for(lambda: not psutil.pid_exists(trainer), "the node agent to end the run", 2 * SILENCE_SECONDS)
    os.kill(process.pid, signal.SIGCONT)
    result = results.recv()
    process.join()
    assert (result.status, result.reason) == ("killed", f"one: {SILENCE}")


def needing(images: Path, classes: int) -> tuple[tuple[str, ...], ...]:
    job = described(Job(()), replace(configuration(), classes=classes), str(images))
    return job.requirements


def test_a_node_without_the_images_fails_before_anything_starts(folder, tmp_path, snapshot):
    images = tiny.class_folders(tmp_path / "pictures")
    requested = submission(folder, "touch $FOLDER/started", requirements=needing(images, 10))
    result = run(requested, ONE)
    assert (result.status, result.reason, result.exit_codes) == ("failed", snapshot, {})
    assert not (folder / "started").exists()
    requested = submission(folder, "true", requirements=needing(tmp_path / "away", 3))
    assert run(requested, ONE).reason == snapshot
    requested = submission(folder, "true", requirements=needing(images, 3))
    assert run(requested, ONE).status == "completed"


def test_the_load_of_a_run_is_that_of_its_busiest_node(folder, monkeypatch):
    class BusyAgents(Agents):
        """Node agents of nodes of which the first is busier."""

        def end(self, seconds: float) -> dict[int, Message]:
            reports = super().end(seconds)
            return {index: report | {"busy_cores": 2.5 - index} for index, report in reports.items()}

    monkeypatch.setattr(coordinator, "Agents", BusyAgents)
    assert run(submission(folder, "true", "true")).busy_cores == 2.5


def test_a_node_may_take_as_long_to_prepare_as_it_may_wait_and_a_moment(folder, monkeypatch, snapshot):
    monkeypatch.setattr(coordinator, "GIVING_UP_SECONDS", 0.1)
    silent = Node("one", ("sh", "-c", "cat >/dev/null", "sh"))
    late = run(submission(folder, "true", idle_wait_seconds=0.5, ready_seconds=1.5), silent)
    assert late.reason == snapshot
