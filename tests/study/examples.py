"""A small valid study and cluster as a file's content, and as a file."""

from pathlib import Path
from textwrap import dedent

from dlperf_study.machines.cluster import Cluster
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.study import LargestBatchSection, Study
from dlperf_study.study.study_file import check_study
from dlperf_study.study.study_values import DenominatorRule

#: Those that come with the package.
STUDIES = (
    "allreduce, arcface, bert, data_loaders, frameworks, gpt, input_pipeline, llama, one_gpu, precision, quickstart, "
    "resnet50, vgg16_parameter_server"
)
STUDY = """\
title: An example
about: Made for a test.
sections: [scaling]
scaling: weak
constants: {framework: paddle_collective, strategy: all_reduce}
factors:
  model: [resnet50, mobilenet_v2]
  devices_per_node: [1, 2]
baseline: {devices_per_node: 1}
"""
#: Cluster files: under Slurm, on this machine, by ssh, under Slurm with its own section, in Kubernetes.
CLUSTER = """\
launcher: slurm
nodes: 4
devices_per_node: 8
device: gpu
device_name: Tesla V100-SXM2-16GB
device_peak_flops: 15.7e12
interconnect: 100 Gbit/s InfiniBand
idle: {wait_seconds: 60}
python: {horovod_torch: /opt/horovod/bin/python}
"""
LOCAL = (
    CLUSTER.replace("slurm", "local")
    .replace("nodes: 4", "nodes: 1")
    .replace("devices_per_node: 8", "devices_per_node: auto")
)
SSH = """\
launcher: ssh
hosts: [node1, admin@10.11.0.3]
devices_per_node: 8
device: cpu
device_name: a CPU
interconnect: 1 Gbit/s Ethernet
shared_files: false
work_folder: /scratch
network_interface: eth0
image_datasets: {imagenet: /data/imagenet}
environment: {NCCL_DEBUG: INFO}
pass_environment: [LM_LICENSE_FILE]
container: [apptainer, exec, image.sif]
"""
SLURM = CLUSTER + "slurm: {partition: dgx, options: [--exclusive], jobs_in_queue: 2}\n"
KUBERNETES = """\
launcher: kubernetes
nodes: 2
devices_per_node: 8
device: cpu
device_name: a CPU
interconnect: 1 Gbit/s Ethernet
kubernetes:
  images: {default: dlperf:1, torch_ddp: torch:1}
  resources: {cpu: "8", memory: 16Gi}
  host_paths: [/data]
"""


def write(folder: Path, text: str = STUDY, name: str = "example") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(dedent(text), encoding="utf-8")
    return path


def rule(values: dict[str, object], where: dict[str, list[object]] | None = None) -> DenominatorRule:
    return DenominatorRule(values=values, where=where or {})  # type: ignore[arg-type]


def study(**changes: object) -> Study:
    values: dict[str, object] = {
        "name": "example",
        "source": "example.yaml",
        "title": "An example",
        "about": "Made for a test.",
        "sections": ("scaling",),
        "scaling": "weak",
        "constants": {"framework": "paddle_collective", "strategy": "all_reduce", "model": "resnet50"},
        "factors": {"nodes": [1, 2], "devices_per_node": [1, 4]},
        "baseline": (rule({"nodes": 1, "devices_per_node": 1}),),
    }
    if "largest_batch" in changes:
        changes["largest_batch"] = LargestBatchSection.model_validate(changes["largest_batch"])
    made = Study.model_construct(**{**values, **changes})  # type: ignore[arg-type]
    check_study(made)
    return made


def cluster(nodes: int = 4, devices_per_node: int = 8, name: str = "example") -> Cluster:
    return Cluster(name, nodes, devices_per_node, device="cpu", device_name="a CPU", launcher="local")


def anything_goes(configuration: Configuration) -> str | None:
    return None
