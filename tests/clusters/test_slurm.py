"""A real Slurm: what trains there, every way in which a job can end, and a driver that comes back."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from dlperf_study.launchers import slurm as launcher
from dlperf_study.launchers._base import Command, Ending, Submission
from dlperf_study.launchers._slurm_job import SCRIPT
from dlperf_study.launchers._slurm_script import script
from dlperf_study.study import cluster as clusters
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.outcome import Outcome
from tests.clusters.slurm import Slurm
from tests.command_line import LIMIT_SECONDS, Workplace, finish, wait_for, workplace

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


@pytest.fixture(autouse=True)
def _nothing_is_left(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in slurm.variables.items():
        monkeypatch.setenv(name, value)
    yield
    wait_for(lambda: not slurm.jobs(), "the jobs to end", 30)
    wait_for(lambda: not slurm.left(), f"{slurm.left()} to end", 30)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(
        *("test", 4, 2, "cpu", "a CPU", "slurm"),
        idle_max_busy_cores=1e9,
        idle_wait_seconds=0.0,
        slurm=clusters.Slurm(poll_seconds=0.2, start_within_seconds=60),
    )


def runs(folder: Path, cluster: Cluster, *scripts: Sequence[str]) -> list[Submission]:
    """Return the runs of a configuration, each with one shell script per node."""
    return [_run(folder / "configuration" / "runs" / str(k), cluster, each) for k, each in enumerate(scripts, 1)]


def _run(folder: Path, cluster: Cluster, scripts: Sequence[str]) -> Submission:
    commands = tuple(
        Command(f"node-{k}", "trainer", ("sh", "-c", text), {"FOLDER": str(folder)}, f"{folder}/node-{k}.log", k)
        for k, text in enumerate(scripts)
    )
    return Submission(
        *("slurm", str(folder), commands, 1),
        nodes=len(scripts),
        idle_wait_seconds=cluster.idle_wait_seconds,
        fingerprint="f1",
        files={SCRIPT: script("a configuration", len(scripts), cluster)},
    )


def execute(asked: list[Submission], cluster: Cluster, timeout_seconds: float = 60) -> list[Ending]:
    return list(launcher.execute(asked, cluster, timeout_seconds))


def jobs_of(asked: list[Submission]) -> list[Path]:
    return sorted((Path(asked[0].folder).parents[1] / "jobs").iterdir())


SLEEP = "touch $FOLDER/started; sleep 600"
CALLER = """
import json, signal, sys
from dataclasses import asdict
signal.signal(signal.SIGINT, signal.default_int_handler)
from dlperf_study.launchers._base import Submission
from dlperf_study.launchers.slurm import execute
from dlperf_study.study.cluster import Cluster, Slurm
asked = [Submission.from_json(json.dumps(one)) for one in json.loads(sys.argv[1])]
cluster = Cluster("test", 4, 2, "cpu", "a CPU", "slurm", slurm=Slurm(poll_seconds=0.2))
print(json.dumps([asdict(ending) for ending in execute(asked, cluster, 60)]))
"""


def caller(asked: list[Submission]) -> "subprocess.Popen[str]":
    """Return a process that executes the runs."""
    order, pipe = json.dumps([asdict(one) for one in asked]), subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", CALLER, order], stdout=pipe, stderr=pipe, text=True)


def begun(asked: Submission) -> bool:
    return (Path(asked.folder) / "started").exists()


def meanwhile(asked: Submission, slurm: Slurm, act: Callable[[str], object]) -> Thread:
    """Do something to the job, by its number, once this run has begun."""

    def wait_and_act() -> None:
        wait_for(lambda: begun(asked), "the run")
        act(slurm.jobs()[0])

    thread = Thread(target=wait_and_act)
    thread.start()
    return thread


@pytest.fixture
def busy(slurm: Slurm) -> Iterator[str]:
    """A job of somebody else on all nodes; its number."""
    number = slurm.command("sbatch", "--parsable", "--nodes=4", "--exclusive", "--output=/dev/null", "--wrap=sleep 600")
    yield number.strip()
    slurm.command("scancel", number.strip())
    wait_for(lambda: not slurm.jobs(), "the job of somebody else to end")


def test_all_runs_of_a_configuration_are_one_job(tmp_path: Path, cluster: Cluster, slurm: Slurm) -> None:
    """Also where the path has a space."""
    text = "hostname; echo {host_0} {host_1} {port_0} $SLURM_JOB_ID $SECRET"
    asked = runs(tmp_path / "a folder", cluster, [text, text], [text, text])
    endings = execute(asked, cluster)
    assert [(ending.outcome, ending.reason) for ending in endings] == [("completed", ""), ("completed", "")], endings
    names = [host.name for host in slurm.hosts[:2]]
    for submission, ending in zip(asked, endings, strict=True):
        logs = [(Path(submission.folder) / f"node-{k}.log").read_text().split() for k in range(2)]
        assert [words[0] for words in logs] == names
        assert [node["hardware"]["host"] for node in ending.nodes] == names
        assert logs[0][1:] == logs[1][1:]
        assert logs[0][1:3] == [host.address for host in slurm.hosts[:2]]
        assert len(logs[0]) == 4, "what Slurm sets for its own is no business of training processes"
    [job] = jobs_of(asked)
    states = (job / "states.txt").read_text()
    assert "RUNNING on dls[1-2]" in states
    assert "{" not in (job / "job.sbatch").read_text()
    assert not list(job.parents[1].glob("runs/*/job.sbatch")), "the job has it, once"


def test_a_run_has_all_gpus_of_its_nodes(tmp_path: Path, cluster: Cluster) -> None:
    shown = runs(tmp_path, replace(cluster, device="gpu"), ["echo $CUDA_VISIBLE_DEVICES"] * 2)
    asked = [replace(one, pass_environment=("CUDA_VISIBLE_DEVICES",)) for one in shown]
    [ending] = execute(asked, cluster)
    assert ending.outcome is Outcome.COMPLETED, ending
    assert [(Path(asked[0].folder) / f"node-{k}.log").read_text() for k in range(2)] == ["0,1\n", "0,1\n"]


def test_a_run_that_fails_does_not_keep_the_next_from_being_tried(tmp_path: Path, cluster: Cluster) -> None:
    asked = runs(tmp_path, cluster, ["sleep 600", "exit 3"], ["true", "sleep 600"], ["true", "true"])
    endings = execute(asked, cluster, timeout_seconds=2)
    assert [(ending.outcome, ending.reason) for ending in endings] == [
        (Outcome.FAILED, "node-1 on dls2 exited with code 3"),
        (Outcome.TIMEOUT, "not finished after 2 s"),
        (Outcome.COMPLETED, ""),
    ]


@pytest.mark.parametrize(
    ("command", "outcome", "word"),
    [
        (["scancel"], Outcome.KILLED, "CANCELLED"),
        (["scontrol", "update", "TimeLimit=1", "JobId="], Outcome.TIMEOUT, "TIMEOUT"),
    ],
)
def test_what_slurm_ends_has_slurm_s_word(
    tmp_path: Path, cluster: Cluster, slurm: Slurm, command: list[str], outcome: Outcome, word: str
) -> None:
    asked = runs(tmp_path, cluster, [SLEEP, "sleep 600"], ["true", "true"])
    *words, last = command
    joined = [*words, last] if last == "scancel" else words
    thread = meanwhile(asked[0], slurm, lambda n: slurm.command(*joined, f"{'JobId=' * (last != 'scancel')}{n}"))
    endings = execute(asked, cluster, 300)
    thread.join()
    assert [ending.outcome for ending in endings] == [outcome, outcome], endings
    assert all(f": {word}" in ending.reason for ending in endings), endings


def test_a_node_that_fails_is_named(tmp_path: Path, cluster: Cluster, slurm: Slurm) -> None:
    asked = runs(tmp_path, cluster, [SLEEP, "sleep 600"], ["true", "true"])
    failing = slurm.hosts[1]
    thread = meanwhile(asked[0], slurm, lambda number: slurm.kill_node(failing))
    endings = execute(asked, cluster, 120)
    thread.join()
    slurm.start_node(failing)
    slurm.wait_until_idle()
    assert [ending.outcome for ending in endings] == [Outcome.FAILED, Outcome.FAILED]
    assert all("NODE_FAIL" in ending.reason and f"{failing.name} is down" in ending.reason for ending in endings), (
        endings
    )


@pytest.mark.parametrize(
    ("settings", "nodes", "outcome", "words"),
    [
        ({"partition": "two"}, 3, Outcome.UNSUPPORTED, "it can never start"),
        ({"options": ("--hold",)}, 1, Outcome.FAILED, "PENDING (JobHeldUser): it is held"),
        ({"partition": "nowhere"}, 1, Outcome.FAILED, "Slurm refused the job: sbatch: error: invalid partition"),
        ({"options": ("--constraint=v100",)}, 1, Outcome.FAILED, "Invalid feature specification"),
        ({"options": ("--begin=now+1hour",), "start_within_seconds": 1}, 1, Outcome.FAILED, "not started within 1 s"),
    ],
)
def test_a_job_that_does_not_start_is_not_waited_for(
    tmp_path: Path, cluster: Cluster, settings: dict[str, Any], nodes: int, outcome: Outcome, words: str
) -> None:
    place = replace(cluster, slurm=replace(cluster.slurm, **settings))
    begin = time.monotonic()
    endings = execute(runs(tmp_path, place, ["true"] * nodes, ["true"] * nodes), place)
    assert [ending.outcome for ending in endings] == [outcome, outcome], endings
    assert all(words in ending.reason for ending in endings), endings
    assert time.monotonic() - begin < 20


def test_a_driver_that_comes_back_follows_its_job(tmp_path: Path, cluster: Cluster, slurm: Slurm, busy: str) -> None:
    asked = runs(tmp_path, cluster, ["true", "true"])
    driver = caller(asked)
    wait_for(lambda: len(slurm.jobs()) == 2, "the job")
    wait_for(lambda: (jobs_of(asked)[0] / "job_id.txt").exists(), "its number")
    driver.kill()
    driver.communicate()
    # As if it had been killed a moment before it wrote the number down.
    (jobs_of(asked)[0] / "job_id.txt").unlink()
    [number] = set(slurm.jobs()) - {busy}
    slurm.command("scancel", busy)
    [ending] = execute(asked, cluster)
    assert ending.outcome is Outcome.COMPLETED, ending
    [job] = jobs_of(asked)
    assert (job / "job_id.txt").read_text().strip() == number


def test_what_a_job_did_while_nobody_watched_is_not_done_again(tmp_path: Path, cluster: Cluster, slurm: Slurm) -> None:
    asked = runs(tmp_path, cluster, ["date +%N > $FOLDER/now.txt"])
    driver = caller(asked)
    wait_for(lambda: slurm.jobs(), "the job")
    driver.kill()
    driver.communicate()
    wait_for(lambda: not slurm.jobs(), "the job to end")
    when = (Path(asked[0].folder) / "now.txt").read_text()
    assert [ending.outcome for ending in execute(asked, cluster)] == [Outcome.COMPLETED]
    assert (Path(asked[0].folder) / "now.txt").read_text() == when
    execute(asked, cluster)
    assert (Path(asked[0].folder) / "now.txt").read_text() != when


def test_a_job_of_other_code_is_cancelled(tmp_path: Path, cluster: Cluster, slurm: Slurm, busy: str) -> None:
    asked = runs(tmp_path, cluster, ["true"])
    driver = caller(asked)
    wait_for(lambda: len(slurm.jobs()) == 2, "the job")
    wait_for(lambda: (jobs_of(asked)[0] / "job_id.txt").exists(), "its number")
    driver.kill()
    driver.communicate()
    [number] = set(slurm.jobs()) - {busy}
    slurm.command("scancel", busy)
    slurm.command("scontrol", "hold", number)
    [ending] = execute([replace(asked[0], fingerprint="f2")], cluster)
    assert ending.outcome is Outcome.COMPLETED, ending
    assert slurm.state(number) == "CANCELLED"


def test_an_interrupt_cancels_the_job(tmp_path: Path, cluster: Cluster, slurm: Slurm) -> None:
    asked = runs(tmp_path, cluster, [SLEEP, "sleep 600"])
    driver = caller(asked)
    wait_for(lambda: begun(asked[0]), "the run")
    driver.send_signal(signal.SIGINT)
    output, errors = driver.communicate(timeout=60)
    [ending] = json.loads(output.splitlines()[-1])
    assert (ending["outcome"], ending["reason"], ending["interrupted"]) == ("killed", "interrupted", True), errors
    assert not slurm.jobs()


STUDY = """\
title: Tiny
about: Made for tests.
questions: [scaling]
scaling: weak
fixed: {model: mobilenet_v2, strategy: all_reduce, image_size: 32, classes: 10, batch_per_device: 4, nodes: 2}
factors:
  framework: [paddle_collective, horovod_torch]
baseline:
  - {values: {framework: paddle_collective}}
measurement:
  {warmup_steps: 1, measured_steps: 2, computation_steps: 1, exchange_steps: 1, repeats: 1, timeout_seconds: 200}
"""
CLUSTER = """\
launcher: slurm
nodes: 4
devices_per_node: 1
device: cpu
device_name: a CPU
link: veth
idle: {max_busy_cores: 1000, wait_seconds: 0}
slurm: {jobs_in_queue: 2, poll_seconds: 0.5, start_within_seconds: 300}
"""


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return workplace(tmp_path, STUDY, CLUSTER)


def test_a_study_of_two_frameworks_has_two_jobs_in_the_queue(place: Workplace, slurm: Slurm) -> None:
    driver = place.start("run", busy=True)
    wait_for(lambda: len(slurm.jobs()) == 2, "both configurations to be in the queue")
    ended = finish(driver)
    assert ended.returncode == 0, (ended.stderr, ended.stdout)
    for framework in ("paddle_collective", "horovod_torch"):
        facts = place.run_facts(framework)
        assert facts["outcome"] == "completed"
        hosts = {node["hardware"]["host"] for node in facts["nodes"]}
        assert hosts in ({"dls1", "dls2"}, {"dls3", "dls4"})
        notebook = place.configuration(framework).notebook.read_text()
        assert "#SBATCH --nodes=2" in notebook
        assert "RUNNING on dls" in notebook
    assert "RUNNING on dls[1-2]" in ended.stdout
    assert "RUNNING on dls[3-4]" in ended.stdout


def test_a_driver_that_is_killed_leaves_its_jobs_to_the_next_and_an_interrupt_does_not(
    place: Workplace, slurm: Slurm, busy: str
) -> None:
    def numbers() -> list[str]:
        return sorted({*slurm.jobs()} - {busy})

    killed = place.start("run", busy=True)
    wait_for(lambda: len(numbers()) == 2, "two jobs")
    wait_for(lambda: len(list(place.outputs.rglob("states.txt"))) == 2, "them to be followed")
    submitted = numbers()
    killed.kill()
    killed.communicate()
    for states in place.outputs.rglob("states.txt"):
        states.unlink()
    next_one = place.start("run", busy=True)
    wait_for(lambda: len(list(place.outputs.rglob("states.txt"))) == 2, "the next driver to follow")
    slurm.command("scancel", busy)
    wait_for(lambda: {slurm.state(number) for number in submitted} == {"RUNNING"}, "the jobs to run")
    assert numbers() == submitted
    next_one.send_signal(signal.SIGINT)
    assert finish(next_one).returncode == 130
    assert slurm.jobs() == []
    assert {slurm.state(number) for number in submitted} == {"CANCELLED"}
