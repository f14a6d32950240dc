"""What a cluster file becomes: the cluster, and the examples that come with the package."""

import re
import sys

import pytest

from dlperf_study.core.paths import PROJECT
from dlperf_study.core.wording import counted
from dlperf_study.execution.planning import load_cluster
from dlperf_study.machines import launchers
from dlperf_study.machines.cluster.hardware import cpu_name, usable_cpus
from dlperf_study.machines.launchers.ssh import SshSettings
from dlperf_study.machines.node_agent.submission import render_submission
from dlperf_study.machines.slurm.script import SlurmSettings
from dlperf_study.study.job import Job, Task, TaskRole
from dlperf_study.training.image_datasets._photographs import made_image_datasets
from tests.nvidia_smi import A100, UUIDS, two_a100
from tests.shell_program import program
from tests.study.examples import CLUSTER, KUBERNETES, LOCAL, SLURM, SSH, write
from tests.training.frameworks.launching import configuration


def test_a_cluster_file_becomes_a_cluster(tmp_path):
    file = write(tmp_path, CLUSTER, "v100")
    cluster = load_cluster(file)
    assert (cluster.name, cluster.launcher, cluster.nodes, cluster.devices_per_node) == (str(file), "slurm", 4, 8)
    assert (cluster.device, cluster.device_name, cluster.device_peak_flops) == ("gpu", "Tesla V100-SXM2-16GB", 15.7e12)
    assert (cluster.interconnect, cluster.idle_max_busy_cores, cluster.idle_wait_seconds) == (
        "100 Gbit/s InfiniBand",
        0.5,
        60,
    )


def test_the_peak_of_a_device_may_depend_on_the_number_format(tmp_path):
    file = write(tmp_path, CLUSTER.replace("15.7e12", "{fp32: 15.7e12, fp16: 125e12}"))
    assert load_cluster(file).device_peak_flops == {"fp32": 15.7e12, "fp16": 125e12}


def test_a_cluster_file_says_how_long_a_start_and_an_exchange_may_take(tmp_path):
    limits = "start_up: {meet_seconds: 600, collective_seconds: 45.5}\n"
    cluster = load_cluster(write(tmp_path, CLUSTER + limits))
    assert (cluster.ready_seconds, cluster.meet_seconds, cluster.collective_seconds) == (180, 600, 45.5)
    submission = render_submission("slurm", Job((Task("t", TaskRole.TRAINER, 0, ("python",)),)), cluster, tmp_path)
    [command] = submission.commands
    assert command.environment == {"DLPERF_STUDY_MEET_SECONDS": "600", "DLPERF_STUDY_COLLECTIVE_SECONDS": "45.5"}


def test_local_is_this_machine(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    cluster = load_cluster("local")
    assert (cluster.name, cluster.launcher, cluster.nodes) == ("local", "local", 1)
    assert (cluster.device, cluster.devices_per_node) == ("cpu", usable_cpus())
    assert (cluster.device_name, cluster.why_not_gpu) == (cpu_name(), "")


def test_this_machine_may_have_fewer_devices_than_its_cluster_file(tmp_path):
    file = write(tmp_path, LOCAL.replace("device: gpu", "device: cpu").replace("auto", "4096"), "mine")
    too_many = configuration(devices_per_node=usable_cpus() + 1)
    reasons = list(load_cluster(file).obstacles(too_many))
    cores = counted(usable_cpus(), "core")
    assert reasons == [
        f"needs {usable_cpus() + 1} devices on a node; this machine has {cores}, but the cluster file has "
        "devices_per_node: 4096"
    ]
    assert not list(load_cluster(file).obstacles(configuration(devices_per_node=1)))


@pytest.mark.parametrize(("allowed", "count"), [(None, 2), ("1", 1), (f"{UUIDS[1]},{UUIDS[0]}", 2), ("GPU-5f1c", 1)])
def test_auto_counts_gpus(tmp_path, monkeypatch, allowed, count):
    two_a100(tmp_path, monkeypatch)
    environment = f"environment: {{CUDA_VISIBLE_DEVICES: '{allowed}'}}\n" if allowed else ""
    text = LOCAL.replace("Tesla V100-SXM2-16GB", "auto").replace("100 Gbit/s InfiniBand", "auto")
    cluster = load_cluster(write(tmp_path, text + environment))
    assert (cluster.device, cluster.devices_per_node, cluster.device_name) == ("gpu", count, A100)
    assert cluster.interconnect == ("NVLink (NV12)" if count == 2 else "loopback")


def test_with_libraries_for_cpus_auto_is_the_cpu_of_a_machine_with_gpus(tmp_path, monkeypatch, snapshot):
    two_a100(tmp_path, monkeypatch)
    cluster = load_cluster("local", ["paddle_collective", "paddle_ps"])
    assert (cluster.device, cluster.devices_per_node, cluster.device_name) == ("cpu", usable_cpus(), cpu_name())
    assert cluster.interconnect == "loopback"
    assert cluster.why_not_gpu == snapshot


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_no_library_is_imported_where_nothing_looks_like_a_gpu(tmp_path, monkeypatch, device):
    two_a100(tmp_path, monkeypatch)
    if device == "auto":
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    broken = program(tmp_path, "touch $0-started; exit 1")
    text = LOCAL.replace("device: gpu", f"device: {device}") + f"python: {{paddle_collective: {broken}}}\n"
    text = text.replace("python: {horovod_torch: /opt/horovod/bin/python}\n", "")
    assert load_cluster(write(tmp_path, text), ["paddle_collective"]).device == "cpu"
    assert not (tmp_path / "python-started").exists()


def test_hosts_are_the_nodes_of_ssh(tmp_path):
    cluster = load_cluster(write(tmp_path, SSH))
    assert (cluster.nodes, cluster.hosts, cluster.shared_files) == (2, ("node1", "admin@10.11.0.3"), False)
    assert (cluster.work_folder, cluster.network_interface) == ("/scratch", "eth0")
    assert (cluster.environment, cluster.pass_environment) == ({"NCCL_DEBUG": "INFO"}, ("LM_LICENSE_FILE",))
    assert cluster.container == ("apptainer", "exec", "image.sif")
    assert cluster.image_datasets == {**made_image_datasets(), "imagenet": "/data/imagenet"}
    assert cluster.settings == SshSettings()
    assert load_cluster(write(tmp_path, SSH + "nodes: 1\n")).nodes == 1


def test_a_file_named_in_a_section_lies_beside_the_cluster_file(tmp_path):
    (tmp_path / "ssh_config").touch()
    cluster = load_cluster(write(tmp_path, SSH + "ssh: {config_file: ssh_config}\n"))
    assert cluster.settings.config_file == str(tmp_path / "ssh_config")


def test_what_slurm_is_told(tmp_path):
    cluster = load_cluster(write(tmp_path, SLURM))
    assert cluster.settings == SlurmSettings(partition="dgx", options=["--exclusive"], jobs_in_queue=2)
    assert cluster.shared_files


def test_what_kubernetes_is_told(tmp_path):
    cluster = load_cluster(write(tmp_path, KUBERNETES))
    assert cluster.settings.resources == {"cpu": "8", "memory": "16Gi"}
    assert cluster.settings.host_paths == ["/data"]
    assert launchers.load("kubernetes").image(cluster, "torch_ddp") == "torch:1"
    assert launchers.load("kubernetes").image(cluster, "paddle_ps") == "dlperf:1"
    assert not cluster.shared_files
    assert cluster.python_for("torch_ddp") == "python", "that of the image"


def test_a_framework_has_its_own_python_or_the_default_or_this_one(tmp_path):
    assert load_cluster(write(tmp_path, CLUSTER)).python_for("paddle_collective") == sys.executable
    text = CLUSTER.replace("python: {", "python: {default: /opt/all/bin/python, ")
    cluster = load_cluster(write(tmp_path, text))
    assert cluster.python_for("horovod_torch") == "/opt/horovod/bin/python"
    assert cluster.python_for("torch_ddp") == cluster.agent_python == "/opt/all/bin/python"


@pytest.mark.parametrize("name", ["ssh", "slurm", "kubernetes"])
def test_the_examples_are_the_cluster_of_the_published_studies(name):
    cluster = load_cluster(name)
    assert (cluster.name, cluster.launcher, cluster.nodes, cluster.devices_per_node) == (name, name, 4, 8)
    assert (cluster.device, cluster.device_name) == ("gpu", "Tesla V100-SXM2-16GB")


def test_a_file_of_ours_has_its_name_also_by_its_path(monkeypatch):
    monkeypatch.chdir(PROJECT)
    assert load_cluster("params/clusters/ssh.yaml").name == "ssh"
    cluster = load_cluster("cpu_hosts")
    assert (cluster.launcher, cluster.device, cluster.nodes, cluster.shared_files) == ("ssh", "cpu", 2, False)


def test_a_path_may_be_given_as_text_and_its_file_is_the_title(tmp_path):
    file = write(tmp_path, CLUSTER, "v100")
    cluster = load_cluster(str(file))
    assert (cluster.name, cluster.title, load_cluster("ssh").title) == (str(file), "v100", "ssh")


@pytest.mark.parametrize("name", ["local", "cpu_hosts", "ssh", "slurm", "kubernetes"])
def test_an_example_shows_how_the_images_of_the_studies_are_named(tmp_path, name):
    text = (PROJECT / "params" / "clusters" / f"{name}.yaml").read_text()
    given = re.sub(r"^# (image_datasets:|  (cifar10|imagenet|imagenet_100):)", r"\1", text, flags=re.MULTILINE)
    folders = {
        "cifar10": "/data/cifar-10-batches-py",
        "imagenet": "/data/imagenet",
        "imagenet_100": "/data/imagenet_100",
    }
    assert load_cluster(write(tmp_path, given, name)).image_datasets == {**made_image_datasets(), **folders}
