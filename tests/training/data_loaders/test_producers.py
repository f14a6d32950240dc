"""The tasks that make the batches of ranks, added to the job of any framework."""

from dataclasses import replace

import pytest

from dlperf_study.machines.cluster import Cluster
from dlperf_study.study.job import TaskRole
from dlperf_study.training import data_loaders, frameworks
from dlperf_study.training.data_loaders._producers import ENDPOINTS_VARIABLE, add_producers, producer_endpoint
from tests.training.frameworks.launching import configuration

CLUSTER = Cluster("four", 4, 4, "cpu", "a CPU", "ssh")


@pytest.mark.parametrize("framework", ["paddle_collective", "torch_ddp", "horovod_torch"])
@pytest.mark.parametrize(("remote", "nodes"), [(False, [0, 0, 1, 1]), (True, [1, 1, 0, 0])])
def test_every_rank_has_a_producer_on_its_node_or_on_the_next(framework, remote, nodes):
    """There are two ranks on each of two nodes."""
    trained = replace(configuration(devices_per_node=2), framework=framework, nodes=2, remote_producers=remote)
    job = frameworks.load(framework).job(trained, CLUSTER)
    with_them = add_producers(job, trained)
    assert len(with_them.tasks) == len(job.tasks) + 4
    producers = with_them.tasks[-4:]
    assert [task.name for task in producers] == ["producer-0", "producer-1", "producer-2", "producer-3"]
    assert [task.node for task in producers] == nodes
    assert {task.role for task in producers} == {TaskRole.SERVER}
    # The two of a node listen on different ports, which come after those of the framework.
    ports = [f"{{port_{job.ports}}}", f"{{port_{job.ports + 1}}}"] * 2
    endpoints = [f"{{server_host_{node}}}:{port}" for node, port in zip(nodes, ports, strict=True)]
    assert [task.argv[-2:] for task in producers] == [(str(rank), endpoints[rank]) for rank in range(4)]
    assert with_them.ports == job.ports + 2
    for task in with_them.tasks:
        assert task.environment[ENDPOINTS_VARIABLE] == ",".join(endpoints)


def test_a_rank_finds_the_endpoint_of_its_producer(monkeypatch):
    monkeypatch.setenv(ENDPOINTS_VARIABLE, "10.0.0.1:5,10.0.0.2:5")
    assert [producer_endpoint(rank) for rank in (0, 1)] == ["10.0.0.1:5", "10.0.0.2:5"]


def test_a_remote_producer_needs_another_node():
    with_remote_producers = replace(configuration(), data_loader="zmq", remote_producers=True)
    obstacles = data_loaders.load("zmq").obstacles
    assert list(obstacles(with_remote_producers, "paddle")) == ["remote_producers needs nodes of at least 2"]
    assert list(obstacles(replace(with_remote_producers, nodes=2), "paddle")) == []


def test_sources_of_images_need_a_set():
    for name in ("files", "dali"):
        obstacles = data_loaders.load(name).obstacles
        requested = configuration(data_loader=name)
        assert list(obstacles(requested, "paddle")) == [f"data_loader {name} needs an image_dataset"]
        assert list(obstacles(replace(requested, image_dataset="pictures"), "paddle")) == []
