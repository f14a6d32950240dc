"""What is said about a cluster file with a mistake in it: the file, the key, the value, and what would be right."""

import pytest

from dlperf_study import launchers
from dlperf_study.cluster.cluster_file import read_cluster
from dlperf_study.errors import StudyFileError
from dlperf_study.execution.support import load_cluster
from tests.nvidia_smi import two_a100
from tests.study.examples import CLUSTER, KUBERNETES, LOCAL, SLURM, SSH, write

MISTAKES = [
    (("nodes: 4", "nodes: 0"), "nodes is 0; it must be at least 1"),
    (("device: gpu", "device: tpu"), "device is 'tpu'; the choices are 'cpu', 'gpu' or 'auto'"),
    (
        ("devices_per_node: 8", "devices_per_node: many"),
        "devices_per_node is 'many'; it must be an integer from 1 to 4096, or auto",
    ),
    (
        ("wait_seconds", "wait"),
        "unknown key idle.wait; did you mean wait_seconds? the keys are max_busy_cores, wait_seconds",
    ),
    (("15.7e12", "fast"), "device_peak_flops is 'fast', which is not a number"),
    (("15.7e12", "0"), "device_peak_flops is 0; it must be at least 1000000.0"),
    (("15.7e12", "-15.7e12"), "device_peak_flops is -15700000000000.0; it must be at least 1000000.0"),
    (("15.7e12", "15.7"), "device_peak_flops is 15.7; it must be at least 1000000.0"),
    (("15.7e12", "true"), "device_peak_flops is true, which is not a number"),
    (("15.7e12", "{half: 125e12}"), "unknown key device_peak_flops.half; the keys are fp32, tf32, fp16, bf16"),
    (("15.7e12", "{fp16: 125}"), "device_peak_flops.fp16 is 125; it must be at least 1000000.0"),
    (("15.7e12", "{fp16: fast}"), "device_peak_flops.fp16 is 'fast', which is not a number"),
    (("nodes: 4", "nodes: 1000000000"), "nodes is 1000000000; it must be at most 10000"),
    (("nodes: 4", "nodes: 1_000"), "nodes is '1_000', which is not an integer"),
    (("nodes: 4", "nodes: 1:30"), "nodes is '1:30', which is not an integer"),
    (("wait_seconds: 60", "wait_seconds: 1e9"), "idle.wait_seconds is 1000000000.0; it must be at most 86400.0"),
    (
        ("devices_per_node: 8", "devices_per_node: 99999"),
        "devices_per_node is 99999; it must be an integer from 1 to 4096, or auto",
    ),
    (("/opt/horovod/bin/python", "3"), "python.horovod_torch is 3, which is not a string"),
    (
        ("devices_per_node: 8", "devices_per_node: auto"),
        "devices_per_node can't be auto with launcher slurm; only launcher local can ask",
    ),
]


@pytest.mark.parametrize(("change", "message"), MISTAKES)
def test_a_mistake_gives_one_message(tmp_path, change, message):
    assert change[0] in CLUSTER
    file = write(tmp_path, CLUSTER.replace(*change))
    with pytest.raises(StudyFileError) as caught:
        load_cluster(file)
    assert str(caught.value) == f"{file}: {message}"


@pytest.mark.parametrize(
    ("text", "change", "message"),
    [
        (
            SSH,
            ("hosts: [node1, admin@10.11.0.3]", "nodes: 2"),
            "hosts is missing; launcher ssh needs one name per node",
        ),
        (SSH, ("admin@10.11.0.3", "node1"), "hosts has node1 twice"),
        (SSH, ("[node1, admin@10.11.0.3]", "[node1]\nnodes: 2"), "nodes is 2, but hosts has 1"),
        (
            SSH,
            ("[node1,", "[-oProxyCommand=x,"),
            "hosts[0] is '-oProxyCommand=x'; it must be a host name, an address, or a name of the ssh configuration",
        ),
        (
            SSH,
            ("launcher: ssh", "launcher: local"),
            "hosts is for launcher ssh; launcher local finds its nodes itself\n"
            "{file}: shared_files is false; with launcher local it is always true",
        ),
        (
            SSH,
            ("shared_files: false\n", ""),
            "shared_files is missing; is outputs/ the same folder on every node (true or false)?",
        ),
        (
            SSH,
            ("work_folder: /scratch", "work_folder: scratch"),
            "work_folder is 'scratch'; it must be an absolute path",
        ),
        (SSH, ("/data/imagenet", "imagenet"), "image_sets.imagenet is 'imagenet'; it must be an absolute path"),
        (
            SSH,
            ("eth0", "eth 0"),
            "network_interface is 'eth 0'; it must be the name of a network interface, as `ip link` shows it",
        ),
        (SSH, ("{NCCL_DEBUG: INFO}", "{NCCL_DEBUG: 1}"), "environment.NCCL_DEBUG is 1, which is not a string"),
        (
            SSH,
            ("[LM_LICENSE_FILE]", "['A=B']"),
            "pass_environment[0] is 'A=B'; it must be the name of an environment variable",
        ),
        (
            SSH,
            ("container:", "ssh: {config_file: nowhere}\ncontainer:"),
            "ssh.config_file is 'nowhere'; there is no file {folder}/nowhere",
        ),
        (SSH, ("container:", "slurm: {}\ncontainer:"), "slurm is a section for launcher slurm; the launcher is ssh"),
        (CLUSTER, ("nodes: 4\n", ""), "nodes is missing"),
        (LOCAL, ("nodes: 1", "nodes: 2"), "nodes is 2; launcher local has one node, this machine"),
        (
            CLUSTER,
            ("nodes: 4", "nodes: 4\nshared_files: false"),
            "shared_files is false; with launcher slurm it is always true",
        ),
        (
            SLURM,
            ("--exclusive", "exclusive"),
            "slurm.options[0] is 'exclusive'; it must be one option of sbatch, as --constraint=v100",
        ),
        (SLURM, ("--exclusive", "--nodes=2"), "slurm.options[0] is '--nodes=2'; --nodes is set by this package"),
        (SLURM, ("--exclusive", "-t5"), "slurm.options[0] is '-t5'; -t is set by this package"),
        (
            SLURM,
            ("dgx", r'"dgx\nexit 0"'),
            r"slurm.partition is 'dgx\nexit 0'; it must be a name of Slurm: letters, digits and _ . , : + -",
        ),
        (SLURM, ("--exclusive", "--outp=x"), "slurm.options[0] is '--outp=x'; --output is set by this package"),
        (
            SSH,
            ("[node1,", "[-F@node1,"),
            "hosts[0] is '-F@node1'; it must be a host name, an address, or a name of the ssh configuration",
        ),
        (
            SLURM,
            ("partition", "partitoin"),
            "unknown key slurm.partitoin; did you mean partition? the keys are partition, "
            "account, options, jobs_in_queue, start_within_seconds, poll_seconds",
        ),
        (KUBERNETES, ("images: {default: dlperf:1, torch_ddp: torch:1}", "context: x"), "kubernetes.images is missing"),
        (
            KUBERNETES,
            ("16Gi", "lots"),
            'kubernetes.resources.memory is \'lots\'; it must be a Kubernetes quantity in quotes, as "16" or "64Gi"',
        ),
        (KUBERNETES, ("[/data]", "[data]"), "kubernetes.host_paths[0] is 'data'; it must be an absolute path"),
    ],
)
def test_what_a_launcher_needs_and_lacks_gives_one_line_each(tmp_path, text, change, message):
    assert change[0] in text
    file = write(tmp_path, text.replace(*change))
    with pytest.raises(StudyFileError) as caught:
        load_cluster(file)
    expected = message.replace("{folder}", str(tmp_path)).replace("{file}", str(file))
    assert str(caught.value) == f"{file}: {expected}"


def test_kubernetes_without_its_section_is_told_what_is_missing(tmp_path):
    text = KUBERNETES.partition("kubernetes:\n")[0]
    with pytest.raises(StudyFileError, match="kubernetes is missing; launcher kubernetes needs its images"):
        load_cluster(write(tmp_path, text))


def test_gpus_asked_for_where_there_are_none_are_an_error(tmp_path, monkeypatch):
    two_a100(tmp_path, monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(StudyFileError, match="device is gpu, but nvidia-smi finds no GPU on this machine"):
        load_cluster(write(tmp_path, LOCAL))


@pytest.mark.parametrize(("text", "right", "wrong"), [(SSH, "ssh", "shh"), (LOCAL, "local", "locl")])
def test_a_misspelt_launcher_is_said_before_what_follows_from_it(tmp_path, text, right, wrong):
    file = write(tmp_path, text.replace(f"launcher: {right}", f"launcher: {wrong}") + "ssh: {}\n")
    with pytest.raises(StudyFileError) as caught:
        read_cluster(file, {name: launchers.load(name) for name in ("local", "ssh")})
    assert str(caught.value) == f"{file}: launcher is '{wrong}'; did you mean {right}? the launchers are local, ssh"


def test_a_missing_cluster_lists_those_there_are():
    with pytest.raises(StudyFileError, match=r"there is no cluster 'locl'; did you mean local\? params/clusters has "):
        load_cluster("locl")


def test_the_name_of_a_study_in_place_of_a_cluster_is_called_one():
    with pytest.raises(StudyFileError, match="there is no cluster 'one_gpu'; it is a study; params/clusters has "):
        load_cluster("one_gpu")


def test_a_path_that_is_not_there_is_called_a_file(tmp_path):
    write(tmp_path, CLUSTER, "nodes")
    with pytest.raises(StudyFileError) as caught:
        load_cluster(f"{tmp_path}/node.yaml")
    assert str(caught.value) == (
        f"there is no file {tmp_path}/node.yaml; did you mean {tmp_path}/nodes.yaml? "
        "give a path, or a name in params/clusters"
    )
    with pytest.raises(StudyFileError, match="there is no file nowhere/at_all; give a path"):
        load_cluster("nowhere/at_all")
