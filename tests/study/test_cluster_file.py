import sys

import pytest

from dlperf_study.errors import StudyFileError
from dlperf_study.study import cluster_file
from dlperf_study.study.cluster_file import load_cluster
from dlperf_study.study.this_machine import cpu_name, gpu_names, usable_cpus
from tests.study.examples import write

CLUSTER = """\
launcher: slurm
nodes: 4
devices_per_node: 8
device: gpu
device_name: Tesla V100-SXM2-16GB
device_peak_flops: 15.7e12
link: 100 Gbit/s InfiniBand
idle: {wait_seconds: 60}
python: {horovod_torch: /opt/horovod/bin/python}
"""


def test_a_cluster_file_becomes_a_cluster(tmp_path):
    file = write(tmp_path, CLUSTER, "v100")
    cluster = load_cluster(file)
    assert (cluster.name, cluster.launcher, cluster.nodes, cluster.devices_per_node) == (str(file), "slurm", 4, 8)
    assert (cluster.device, cluster.device_name, cluster.device_peak_flops) == ("gpu", "Tesla V100-SXM2-16GB", 15.7e12)
    assert (cluster.link, cluster.idle_max_busy_cores, cluster.idle_wait_seconds) == ("100 Gbit/s InfiniBand", 0.5, 60)


def test_a_framework_has_the_python_the_file_names_or_this_one(tmp_path):
    cluster = load_cluster(write(tmp_path, CLUSTER))
    assert cluster.python_for("horovod_torch") == "/opt/horovod/bin/python"
    assert cluster.python_for("paddle_collective") == sys.executable


def test_local_is_this_machine():
    cluster = load_cluster("local")
    gpus = gpu_names()
    assert (cluster.name, cluster.launcher, cluster.nodes) == ("local", "local", 1)
    assert cluster.device == ("gpu" if gpus else "cpu")
    assert cluster.devices_per_node == (len(gpus) or usable_cpus())
    assert cluster.device_name == (gpus[0] if gpus else cpu_name())


LOCAL = CLUSTER.replace("slurm", "local").replace("devices_per_node: 8", "devices_per_node: auto")


def test_auto_counts_gpus(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_file, "gpu_names", lambda: ["A GPU", "A GPU"])
    text = LOCAL.replace("device: gpu", "device: auto").replace("Tesla V100-SXM2-16GB", "auto")
    cluster = load_cluster(write(tmp_path, text))
    assert (cluster.device, cluster.devices_per_node, cluster.device_name) == ("gpu", 2, "A GPU")


def test_gpus_asked_for_where_there_are_none_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_file, "gpu_names", list)
    with pytest.raises(StudyFileError, match="device is gpu, but nvidia-smi finds no GPU on this machine"):
        load_cluster(write(tmp_path, LOCAL))


MISTAKES = [
    (("nodes: 4", "nodes: 0"), "nodes is 0; it must be at least 1"),
    (("device: gpu", "device: tpu"), "device is 'tpu'; the choices are 'cpu', 'gpu' or 'auto'"),
    (
        ("devices_per_node: 8", "devices_per_node: many"),
        "devices_per_node is 'many'; it must be a whole number from 1 to 4096, or auto",
    ),
    (
        ("wait_seconds", "wait"),
        "unknown key idle.wait; the keys are max_busy_cores, wait_seconds",
    ),
    (("15.7e12", "fast"), "device_peak_flops is 'fast', which is not a number"),
    (("15.7e12", "0"), "device_peak_flops is 0; it must be at least 1000000.0"),
    (("15.7e12", "-15.7e12"), "device_peak_flops is -15700000000000.0; it must be at least 1000000.0"),
    (("15.7e12", "15.7"), "device_peak_flops is 15.7; it must be at least 1000000.0"),
    (("15.7e12", "true"), "device_peak_flops is True, which is not a number"),
    (("nodes: 4", "nodes: 1000000000"), "nodes is 1000000000; it must be at most 10000"),
    (("nodes: 4", "nodes: 1_000"), "nodes is '1_000', which is not a whole number"),
    (("nodes: 4", "nodes: 1:30"), "nodes is '1:30', which is not a whole number"),
    (("wait_seconds: 60", "wait_seconds: 1e9"), "idle.wait_seconds is 1000000000.0; it must be at most 86400.0"),
    (
        ("devices_per_node: 8", "devices_per_node: 99999"),
        "devices_per_node is 99999; it must be a whole number from 1 to 4096, or auto",
    ),
    (("/opt/horovod/bin/python", "3"), "python.horovod_torch is 3, which is not a text"),
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


def test_a_misspelt_local_is_recognised(tmp_path):
    with pytest.raises(StudyFileError, match=r"with launcher locl; did you mean local\? only launcher local can ask"):
        load_cluster(write(tmp_path, LOCAL.replace("launcher: local", "launcher: locl")))


def test_a_missing_cluster_lists_those_there_are():
    with pytest.raises(StudyFileError, match=r"there is no cluster 'locl'; did you mean local\? params/clusters has "):
        load_cluster("locl")


def test_a_path_may_be_given_as_text(tmp_path):
    file = write(tmp_path, CLUSTER, "v100")
    assert load_cluster(str(file)).name == str(file)
