"""What each framework asks to be started, and why it refuses. Nothing is started here."""

import inspect
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from dlperf_study import frameworks
from dlperf_study.cluster.cluster import Cluster
from dlperf_study.errors import StudyFileError
from dlperf_study.frameworks._horovod import GPUS_OF_NODES, show_gpus_of_node
from dlperf_study.paths import PROJECT
from dlperf_study.study.configuration import Configuration, parameters_of
from dlperf_study.study.job import TaskRole
from dlperf_study.study.parameter import Parameter, Scope
from tests.frameworks.launching import asynchronous, configuration
from tests.golden_file import check

PYTHON = dict.fromkeys(frameworks.names(), "python")
CPUS = Cluster("cpus", nodes=2, devices_per_node=4, device="cpu", device_name="a CPU", launcher="local", python=PYTHON)
GPUS = replace(CPUS, device="gpu", device_name="a GPU")
DDP, HOROVOD = configuration(framework="torch_ddp"), configuration(framework="horovod_torch")
MIRRORED = configuration(framework="tensorflow_mirrored", memory_format="nhwc")
HOROVOD_TENSORFLOW = replace(MIRRORED, framework="horovod_tensorflow")
SERVED = replace(MIRRORED, framework="tensorflow_ps", strategy="sync", servers=1)
LOCAL = configuration(framework="paddle_ps", strategy="local")
SHARDED = {"model": "arcface_resnet50", "classifier": "sharded"}
WITH_A_DEFAULT = [
    parameter for parameter in parameters_of(Scope.WORKLOAD, Scope.NETWORK).values() if parameter.default is not None
]
REMEDIES = {
    "torch_ddp": "make torch",
    "horovod_torch": "make horovod",
    "horovod_tensorflow": "make horovod-tensorflow",
    "tensorflow_mirrored": "make tensorflow",
    "tensorflow_ps": "make tensorflow",
}
FOLDER = PROJECT / "dlperf_study"


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
        ("tensorflow_ps-two_nodes", replace(SERVED, nodes=2, servers=3), CPUS),
        ("tensorflow_mirrored-gpus", replace(MIRRORED, nodes=2, devices_per_node=2, memory_format="nchw"), GPUS),
        ("tensorflow_ps-gpus", replace(SERVED, devices_per_node=2), GPUS),
        ("parameter_server-local", LOCAL, CPUS),
        ("parameter_server-two_nodes", replace(asynchronous(2), nodes=2, servers=3), CPUS),
    ],
)
def test_jobs(name: str, asked: Configuration, cluster: Cluster) -> None:
    job = frameworks.load(asked.framework).job(asked, cluster)
    check(f"jobs/{name}.json", json.dumps(asdict(job), indent=1) + "\n")


def test_horovod_shows_a_rank_the_gpus_of_its_own_node() -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "4,5", GPUS_OF_NODES: "4,5 GPU-7f,GPU-81", "HOROVOD_CROSS_RANK": "1"}
    show_gpus_of_node(environment)
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-7f,GPU-81"
    alone = {"CUDA_VISIBLE_DEVICES": "4,5"}
    show_gpus_of_node(alone)
    assert alone["CUDA_VISIBLE_DEVICES"] == "4,5"


def test_servers_and_trainers_share_one_list_of_ports() -> None:
    job = frameworks.load("paddle_ps").job(asynchronous(2), CPUS)
    assert job.ports == 1 + 2 + 1
    assert [task.role for task in job.tasks] == [TaskRole.SERVER, TaskRole.TRAINER, TaskRole.TRAINER]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (configuration(servers=1), "all-reduce has no parameter servers"),
        (configuration(strategy="async"), "strategy async is not built for paddle_collective (built: all_reduce)"),
        (configuration(data_source="nothing"), "data source is 'nothing'; the data sources are"),
        (configuration(compiler="xla"), "compiler xla is not built"),
        (configuration(optimizer="adam"), "optimizer adam is not built for paddle_collective (built: sgd, momentum)"),
        (configuration(model="nothing"), "model is 'nothing'; the models are"),
        (configuration(classifier="sharded"), "classifier is 'sharded', but model mobilenet_v2 has replicated"),
        (asynchronous(1, optimizer="momentum"), "not kept by Paddle's dense tables (built: sgd)"),
        (replace(asynchronous(1), strategy="geo"), "every trainer would train alone"),
        (replace(asynchronous(1), servers=0), "strategy async needs servers of at least 1"),
        (replace(asynchronous(1), strategy="sync", servers=0), "strategy sync needs servers of at least 1"),
        (replace(LOCAL, fused_optimizer="fused"), "fused: Paddle's servers update their dense tables themselves"),
        (replace(LOCAL, memory_format="nhwc", model="vgg16"), "it flattens features of several pixels"),
        (replace(LOCAL, servers=1), "strategy local is one process without servers"),
        (replace(LOCAL, devices_per_node=2), "strategy local is one process without servers"),
        (
            configuration(cycle_time_ms=1.0),
            "cycle_time_ms is 1.0, but none of paddle_collective, mobilenet_v2 and synthetic_device has such a setting",
        ),
        (
            replace(LOCAL, fusion_mib=0),
            "fusion_mib is 0, but none of paddle_ps, mobilenet_v2 and synthetic_device has such a setting",
        ),
        (configuration(gradient_compression="fp16"), "gradient_compression fp16 is not built for paddle_collective"),
        (replace(DDP, servers=1), "all-reduce has no parameter servers"),
        (replace(DDP, strategy="async"), "strategy async is not built for torch_ddp (built: all_reduce)"),
        (replace(DDP, compiler="xla"), "compiler xla is not built for torch_ddp (built: none, torch_compile)"),
        (replace(DDP, fusion_mib=0), "DistributedDataParallel always fuses"),
        (
            replace(DDP, hierarchical=True),
            "hierarchical is true, but none of torch_ddp, mobilenet_v2 and synthetic_device has such a setting",
        ),
        (replace(HOROVOD, hierarchical=True), "gloo, which exchanges between CPUs, ignores it"),
        (replace(HOROVOD, **SHARDED), "which Horovod does not start"),
        (replace(HOROVOD_TENSORFLOW, servers=1), "all-reduce has no parameter servers"),
        (replace(HOROVOD_TENSORFLOW, hierarchical=True), "gloo, which exchanges between CPUs, ignores it"),
        (replace(MIRRORED, servers=1), "all-reduce has no parameter servers"),
        (replace(SERVED, servers=0), "strategy sync needs servers of at least 1"),
        (replace(SERVED, optimizer="momentum"), "optimizer momentum is not built for tensorflow_ps (built: sgd)"),
        (replace(SERVED, compiler="xla"), "XLA compiles no variables of other processes"),
        (replace(MIRRORED, memory_format="nchw"), "on a CPU, TensorFlow's convolutions take nhwc only"),
        (replace(MIRRORED, precision="amp_fp16"), "some hundred times slower than fp32"),
        (replace(MIRRORED, precision="tf32"), "tensor cores, which a CPU does not have"),
        (replace(MIRRORED, loss_scaling="static"), "loss_scaling static is for precision amp_fp16"),
        (replace(SERVED, precision="amp_fp16"), "servers apply gradients without looking whether they are finite"),
        (replace(MIRRORED, **SHARDED), "model arcface_resnet50 has no builder for 'tensorflow'"),
        (asynchronous(2, **SHARDED), "a sharded classifier needs collectives between the trainers"),
    ],
)
def test_what_is_not_built_is_refused_with_a_reason(asked: Configuration, reason: str) -> None:
    assert reason in "; ".join(frameworks.load(asked.framework).obstacles(asked, CPUS, "3.0.0"))


@pytest.mark.parametrize("framework", frameworks.names())
@pytest.mark.parametrize("parameter", WITH_A_DEFAULT, ids=lambda entry: entry.name)
def test_a_parameter_is_read_or_every_value_but_its_default_is_refused(framework: str, parameter: Parameter) -> None:
    shared = [*FOLDER.glob("frameworks/_*.py"), *FOLDER.glob("models/*.py"), *FOLDER.glob("worker/*.py")]
    # One that differs from another in a detail takes its trainer from it.
    trainer = Path(inspect.getfile(frameworks.load(framework).trainer))
    sources = [path.read_text() for path in (FOLDER / "frameworks" / f"{framework}.py", trainer, *shared)]
    is_read = any(f"onfiguration.{parameter.name}" in source for source in sources)
    different = "different" if parameter.type is str else parameter.type(parameter.default + 1)
    changed = replace(configuration(framework=framework), **{parameter.name: different})
    reasons = list(frameworks.load(framework).obstacles(changed, CPUS, "3.0.0"))
    assert is_read or any(parameter.name in reason for reason in reasons)


BUILT = [
    *(configuration(), configuration(**SHARDED), configuration(fusion_mib=64), asynchronous(2)),
    *(LOCAL, replace(LOCAL, memory_format="nhwc")),
    *(DDP, replace(DDP, **SHARDED), replace(DDP, precision="amp_fp16", loss_scaling="dynamic", fusion_mib=5)),
    *(
        SERVED,
        replace(SERVED, strategy="async"),
        MIRRORED,
        replace(MIRRORED, precision="amp_bf16", compiler="xla", fusion_mib=0),
    ),
    *(HOROVOD, replace(HOROVOD, memory_format="nhwc", fused_optimizer="fused")),
    replace(HOROVOD, gradient_compression="fp16", fusion_mib=0, cycle_time_ms=0.0),
]


@pytest.mark.parametrize("asked", BUILT)
def test_what_is_built_is_not_refused(asked: Configuration) -> None:
    assert list(frameworks.load(asked.framework).obstacles(asked, CPUS, "3.0.0")) == []


@pytest.mark.parametrize(
    "asked",
    [
        replace(MIRRORED, memory_format="nchw", precision="tf32"),
        replace(MIRRORED, precision="amp_fp16", loss_scaling="dynamic", compiler="xla"),
        replace(SERVED, memory_format="nchw"),
    ],
)
def test_what_tensorflow_has_on_gpus_only_is_not_refused_there(asked: Configuration) -> None:
    obstacles = frameworks.load(asked.framework).obstacles
    assert list(obstacles(asked, GPUS, "2.20.0")) == []
    assert list(obstacles(asked, CPUS, "2.20.0")) != []


@pytest.mark.parametrize("name", frameworks.names())
def test_a_missing_library_is_a_reason(name: str) -> None:
    of_framework = replace(LOCAL if name == "paddle_ps" else configuration(), framework=name)
    remedy = REMEDIES.get(name, "pip install -r requirements.lock")
    reason = "; ".join(frameworks.load(name).obstacles(of_framework, CPUS, None))
    assert "is not installed" in reason
    assert f"`{remedy}` installs it" in reason


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("2.15.1 with horovod 0.28.1", ""),
        ("", ""),
        ("2.20.0 with horovod 0.28.1", "has tensorflow 2.20.0 with horovod 0.28.1, but Horovod 0.28.1 trains with "),
        ("2.15.1 with horovod None", "horovod is not installed in the Python that the cluster file names"),
    ],
)
def test_horovod_for_tensorflow_needs_a_python_of_its_own(version: str, reason: str) -> None:
    reasons = list(frameworks.load("horovod_tensorflow").obstacles(HOROVOD_TENSORFLOW, CPUS, version))
    assert len(reasons) == bool(reason)
    assert all(reason in obstacle for obstacle in reasons)


@pytest.mark.parametrize("version", ["3.1.0", "3.2", "4.0.0"])
def test_later_wheels_have_no_parameter_servers(version: str) -> None:
    assert list(frameworks.load("paddle_ps").obstacles(asynchronous(2), CPUS, version)) == [
        f"paddlepaddle {version} has no parameter servers (the last that has is 3.0)"
    ]


def test_parameter_servers_are_for_cpus() -> None:
    obstacles = frameworks.load("paddle_ps").obstacles(asynchronous(2), GPUS, "3.0.0")
    assert list(obstacles) == ["device is gpu, but parameter servers are built for cpu"]


def test_every_obstacle_is_named() -> None:
    impossible = replace(asynchronous(2), strategy="geo", precision="amp_fp16", image_size=16, model="vgg16")
    reasons = list(frameworks.load("paddle_ps").obstacles(impossible, GPUS, None))
    for part in ("not installed", "GEO mode", "precision amp_fp16", "image_size is 16", "device is gpu"):
        assert len([reason for reason in reasons if part in reason]) == 1, part
    assert len(reasons) == 5


def test_an_unknown_framework_is_answered_with_the_choices() -> None:
    with pytest.raises(StudyFileError, match=r"framework is 'caffe'; the frameworks are .*paddle_ps"):
        frameworks.load("caffe")
