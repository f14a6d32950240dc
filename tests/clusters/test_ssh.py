"""Real hosts behind real ssh servers: what trains there, and what is left when something goes wrong."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import files, version
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from dlperf_study import frameworks
from dlperf_study.analysis.dataset import collect
from dlperf_study.launchers import ssh as launcher
from dlperf_study.launchers._base import Command, Ending, Submission
from dlperf_study.launchers._messages import SILENCE_SECONDS
from dlperf_study.logs.evidence import RankLog, disagreement, read_rank_log
from dlperf_study.study.cluster import Cluster, Ssh
from dlperf_study.study.configuration import Configuration
from dlperf_study.supervision.processes import GUARD
from tests.clusters.ssh_hosts import SshHosts
from tests.command_line import LIMIT_SECONDS, finish, wait_for, workplace
from tests.frameworks.launching import configuration

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)

#: A child in a session of its own, which the death of its parent does not reach.
DEEP = "setsid sleep 600 & touch started; sleep 600"


@pytest.fixture(autouse=True)
def _nothing_is_left(ssh: SshHosts) -> Iterator[None]:
    yield
    wait_for(lambda: not ssh.left(), f"the hosts to be empty of {ssh.left()}", 30)


@pytest.fixture
def cluster(ssh: SshHosts) -> Cluster:
    names = tuple(host.name for host in ssh.hosts)
    return Cluster(
        *("test", len(names), 1, "cpu", "a CPU", "ssh"),
        hosts=names,
        shared_files=False,
        work_folder=str(ssh.work),
        idle_max_busy_cores=1e9,
        idle_wait_seconds=0.0,
        ssh=Ssh(str(ssh.config)),
    )


def scripts(ssh: SshHosts, folder: Path, *of_nodes: str, **changes: Any) -> Submission:
    """Return one shell script per node."""
    there = f"{ssh.work}/run-{{unique}}"
    commands = tuple(
        Command(f"node-{k}", "trainer", ("sh", "-c", script), {}, f"{there}/{folder.name}/node-{k}.log", k)
        for k, script in enumerate(of_nodes)
    )
    return Submission(
        "ssh", str(folder), commands, **{"ports": 0, "nodes": len(of_nodes), "node_folder": there, **changes}
    )


def execute(asked: Submission, cluster: Cluster, timeout_seconds: float = 60) -> Ending:
    [ending] = launcher.execute([asked], cluster, timeout_seconds)
    return ending


def test_every_node_runs_its_own_command_and_its_files_come_back(cluster: Cluster, ssh: SshHosts) -> None:
    folder = ssh.hidden / "run"
    text = "hostname; cat ../asked.txt; echo {port_0} {host_1} {interface_1} > ../ports-of-$(hostname).txt"
    ending = execute(scripts(ssh, folder, text, text, ports=1, files={"asked.txt": "twice\n"}), cluster)
    assert (ending.outcome, ending.reason, ending.exit_codes) == ("completed", "", {"node-0": 0, "node-1": 0})
    assert [node["hardware"]["host"] for node in ending.nodes] == list(cluster.hosts[:2])
    for k, host in enumerate(ssh.hosts[:2]):
        assert (folder / f"node-{k}.log").read_text().splitlines()[0] == host.name
    told = {(folder / f"ports-of-{host.name}.txt").read_text() for host in ssh.hosts[:2]}
    [(port, address, interface)] = [line.split() for line in told]
    assert (address, interface) == (ssh.hosts[1].address, "eth0")
    assert int(port) > 1023


def test_with_shared_files_every_node_writes_into_the_folder_of_the_run(ssh: SshHosts, cluster: Cluster) -> None:
    folder = ssh.folder / "shared"
    asked = scripts(ssh, folder, "hostname", "hostname > ../by-node-1.txt")
    commands = tuple(replace(command, log=str(folder / f"{command.name}.log")) for command in asked.commands)
    ending = execute(replace(asked, commands=commands, node_folder=""), cluster)
    assert ending.outcome == "completed", ending
    assert (folder / "node-0.log").read_text() == f"{cluster.hosts[0]}\n"
    assert (folder / "by-node-1.txt").read_text() == f"{cluster.hosts[1]}\n"
    assert not (folder / "scratch").exists()


def test_a_failure_names_task_and_host_and_ends_the_others(cluster: Cluster, ssh: SshHosts) -> None:
    ending = execute(scripts(ssh, ssh.hidden / "failed", DEEP, "sleep 1; echo why; exit 3"), cluster)
    assert (ending.outcome, ending.reason) == ("failed", f"node-1 on {cluster.hosts[1]} exited with code 3")
    assert ending.exit_codes == {"node-0": None, "node-1": 3}
    assert (ssh.hidden / "failed" / "node-1.log").read_text() == "why\n"


def test_a_hanging_task_is_a_timeout(cluster: Cluster, ssh: SshHosts) -> None:
    ending = execute(scripts(ssh, ssh.hidden / "hung", DEEP, "exit 0"), cluster, timeout_seconds=1)
    assert (ending.outcome, ending.reason) == ("timeout", "not finished after 1 s")


def test_a_wrong_key_is_said_before_anything_starts(cluster: Cluster, ssh: SshHosts) -> None:
    locked_out = replace(cluster, ssh=Ssh(str(ssh.config_with_wrong_key)))
    ending = execute(scripts(ssh, ssh.hidden / "locked_out", "touch started"), locked_out)
    assert (ending.outcome, ending.seconds, ending.exit_codes) == ("failed", None, {})
    assert ending.reason.startswith(f"{cluster.hosts[0]}: was lost, its ssh exited with code 255: root@")
    assert "Permission denied" in ending.reason


def test_a_python_that_is_not_there_is_said_before_anything_starts(cluster: Cluster, ssh: SshHosts) -> None:
    nowhere = replace(cluster, python={"default": "/nowhere/python"})
    ending = execute(scripts(ssh, ssh.hidden / "nowhere", "touch started"), nowhere)
    assert (ending.outcome, ending.seconds) == ("failed", None)
    assert "/nowhere/python" in ending.reason
    missing = scripts(ssh, ssh.hidden / "no_trainer", "touch started", python=("/no/trainer",))
    assert "/no/trainer does not run" in execute(missing, cluster).reason


@pytest.fixture
def other_version(ssh: SshHosts, tmp_path: Path) -> Iterator[None]:
    """The second host sees another version of protobuf."""
    [file] = [file for file in files("protobuf") or () if file.name == "METADATA"]
    here = Path(str(file.locate())).resolve()
    other = tmp_path / "METADATA"
    other.write_text(here.read_text().replace(f"Version: {version('protobuf')}", "Version: 0.0.1"))
    ssh.stop(ssh.hosts[1])
    ssh.start(ssh.hosts[1], before=f"mount --bind {other} {here}")
    yield
    ssh.stop(ssh.hosts[1])
    ssh.start(ssh.hosts[1])


def test_a_host_with_other_packages_is_said(cluster: Cluster, ssh: SshHosts, other_version: None) -> None:
    ending = execute(scripts(ssh, ssh.hidden / "other_version", "true", "true"), cluster)
    assert (ending.outcome, ending.seconds) == ("failed", None)
    assert ending.reason == f"protobuf is 0.0.1 on {cluster.hosts[1]}, but {version('protobuf')} on this machine"


def after_the_start(ssh: SshHosts, change: Callable[[], object]) -> Thread:
    """Change something once both hosts run their command."""

    def wait_and_change() -> None:
        wait_for(lambda: sum("sleep 600" in words for words in ssh.left()) >= 4, "the commands")
        change()

    thread = Thread(target=wait_and_change)
    thread.start()
    return thread


def test_a_host_that_dies_ends_the_run_on_the_others(cluster: Cluster, ssh: SshHosts) -> None:
    dying = ssh.hosts[1]
    thread = after_the_start(ssh, lambda: ssh.stop(dying))
    try:
        ending = execute(scripts(ssh, ssh.hidden / "died", DEEP, DEEP), cluster)
    finally:
        thread.join()
        ssh.start(dying)
    assert ending.outcome == "failed"
    assert ending.reason.startswith(f"{dying.name}: was lost, its ssh exited with code 255")
    assert ending.exit_codes == {"node-0": None, "node-1": None}
    assert (ssh.hidden / "died" / "node-0.log").exists()


def test_a_host_that_is_cut_off_is_noticed_on_both_sides(cluster: Cluster, ssh: SshHosts) -> None:
    far = ssh.hosts[1]
    thread = after_the_start(ssh, lambda: far.link("down"))
    try:
        ending = execute(scripts(ssh, ssh.hidden / "cut_off", DEEP, DEEP), cluster, 120)
        wait_for(lambda: not ssh.left(), "the host to notice", 2 * SILENCE_SECONDS)
    finally:
        thread.join()
        far.link("up")
    assert ending.outcome == "failed"
    assert ending.reason.startswith(f"{far.name}: was lost")


def test_a_guard_that_is_killed_leaves_nothing(cluster: Cluster, ssh: SshHosts) -> None:
    thread = after_the_start(ssh, lambda: ssh.run(ssh.hosts[1], f"pkill -KILL -f {GUARD}"))
    ending = execute(scripts(ssh, ssh.hidden / "unguarded", DEEP, DEEP), cluster)
    thread.join()
    assert ending.outcome == "failed"
    assert ending.reason.startswith(f"{ssh.hosts[1].name}: was lost, its ssh exited with code 255")


TRAINED = {
    "paddle_collective": {},
    "paddle_ps": {"strategy": "async", "servers": 2},
    "torch_ddp": {},
    "horovod_torch": {},
}


def train(asked: Configuration, cluster: Cluster, folder: Path) -> list[RankLog]:
    """Measure one run on hosts; return its rank logs."""
    job = frameworks.load(asked.framework).job(asked, cluster)
    rendered = launcher.render(job, cluster, folder)
    ending = execute(replace(rendered, files={"configuration.json": json.dumps(asked.as_dict())}), cluster, 120)
    assert ending.outcome == "completed", (ending, [log.read_text()[-2000:] for log in folder.glob("*.log")])
    return [read_rank_log(folder / f"rank-{rank:05d}.jsonl") for rank in range(asked.world_size)]


@pytest.mark.parametrize("nodes", [2, 4])
@pytest.mark.parametrize("name", TRAINED)
def test_training_across_hosts(cluster: Cluster, ssh: SshHosts, machine: None, name: str, nodes: int) -> None:
    steps = {"measured_steps": 2, "computation_steps": 1, "exchange_steps": 1}
    asked = configuration(framework=name, nodes=nodes, batch_per_device=2, **steps, **TRAINED[name])
    folder = ssh.hidden / f"{name}-{nodes}"
    logs = train(asked, cluster, folder)
    assert [log.facts["host"] for log in logs] == list(cluster.hosts[:nodes])
    assert not disagreement(logs, asked, "cpu", None)
    assert len({log.windows["training"].losses[0] for log in logs}) == nodes


STUDY = """\
title: Two hosts
about: Made for tests.
questions: [communication]
scaling: weak
fixed: {framework: paddle_collective, strategy: all_reduce, model: mobilenet_v2}
factors: {nodes: [2], image_size: [32], classes: [10], batch_per_device: [4]}
baseline: {nodes: 2}
measurement:
  {warmup_steps: 1, measured_steps: 2, computation_steps: 1, exchange_steps: 3, repeats: 1, timeout_seconds: 120}
"""
CLUSTER = """\
launcher: ssh
hosts: [{hosts}]
devices_per_node: 1
device: cpu
device_name: a CPU
link: 100 Mbit/s
shared_files: false
work_folder: {work}
idle: {{max_busy_cores: 1000, wait_seconds: 0}}
pass_environment: [WANDB_API_KEY]
environment: {{SITE_PASSWORD: {secret}}}
ssh: {{config_file: {config}}}
"""
SECRET = "hunter2-and-nobody-else"
#: Of the link, in bytes/s, and of the gradients of the model with ten classes.
LINK, GRADIENTS = 100e6 / 8, 4 * 2_236_682


@pytest.fixture
def slow_links(ssh: SshHosts) -> Iterator[None]:
    for host in ssh.hosts[:2]:
        host.shape("100mbit")
    yield
    for host in ssh.hosts[:2]:
        host.shape("")


def wait_until_both_train(ssh: SshHosts, driver: "subprocess.Popen[str]") -> None:
    def both_train() -> bool:
        assert driver.poll() is None, driver.communicate()
        return sum("dlperf_study.worker" in words for words in ssh.left()) >= 2

    wait_for(both_train, "both hosts to train")


def test_a_study_on_hosts(ssh: SshHosts, slow_links: None) -> None:
    """Killed, interrupted, and done at last, over a slow link."""
    (ssh.hidden / "study").mkdir()
    hosts = ", ".join(host.name for host in ssh.hosts[:2])
    text = CLUSTER.format(hosts=hosts, work=ssh.work, config=ssh.config, secret=SECRET)
    place = workplace(ssh.hidden / "study", STUDY, text)
    for number, code in ((signal.SIGKILL, -9), (signal.SIGINT, 130)):
        driver = place.start("run", WANDB_API_KEY=SECRET)
        wait_until_both_train(ssh, driver)
        driver.send_signal(number)
        assert finish(driver).returncode == code
        wait_for(lambda: not ssh.left(), "the hosts to be empty", 20)

    done = place.command("run", WANDB_API_KEY=SECRET)
    assert (done.returncode, done.stderr) == (0, "")
    facts = place.run_facts("2n1d")
    names = [host.name for host in ssh.hosts[:2]]
    assert [(node["name"], node["hardware"]["host"]) for node in facts["nodes"]] == [(name, name) for name in names]
    assert facts["environment"]["hardware"]["host"] == names[0]
    assert facts["environment"]["variables"]["WANDB_API_KEY"] == "(not recorded)"
    assert [file for file in place.outputs.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()] == []
    kept = sorted(folder.name for folder in (place.configuration("2n1d").folder / "interrupted").iterdir())
    assert kept == ["1", "2"]

    columns = collect(place.study).runs.iloc[0]
    # Two nodes exchange their gradients once in each direction.
    assert columns["exchange_seconds"] == pytest.approx(GRADIENTS / LINK, rel=0.25)
    assert columns["bus_bandwidth"] == pytest.approx(LINK, rel=0.25)
    assert columns["host"] == ", ".join(names)


def test_an_exchange_over_a_fast_link_takes_less(cluster: Cluster, ssh: SshHosts, machine: None) -> None:
    """Otherwise the slow one of the study above would prove nothing."""
    asked = configuration(nodes=2, batch_per_device=2, measured_steps=2, computation_steps=1, exchange_steps=3)
    logs = train(asked, cluster, ssh.hidden / "fast")
    assert max(log.windows["exchange"].mean_seconds for log in logs) < GRADIENTS / LINK / 2
