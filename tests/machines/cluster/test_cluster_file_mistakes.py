"""What is said about a cluster file with a mistake in it: the file, the key, the value, and what would be right."""

import pytest

from dlperf_study.core.errors import StudyFileError
from dlperf_study.execution.planning import load_cluster
from dlperf_study.machines import launchers
from dlperf_study.machines.cluster.cluster_file import read_cluster
from tests.nvidia_smi import two_a100
from tests.study.examples import CLUSTER, KUBERNETES, LOCAL, SLURM, SSH, write

#: A valid file, what of it is replaced, and by what.
MISTAKES = [
    (CLUSTER, "nodes: 4", "nodes: 0"),
    (CLUSTER, "device: gpu", "device: tpu"),
    (CLUSTER, "devices_per_node: 8", "devices_per_node: many"),
    (CLUSTER, "wait_seconds", "wait"),
    (CLUSTER, "15.7e12", "fast"),
    (CLUSTER, "15.7e12", "0"),
    (CLUSTER, "15.7e12", "-15.7e12"),
    (CLUSTER, "15.7e12", "15.7"),
    (CLUSTER, "15.7e12", "true"),
    (CLUSTER, "15.7e12", "{half: 125e12}"),
    (CLUSTER, "15.7e12", "{fp16: 125}"),
    (CLUSTER, "15.7e12", "{fp16: fast}"),
    (CLUSTER, "nodes: 4", "nodes: 1000000000"),
    (CLUSTER, "nodes: 4", "nodes: 1_000"),
    (CLUSTER, "nodes: 4", "nodes: 1:30"),
    (CLUSTER, "wait_seconds: 60", "wait_seconds: 1e9"),
    (CLUSTER, "devices_per_node: 8", "devices_per_node: 99999"),
    (CLUSTER, "/opt/horovod/bin/python", "3"),
    (CLUSTER, "devices_per_node: 8", "devices_per_node: auto"),
    (CLUSTER, "nodes: 4\n", ""),
    (CLUSTER, "nodes: 4", "nodes: 4\nshared_files: false"),
    (LOCAL, "nodes: 1", "nodes: 2"),
    (SSH, "hosts: [node1, admin@10.11.0.3]", "nodes: 2"),
    (SSH, "admin@10.11.0.3", "node1"),
    (SSH, "[node1, admin@10.11.0.3]", "[node1]\nnodes: 2"),
    (SSH, "[node1,", "[-oProxyCommand=x,"),
    (SSH, "launcher: ssh", "launcher: local"),
    (SSH, "shared_files: false\n", ""),
    (SSH, "work_folder: /scratch", "work_folder: scratch"),
    (SSH, "/data/imagenet", "imagenet"),
    (SSH, "eth0", "eth 0"),
    (SSH, "{NCCL_DEBUG: INFO}", "{NCCL_DEBUG: 1}"),
    (SSH, "[LM_LICENSE_FILE]", "['A=B']"),
    (SSH, "container:", "ssh: {config_file: nowhere}\ncontainer:"),
    (SSH, "container:", "slurm: {}\ncontainer:"),
    (SSH, "[node1,", "[-F@node1,"),
    (SLURM, "--exclusive", "exclusive"),
    (SLURM, "--exclusive", "--nodes=2"),
    (SLURM, "--exclusive", "-t5"),
    (SLURM, "dgx", '"dgx\\nexit 0"'),
    (SLURM, "--exclusive", "--outp=x"),
    (SLURM, "partition", "partitoin"),
    (KUBERNETES, "images: {default: dlperf:1, torch_ddp: torch:1}", "context: x"),
    (KUBERNETES, "16Gi", "lots"),
    (KUBERNETES, "[/data]", "[data]"),
]


@pytest.mark.parametrize(("text", "right", "wrong"), MISTAKES)
def test_a_mistake_gives_one_line(tmp_path, refused, text, right, wrong):
    assert right in text
    with refused(StudyFileError):
        load_cluster(write(tmp_path, text.replace(right, wrong)))


def test_kubernetes_without_its_section_is_told_what_is_missing(tmp_path, refused):
    with refused(StudyFileError):
        load_cluster(write(tmp_path, KUBERNETES.partition("kubernetes:\n")[0]))


def test_gpus_asked_for_where_there_are_none_are_an_error(tmp_path, monkeypatch, refused):
    two_a100(tmp_path, monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with refused(StudyFileError):
        load_cluster(write(tmp_path, LOCAL))


@pytest.mark.parametrize(("text", "right", "wrong"), [(SSH, "ssh", "shh"), (LOCAL, "local", "locl")])
def test_a_misspelt_launcher_is_said_before_what_follows_from_it(tmp_path, refused, text, right, wrong):
    file = write(tmp_path, text.replace(f"launcher: {right}", f"launcher: {wrong}") + "ssh: {}\n")
    with refused(StudyFileError):
        read_cluster(file, {name: launchers.load(name) for name in ("local", "ssh")}, {}, lambda *_: "")


@pytest.mark.parametrize("name", ["locl", "one_gpu", "{folder}/node.yaml", "nowhere/at_all"])
def test_a_cluster_that_is_not_there_is_told_apart_from_a_study_and_a_file(tmp_path, refused, name):
    write(tmp_path, CLUSTER, "nodes")
    with refused(StudyFileError):
        load_cluster(name.format(folder=tmp_path))
