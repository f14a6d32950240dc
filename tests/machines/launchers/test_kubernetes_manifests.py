"""What is created in Kubernetes for a run, validated with the published schemas."""

import re
from dataclasses import replace
from typing import Any

import kubernetes_validate
import pytest
import yaml

from dlperf_study.core.errors import StudyFileError
from dlperf_study.core.paths import PROJECT
from dlperf_study.execution.planning import load_cluster
from dlperf_study.machines.cluster import Cluster
from dlperf_study.study.configuration import Configuration
from tests.machines.launchers.kubernetes_runs import VERSIONS, submission
from tests.study.examples import KUBERNETES, write
from tests.training.frameworks.launching import asynchronous, configuration

CONFIGURATIONS = {
    "all_reduce": configuration(nodes=2, devices_per_node=8),
    "parameter_server": replace(asynchronous(1), nodes=2, parameter_servers=3),
    "horovod": configuration(nodes=2, framework="horovod_torch"),
}


def manifests(configuration: Configuration, cluster: Cluster) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(submission(configuration, cluster).files["kubernetes.yaml"]))


def cluster_with(**changes: Any) -> Cluster:
    """Return the example of a cluster with other settings of Kubernetes."""
    cluster = load_cluster("kubernetes")
    return replace(cluster, settings=cluster.settings.model_copy(update=changes))


def test_horovod_is_an_mpi_job_where_the_operator_is(snapshot):
    text = submission(CONFIGURATIONS["horovod"], cluster_with(mpi_operator=True)).files["kubernetes.yaml"]
    assert text == snapshot
    job, *_ = yaml.safe_load_all(text)
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    for replicas in job["spec"]["mpiReplicaSpecs"].values():
        template = replicas["template"]
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", **template["metadata"]}, **template}
        kubernetes_validate.validate({**manifest, "spec": template["spec"]}, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("name", ["all_reduce", "parameter_server"])
def test_other_frameworks_are_jobs_all_the_same(name):
    created = manifests(CONFIGURATIONS[name], cluster_with(mpi_operator=True))
    assert {manifest["kind"] for manifest in created} >= {"Job", "Service"}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_manifests(name, snapshot):
    assert submission(CONFIGURATIONS[name], load_cluster("kubernetes")).files["kubernetes.yaml"] == snapshot


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_manifests_are_valid_in_every_supported_version(name, version):
    for manifest in manifests(CONFIGURATIONS[name], load_cluster("kubernetes")):
        kubernetes_validate.validate(manifest, version, strict=True)


def test_an_error_in_a_manifest_is_found():
    """Otherwise the silence of the last test would mean nothing."""
    job, *_ = manifests(configuration(), load_cluster("kubernetes"))
    job["spec"]["backofLimit"] = 0
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSIONS[0], strict=True)


def test_servers_have_pods_of_their_own_and_their_own_address():
    rendered = submission(CONFIGURATIONS["parameter_server"], load_cluster("kubernetes"))
    nodes = {command.name: command.node for command in rendered.commands}
    assert (rendered.job.nodes, nodes) == (
        4,
        {"server-0": 2, "server-1": 3, "server-2": 2, "trainer-0": 0, "trainer-1": 1},
    )
    parameter_servers = rendered.commands[0].environment["PADDLE_PSERVERS_IP_PORT_LIST"]
    assert parameter_servers == "{host_2}:{port_0},{host_3}:{port_1},{host_2}:{port_2}"


RDMA = {"resources": {"cpu": "8", "rdma/hca": "1"}, "ipc_lock": True, "host_network": True}


def test_trainers_have_network_cards_locked_memory_and_the_network_of_their_machine():
    pods = {}
    for manifest in manifests(CONFIGURATIONS["parameter_server"], cluster_with(**RDMA)):
        kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)
        if manifest["kind"] == "Job":
            specification = manifest["spec"]["template"]["spec"]
            pods[specification["hostname"]] = specification
    trainer, server = pods["trainer-0"], pods["server-0"]
    [container], [serving] = trainer["containers"], server["containers"]
    assert container["resources"]["limits"] == {"cpu": "8", "rdma/hca": "1", "nvidia.com/gpu": "8"}
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    assert (trainer["hostNetwork"], trainer["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    # A server may be on the machine of trainers, whose port of the communication between pods it would take.
    assert serving["resources"]["limits"] == {"cpu": "8"}
    assert "securityContext" not in serving
    assert "hostNetwork" not in server


def test_workers_of_an_mpi_job_have_them_and_its_launcher_does_not():
    cluster = cluster_with(**RDMA, mpi_operator=True)
    replicas = manifests(CONFIGURATIONS["horovod"], cluster)[0]["spec"]["mpiReplicaSpecs"]
    launcher, worker = (replicas[name]["template"]["spec"] for name in ("Launcher", "Worker"))
    assert worker["hostNetwork"]
    assert worker["containers"][0]["resources"]["limits"]["rdma/hca"] == "1"
    assert "hostNetwork" not in launcher
    assert launcher["containers"][0]["resources"]["limits"] == {}


def test_the_share_of_a_core_the_memory_and_the_disk_of_a_published_worker_are_its_limits():
    """ElasticDL's workers in Minikube: cpu=0.3, memory=2048Mi, ephemeral-storage=1024Mi."""
    published = {"cpu": "0.3", "memory": "2048Mi", "ephemeral-storage": "1024Mi"}
    cluster = replace(cluster_with(resources=published), device="cpu")
    limits = []
    for manifest in manifests(CONFIGURATIONS["parameter_server"], cluster):
        kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)
        if manifest["kind"] == "Job":
            [container] = manifest["spec"]["template"]["spec"]["containers"]
            limits.append(container["resources"]["limits"])
    assert limits
    assert all(limit == published for limit in limits)


def test_a_count_of_devices_needs_no_quotes(tmp_path):
    text = KUBERNETES.replace("memory: 16Gi", "memory: 16Gi, rdma/hca: 1") + "  ipc_lock: true\n"
    settings = load_cluster(write(tmp_path, text)).settings
    assert settings.resources == {"cpu": "8", "memory": "16Gi", "rdma/hca": "1"}
    assert (settings.ipc_lock, settings.host_network) == (True, False)


def test_a_framework_without_an_image_is_refused(refused):
    with refused(StudyFileError):
        submission(configuration(), cluster_with(images={"torch_ddp": "torch:1"}))


@pytest.mark.parametrize("recipe", sorted((PROJECT / "images").glob("*.Dockerfile")), ids=lambda recipe: recipe.stem)
def test_an_image_is_made_of_what_there_is(recipe):
    text = recipe.read_text()
    copied = [word for line in re.findall(r"^COPY (.*)$", text, re.MULTILINE) for word in line.split()[:-1]]
    assert copied
    assert [name for name in copied if not (PROJECT / name).exists()] == []
    kept = (PROJECT / ".dockerignore").read_text().splitlines()
    assert [name for name in copied if f"!{name}" not in kept] == []
    assert f"docker build -f images/{recipe.name} " in text
