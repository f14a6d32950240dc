"""Training across real hosts by ssh: every framework, and a study whose controller and whose hosts don't survive it."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from dlperf_study.dataset.dataset import collect
from dlperf_study.machines.launchers import ssh as launcher
from dlperf_study.training import frameworks
from dlperf_study.training.data_loaders._producers import add_producers
from dlperf_study.training.questions import described
from tests.command_line import LIMIT_SECONDS, Workplace, finish, wait_for, workplace
from tests.machines.clusters.ssh_hosts import SshHosts
from tests.machines.clusters.ssh_runs import execute
from tests.machines.clusters.training import (
    FRAMEWORKS,
    GRADIENTS,
    asked_for,
    check_trained_together,
    least_traffic,
    traffic,
)
from tests.printed_table import printed_seconds
from tests.requirements import need

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)

#: Of the slow link, in bytes/s.
LINK = 50e6 / 8


# Under Slurm one framework trains on four nodes.
@pytest.mark.parametrize(("framework", "nodes"), [(name, 3 if name == "torch_ddp" else 2) for name in FRAMEWORKS])
def test_training_across_hosts(ssh_cluster, ssh, framework, nodes):
    configuration = asked_for(framework, nodes)
    folder = ssh.hidden / framework / "1"
    if framework == "torch_ddp":
        configuration = replace(configuration, data_loader="zmq", remote_producers=True)
    job = frameworks.load(framework).job(configuration, ssh_cluster)
    if configuration.remote_producers:
        # One that is not on the node after that of its rank can't listen at its address, and the run fails.
        job = add_producers(job, configuration)
    rendered = launcher.render(described(job, configuration, image_folder=""), ssh_cluster, folder)
    rendered = replace(rendered, files={"configuration.json": json.dumps(configuration.as_dict())})
    before = traffic(ssh.hosts)
    ending = execute(rendered, ssh_cluster, 120)
    assert ending.status == "completed", (ending, [log.read_text()[-2000:] for log in folder.glob("*.log")])
    assert traffic(ssh.hosts) - before > least_traffic(configuration)
    logs = check_trained_together(folder, configuration, ssh_cluster.hosts[:nodes])
    if framework == "paddle_collective":
        # Otherwise what the study below sees of a slow link, whose two hosts communication less, would prove nothing.
        assert max(log.windows["communication"].mean_seconds for log in logs) < GRADIENTS / LINK / 2


STUDY = """\
title: Two hosts
about: Made for tests.
sections: [communication]
scaling: weak
constants: {framework: paddle_collective, strategy: all_reduce, model: mobilenet_v2}
factors: {nodes: [2], image_size: [32], classes: [10], batch_per_device: [4]}
baseline: {nodes: 2}
measurement:
  {warmup_steps: 1, max_warmup_seconds: 0, measured_steps: 2, compute_only_steps: 1, communication_only_steps: 3,
   repetitions: 1, timeout_seconds: 120}
"""
CLUSTER = """\
launcher: ssh
hosts: [{hosts}]
devices_per_node: 1
device: cpu
device_name: a CPU
interconnect: 50 Mbit/s
shared_files: false
work_folder: {work}
idle: {{max_busy_cores: 1000, wait_seconds: 0}}
pass_environment: [WANDB_API_KEY]
environment: {{SITE_PASSWORD: {secret}}}
ssh: {{config_file: {config}}}
"""
SECRET = "hunter2-and-nobody-else"


@pytest.fixture
def slow_links(ssh: SshHosts) -> Iterator[None]:
    need("tc")
    for host in ssh.hosts[:2]:
        host.shape("50mbit")
    yield
    for host in ssh.hosts[:2]:
        host.shape("")


@pytest.fixture
def place(ssh: SshHosts) -> Workplace:
    """A study on two hosts, in a folder that they don't see."""
    (ssh.hidden / "study").mkdir()
    hosts = ", ".join(host.name for host in ssh.hosts[:2])
    text = CLUSTER.format(hosts=hosts, work=ssh.work, config=ssh.config, secret=SECRET)
    return workplace(ssh.hidden / "study", STUDY, text, shares_machine=True)


def disturb(
    place: Workplace, ssh: SshHosts, disturbance: Callable[["subprocess.Popen[str]"], object]
) -> "subprocess.CompletedProcess[str]":
    """Run the study, and do something to it while both hosts train; return how the controller ended."""
    controller = place.start("run --no-report", WANDB_API_KEY=SECRET)

    def both_train() -> bool:
        assert controller.poll() is None, controller.communicate()
        return sum("dlperf_study.training.worker" in words for words in ssh.left()) >= 2

    wait_for(both_train, "both hosts to train")
    disturbance(controller)
    ended = finish(controller)
    wait_for(lambda: not ssh.left(), "the hosts to be empty", 20)
    return ended


def test_a_study_on_hosts(place, ssh, slow_links):
    """Its controller is killed, then interrupted; then a host dies; at last it is done, over a slow link."""
    first, second = ssh.hosts[:2]
    assert disturb(place, ssh, lambda controller: controller.send_signal(signal.SIGKILL)).returncode == -9
    assert disturb(place, ssh, lambda controller: controller.send_signal(signal.SIGINT)).returncode == 130
    assert disturb(place, ssh, lambda controller: ssh.stop(second)).returncode == 1
    ssh.start(second)
    facts = place.run_facts("2n1d")
    assert facts["status"] == "failed"
    assert facts["reason"].startswith(f"{second.name}: was lost, its ssh exited with code 255")

    done = place.command("run --no-report", WANDB_API_KEY=SECRET)
    assert (done.returncode, done.stderr) == (0, "")
    kept = sorted(folder.name for folder in (place.configuration("2n1d").folder / "interrupted").iterdir())
    assert kept == ["1", "2", "3"]
    facts, names = place.run_facts("2n1d"), [first.name, second.name]
    assert [(node["name"], node["hardware"]["host"]) for node in facts["nodes"]] == [(name, name) for name in names]
    assert facts["environment"]["hardware"]["host"] == first.name
    check_link(place, names)
    check_secrets(place)


def check_link(place: Workplace, names: list[str]) -> None:
    """Two nodes communicate their gradients once in each direction: that is what the link takes for them."""
    columns = collect(place.study).runs.iloc[0]
    assert columns["host"] == ", ".join(names)
    assert columns["communication_seconds"] == pytest.approx(GRADIENTS / LINK, rel=0.25)
    assert columns["bus_bandwidth"] == pytest.approx(LINK, rel=0.25)
    assert place.command("report").returncode == 0
    page = (place.study.report / "communication.html").read_text()
    assert "interconnect 50 Mbit/s" in page
    assert printed_seconds(page, "communication_alone", "Communication-only time") == [
        pytest.approx(GRADIENTS / LINK, rel=0.25)
    ]


def check_secrets(place: Workplace) -> None:
    """What the cluster file and the environment hold is in no evidence, and on no page."""
    assert place.run_facts("2n1d")["environment"]["variables"]["WANDB_API_KEY"] == "(not recorded)"
    assert [file for file in place.outputs.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()] == []
