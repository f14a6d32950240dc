"""What each framework asks to be started, and why it refuses. Nothing is started here."""

import json
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from dlperf_study.core.paths import PROJECT
from dlperf_study.machines.cluster import Cluster
from dlperf_study.training import frameworks
from dlperf_study.training.frameworks._horovod import GPUS_OF_NODES, show_gpus_of_node
from dlperf_study.training.questions import described
from tests.training.frameworks.launching import asynchronous, configuration

PYTHON = dict.fromkeys(frameworks.names(), "python")
CPUS = Cluster("cpus", nodes=2, devices_per_node=4, device="cpu", device_name="a CPU", launcher="local", python=PYTHON)
GPUS = replace(CPUS, device="gpu", device_name="a GPU")
DDP, HOROVOD = configuration(framework="torch_ddp"), configuration(framework="horovod_torch")
MIRRORED = configuration(framework="tensorflow_mirrored", memory_format="nhwc")
HOROVOD_TENSORFLOW = replace(MIRRORED, framework="horovod_tensorflow")
SERVED = replace(MIRRORED, framework="tensorflow_ps", strategy="sync", parameter_servers=1)
LOCAL = configuration(framework="paddle_ps", strategy="local")


@pytest.mark.parametrize(
    ("name", "asked", "cluster"),
    [
        ("all_reduce-one_process", configuration(), CPUS),
        ("all_reduce-two_nodes", configuration(nodes=2, devices_per_node=4, threads_per_device=2), CPUS),
        ("all_reduce-gpus", configuration(devices_per_node=2), GPUS),
        ("torch_ddp-two_nodes", replace(DDP, nodes=2, devices_per_node=4), CPUS),
        ("torch_ddp-gpus", replace(DDP, devices_per_node=2), GPUS),
        ("horovod-one_process", HOROVOD, CPUS),
        ("horovod-two_nodes", replace(HOROVOD, nodes=2, fusion_mib=64, cycle_time_ms=0.5), CPUS),
        ("horovod-gpus", replace(HOROVOD, nodes=2, devices_per_node=2, fusion_mib=0, hierarchical=True), GPUS),
        ("horovod_tensorflow-two_nodes", replace(HOROVOD_TENSORFLOW, nodes=2, fusion_mib=64), CPUS),
        ("horovod_tensorflow-gpus", replace(HOROVOD_TENSORFLOW, nodes=2, devices_per_node=2, hierarchical=True), GPUS),
        ("tensorflow_mirrored-two_nodes", replace(MIRRORED, nodes=2, devices_per_node=2), CPUS),
        ("tensorflow_ps-two_nodes", replace(SERVED, nodes=2, parameter_servers=3), CPUS),
        ("tensorflow_mirrored-gpus", replace(MIRRORED, nodes=2, devices_per_node=2, memory_format="nchw"), GPUS),
        ("tensorflow_ps-gpus", replace(SERVED, devices_per_node=2), GPUS),
        ("parameter_server-local", LOCAL, CPUS),
        ("parameter_server-two_nodes", replace(asynchronous(2), nodes=2, parameter_servers=3), CPUS),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_jobs(name, asked, cluster, snapshot):
    job = frameworks.load(asked.framework).job(asked, cluster)
    assert json.dumps(asdict(job), indent=1) == snapshot


def test_horovod_shows_a_rank_the_gpus_of_its_own_node():
    environment = {"CUDA_VISIBLE_DEVICES": "4,5", GPUS_OF_NODES: "4,5 GPU-7f,GPU-81", "HOROVOD_CROSS_RANK": "1"}
    show_gpus_of_node(environment)
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-7f,GPU-81"
    alone = {"CUDA_VISIBLE_DEVICES": "4,5"}
    show_gpus_of_node(alone)
    assert alone["CUDA_VISIBLE_DEVICES"] == "4,5"


def test_a_job_has_the_packages_and_variables_of_its_own_parts_and_imports_no_others():
    program = (
        "import sys; from tests.training.frameworks.test_jobs import *\n"
        "asked = configuration()\n"
        "from dlperf_study.training.questions import described\n"
        "job = described(frameworks.load(asked.framework).job(asked, CPUS), asked, '')\n"
        "print(job.packages, 'TF_XLA_' in job.variables.prefixes)\n"
        "print([name for name in sys.modules if name.startswith('dlperf_study.training') and name.endswith(OTHERS)])\n"
    )
    prepared = program.replace("OTHERS", "('dali', 'tensorflow', 'torch_ddp', 'zmq')")
    done = subprocess.run([sys.executable, "-c", prepared], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["('paddlepaddle-gpu', 'paddlepaddle') False", "[]"]
    job = described(frameworks.load("horovod_torch").job(HOROVOD, CPUS), HOROVOD, "")
    assert job.packages == ("horovod", "torch")
    assert {*job.libraries} == {"horovod", "torch"}
    assert "HOROVOD_" in job.variables.prefixes
