"""A study under a real Slurm: frameworks on two nodes, one on four, and controllers and jobs that are ended."""

import signal
from collections.abc import Mapping

import pytest

from dlperf_study.dataset.dataset import collect
from dlperf_study.study.configuration import Configuration
from tests.command_line import LIMIT_SECONDS, Workplace, finish, wait_for, workplace
from tests.machines.clusters.namespaces import HOSTS, PREFIX
from tests.machines.clusters.training import BATCH, FRAMEWORKS, STEPS, check_trained_together, least_traffic, traffic

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)

NAMES = [host.name for host in HOSTS]
STUDY = """\
title: Tiny
about: Made for tests.
sections: [scaling]
scaling: weak
constants: {{model: mobilenet_v2, image_size: 32, classes: 10, batch_per_device: {batch}}}
factors: {{framework: [{first}], strategy: [all_reduce], parameter_servers: [0], nodes: [{nodes}]}}
include:
{others}
baseline: {{}}
measurement: {{{steps}, repetitions: 1, timeout_seconds: 200}}
"""
CLUSTER = """\
launcher: slurm
nodes: 4
devices_per_node: 1
device: cpu
device_name: a CPU
interconnect: veth
idle: {max_busy_cores: 1000, wait_seconds: 0}
slurm: {jobs_in_queue: 2, poll_seconds: 0.5, start_within_seconds: 300}
"""


def study(*points: tuple[str, int]) -> str:
    """Return a study of frameworks on numbers of nodes, in this order."""
    (first, nodes), *others = points
    given = {"batch": BATCH, "first": first, "nodes": nodes, "steps": _yaml(STEPS)}
    return STUDY.format(others="".join(f"  - {{{_point(*other)}}}\n" for other in others), **given)


def _point(framework: str, nodes: int) -> str:
    values = {"strategy": "all_reduce", "parameter_servers": 0, **FRAMEWORKS[framework]}
    return _yaml({"framework": framework, "nodes": nodes, **values})


def _yaml(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in values.items())


def test_frameworks_train_on_two_nodes_and_one_on_four(tmp_path, slurm):
    """Two jobs are in the queue at a time, and run side by side where there are nodes for both.

    By ssh every framework trains on three. Horovod trains on four here: only its launcher starts processes itself.
    """
    points = [(framework, 4 if framework == "horovod_torch" else 2) for framework in FRAMEWORKS]
    place = workplace(tmp_path, study(*points), CLUSTER)
    before = traffic(slurm.hosts)
    controller = place.start("run --no-report", busy=True)
    wait_for(lambda: len(slurm.jobs()) == 2, "two configurations to be in the queue")
    ended = finish(controller, 600)
    assert ended.returncode == 0, (ended.stderr, ended.stdout)
    for nodes in ("1-2", "3-4", "1-4"):
        assert f"RUNNING on {PREFIX}[{nodes}]" in ended.stdout
    configurations = [check_configuration(place, framework, nodes) for framework, nodes in points]
    assert traffic(slurm.hosts) - before > sum(map(least_traffic, configurations))
    runs = collect(place.study).runs
    assert list(runs["status"]) == ["completed"] * len(configurations)
    assert sorted(runs["communication_seconds"].notna()) == [True] * len(configurations)


def check_configuration(place: Workplace, framework: str, nodes: int) -> Configuration:
    """Check what a configuration has left; return it."""
    part = f"{framework}-*-{nodes}n1d"
    facts, paths = place.run_facts(part), place.configuration(part)
    assert (facts["status"], facts["ranks_seen"]) == ("completed", list(range(nodes)))
    configuration = Configuration.from_mapping(facts["configuration"])
    hosts = [node["hardware"]["host"] for node in facts["nodes"]]
    assert hosts in {2: (NAMES[:2], NAMES[2:]), 4: (NAMES,)}[nodes]
    check_trained_together(paths.run(1).folder, configuration, hosts, facts["code"])
    notebook = paths.notebook.read_text()
    assert f"#SBATCH --nodes={nodes}" in notebook
    assert f"RUNNING on {PREFIX}" in notebook
    return configuration


def test_a_driver_that_is_killed_leaves_its_jobs_to_the_next_and_an_interrupt_does_not(tmp_path, slurm, busy):
    place = workplace(tmp_path, study(("paddle_collective", 2), ("horovod_torch", 2)), CLUSTER)

    def numbers() -> list[str]:
        return sorted({*slurm.jobs()} - {busy})

    killed = place.start("run --no-report", busy=True)
    wait_for(lambda: len(numbers()) == 2, "two jobs")
    wait_for(lambda: len(list(place.outputs.rglob("states.txt"))) == 2, "them to be followed")
    submitted = numbers()
    killed.kill()
    killed.communicate()
    for states in place.outputs.rglob("states.txt"):
        states.unlink()
    next_one = place.start("run --no-report", busy=True)
    wait_for(lambda: len(list(place.outputs.rglob("states.txt"))) == 2, "the next controller to follow")
    slurm.command("scancel", busy)
    wait_for(lambda: {slurm.state(number) for number in submitted} == {"RUNNING"}, "the jobs to run")
    assert numbers() == submitted
    next_one.send_signal(signal.SIGINT)
    assert finish(next_one).returncode == 130
    assert slurm.jobs() == []
    assert {slurm.state(number) for number in submitted} == {"CANCELLED"}
