"""Why each framework refuses a configuration: one table of all reasons, and what is refused nowhere."""

import inspect
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlperf_study.core.paths import PROJECT
from dlperf_study.machines.cluster import Cluster
from dlperf_study.study.configuration import DEFAULTS, Configuration, parameters_in_scope
from dlperf_study.study.parameter import Scope
from dlperf_study.training import frameworks
from tests.training.frameworks.launching import asynchronous, configuration
from tests.training.frameworks.test_jobs import CPUS, DDP, GPUS, HOROVOD, HOROVOD_TENSORFLOW, LOCAL, MIRRORED, SERVED

SHARDED = {"model": "arcface_resnet50", "classifier": "sharded"}
HALF = {"precision": "amp_fp16", "loss_scaling": "dynamic"}
DIVIDED = configuration(framework="torch_zero", strategy="zero", zero_stage=3, devices_per_node=2)
SEQUENCES = {name: DEFAULTS[name] for name in ("image_size", "classes")} | {"sequence_length": 32}
TENSOR = configuration(
    **SEQUENCES | {"framework": "torch_tensor", "strategy": "tensor", "tensor_parallel": 2, "model": "gpt_tiny"},
    devices_per_node=2,
    data_loader="synthetic_host",
)
PIPELINE = replace(
    TENSOR,
    **{"framework": "torch_pipeline", "strategy": "pipeline", "tensor_parallel": 1, "pipeline_parallel": 2},
    pipeline_schedule="1f1b",
    micro_batches=4,
)
INTERLEAVED = {"pipeline_schedule": "interleaved_1f1b"}
LLAMA = {"model": "llama_tiny", "tensor_parallel": 4, "devices_per_node": 4}
PADDLE, ASYNCHRONOUS = configuration(), asynchronous(1)
PADDLE_ZERO = configuration(framework="paddle_zero", strategy="zero", zero_stage=1, devices_per_node=2)
#: What divides a model among two devices.
DEGREES = ({"tensor_parallel": 2, "devices_per_node": 2}, {"pipeline_parallel": 2, "devices_per_node": 2})
#: What is refused on CPUs, by the changes to a configuration that is not.
REFUSED_ON_CPUS: list[tuple[Configuration, Sequence[dict[str, Any]]]] = [
    (
        PADDLE,
        (
            *({"parameter_servers": 1}, {"strategy": "async"}, {"compiler": "xla"}, {"compiler": "torch_compile"}),
            *({"optimizer": "adam"}, {"cycle_time_ms": 1.0}),
            *({"classifier": "sharded"}, {"gradient_compression": "fp16"}, HALF, {"precision": "amp_bf16_o2"}),
            *({"precision": "tf32"}, {"loss_scaling": "static"}, {"memory_format": "nhwc", "model": "vgg16"}),
            *({"fused_optimizer": "fused", "optimizer": "adamw"}, {"zero_stage": 1}, *DEGREES),
        ),
    ),
    (
        PADDLE_ZERO,
        (
            *({"zero_stage": 0}, {"zero_stage": 2}, {"zero_stage": 3}, {"strategy": "all_reduce"}, *DEGREES),
            *({"compiler": "to_static"}, SHARDED, {"fusion_mib": 4}, {"micro_batches": 2}),
        ),
    ),
    (
        ASYNCHRONOUS,
        (
            *(
                {"optimizer": "momentum"},
                {"strategy": "geo"},
                {"parameter_servers": 0},
                {"strategy": "sync", "parameter_servers": 0},
            ),
            *({"precision": "amp_bf16"}, SHARDED),
        ),
    ),
    (
        LOCAL,
        (
            *({"fused_optimizer": "fused"}, {"memory_format": "nhwc", "model": "vgg16"}, {"parameter_servers": 1}),
            *({"devices_per_node": 2}, {"fusion_mib": 0}, {"activation_checkpointing": "full"}),
        ),
    ),
    (
        DDP,
        (
            *(
                {"parameter_servers": 1},
                {"strategy": "async"},
                {"compiler": "xla"},
                {"compiler": "cinn"},
                {"fusion_mib": 0},
            ),
            *({"hierarchical": True}, {"precision": "tf32"}, HALF | {"precision": "amp_bf16"}),
            *(
                SHARDED | {"compiler": "torch_compile"},
                {"zero_stage": 3},
                {"tensor_parallel": 2},
                {"context_parallel": 2},
            ),
            *(
                {"micro_batches": 3},
                {"pipeline_schedule": "1f1b", "pipeline_parallel": 2},
                {"activation_checkpointing": "full"},
            ),
        ),
    ),
    (
        DIVIDED,
        (
            *({"zero_stage": 0}, {"strategy": "all_reduce"}, {"micro_batches": 3}, {"tensor_parallel": 2}),
            *(HALF, SHARDED, {"compiler": "torch_compile"}, {"fusion_mib": 4}, {"gradient_compression": "fp16"}),
        ),
    ),
    (
        TENSOR,
        (
            *({"tensor_parallel": 1}, {"zero_stage": 1}, {"pipeline_parallel": 2}, {"strategy": "all_reduce"}, LLAMA),
            *({"tensor_parallel": 3, "devices_per_node": 3}, {"sequence_parallel": True, "sequence_length": 33}),
            *({"model": "mobilenet_v2", "sequence_length": 0}, {"micro_batches": 3}, {"fusion_mib": 4}),
            *({"framework": "torch_ddp", "strategy": "all_reduce", "sequence_parallel": True},),
        ),
    ),
    (
        PIPELINE,
        (
            *({"pipeline_parallel": 1}, {"zero_stage": 1}, {"sequence_parallel": True}, {"pipeline_schedule": "none"}),
            {"tensor_parallel": 3, "devices_per_node": 6},
            *({"micro_batches": 1}, {"micro_batches": 3}, {"virtual_stages": 2}, INTERLEAVED, {"fusion_mib": 4}),
            *({"pipeline_parallel": 3, "devices_per_node": 3}, INTERLEAVED | {"virtual_stages": 4}),
            *(INTERLEAVED | {"virtual_stages": 2, "micro_batches": 5, "batch_per_device": 5},),
            *({"model": "mobilenet_v2", "sequence_length": 0}, {"framework": "torch_ddp", "strategy": "all_reduce"}),
        ),
    ),
    (HOROVOD, ({"hierarchical": True}, SHARDED, {"precision": "amp_fp16_o2"})),
    (HOROVOD_TENSORFLOW, ({"parameter_servers": 1}, {"hierarchical": True})),
    (
        MIRRORED,
        (
            *({"parameter_servers": 1}, {"memory_format": "nchw"}, {"precision": "amp_fp16"}, {"precision": "tf32"}),
            *({"loss_scaling": "static"}, SHARDED),
        ),
    ),
    (SERVED, ({"parameter_servers": 0}, {"optimizer": "momentum"}, {"compiler": "xla"}, {"precision": "amp_fp16"})),
]
REFUSED_ON_GPUS: list[tuple[Configuration, Sequence[dict[str, Any]]]] = [
    (PADDLE, ({"fused_optimizer": "fused"}, {"fused_optimizer": "foreach"}, *DEGREES)),
    (PADDLE_ZERO, (HALF, {"zero_stage": 3})),
    (ASYNCHRONOUS, ({},)),
    (MIRRORED, ({"fused_optimizer": "fused"}, {"cudnn_autotune": "enabled", "compiler": "xla"})),
]


def reasons(requested: Configuration, cluster: Cluster = CPUS, version: str | None = "3.0.0") -> list[str]:
    if requested.framework == "horovod_tensorflow" and version == "3.0.0":
        version = "2.15.1 with horovod 0.28.1"
    return list(frameworks.load(requested.framework).obstacles(requested, cluster, version))


def test_each_refusal_has_the_reason_of_its_library(snapshot):
    table: dict[str, list[str]] = {}
    for cluster, refused in ((CPUS, REFUSED_ON_CPUS), (GPUS, REFUSED_ON_GPUS)):
        for requested, all_changes in refused:
            for changes in all_changes:
                words = " ".join(f"{name}={value}" for name, value in changes.items())
                subject = f"{cluster.device}: {requested.framework} {requested.strategy} {words}"
                table[subject] = reasons(replace(requested, **changes), cluster)
    assert all(table.values())
    assert table == snapshot


@pytest.mark.parametrize("name", frameworks.names())
def test_a_missing_library_is_a_reason(name):
    requested = replace(LOCAL if name == "paddle_ps" else PADDLE, framework=name)
    reason = "; ".join(reasons(requested, version=None))
    assert "is not installed" in reason
    assert re.search("`(pip install|make) .*` installs it", reason)


def test_what_a_library_trains_with_may_be_missing():
    version = frameworks.load(HOROVOD.framework).version_in({"horovod": "0.28.1"})
    [reason] = reasons(HOROVOD, version=version)
    assert reason.startswith("torch is not installed")


def test_a_version_that_can_train_nothing_is_refused(snapshot):
    versions = ("2.20.0 with horovod 0.28.1", "2.15.1 with horovod None", "")
    assert [reasons(HOROVOD_TENSORFLOW, version=version) for version in versions] == snapshot
    assert [reasons(ASYNCHRONOUS, version=version) for version in ("3.1.0", "3.2", "4.0.0")] == snapshot


def test_every_obstacle_is_named():
    impossible = replace(asynchronous(2), strategy="geo", precision="amp_fp16", image_size=16, model="vgg16")
    obstacles = reasons(impossible, GPUS, None)
    for part in ("not installed", "GEO mode", "precision amp_fp16", "image_size is 16", "device is gpu"):
        assert len([reason for reason in obstacles if part in reason]) == 1, part
    assert len(obstacles) == 5


BUILT = [
    *(PADDLE, configuration(**SHARDED), configuration(fusion_mib=64), asynchronous(2)),
    *(PADDLE_ZERO, replace(PADDLE_ZERO, optimizer="momentum", fused_optimizer="fused")),
    *(LOCAL, replace(LOCAL, memory_format="nhwc")),
    *(DIVIDED, replace(DIVIDED, zero_stage=1, micro_batches=4, precision="amp_bf16"), replace(DDP, micro_batches=2)),
    *(TENSOR, replace(TENSOR, sequence_parallel=True, micro_batches=2), replace(TENSOR, devices_per_node=4)),
    *(PIPELINE, replace(PIPELINE, devices_per_node=4), replace(PIPELINE, pipeline_schedule="gpipe", micro_batches=1)),
    replace(PIPELINE, pipeline_schedule="interleaved_1f1b", virtual_stages=2, precision="amp_bf16"),
    *(DDP, replace(DDP, **SHARDED), replace(DDP, **HALF, fusion_mib=5), SERVED, replace(SERVED, strategy="async")),
    *(MIRRORED, replace(MIRRORED, precision="amp_bf16", compiler="xla", fusion_mib=0), HOROVOD),
    replace(HOROVOD, memory_format="nhwc", fused_optimizer="fused"),
    replace(HOROVOD, gradient_compression="fp16", fusion_mib=0, cycle_time_ms=0.0),
]
RESNET = configuration(model="resnet50", memory_format="nhwc")
BUILT_ON_GPUS_ONLY = [
    *(replace(RESNET, **changes) for changes in (HALF, {"precision": "tf32"})),
    replace(RESNET, precision="amp_fp16_o2", loss_scaling="static"),
    *(replace(MIRRORED, memory_format="nchw", precision="tf32"), replace(SERVED, memory_format="nchw")),
    replace(MIRRORED, **HALF, compiler="xla"),
    *(
        replace(RESNET, framework=name, cudnn_autotune=value)
        for name in ("torch_ddp", "horovod_torch", "paddle_collective", "tensorflow_mirrored")
        for value in ("enabled", "disabled")
    ),
]


@pytest.mark.parametrize("requested", BUILT)
def test_what_is_built_is_not_refused(requested):
    assert reasons(requested) == []


@pytest.mark.parametrize("requested", BUILT_ON_GPUS_ONLY)
def test_what_gpus_have_is_refused_on_cpus_only(requested):
    assert reasons(requested, GPUS) == []
    assert reasons(requested) != []


WITH_A_DEFAULT = [
    parameter
    for parameter in parameters_in_scope(Scope.WORKLOAD, Scope.NETWORK).values()
    if parameter.default is not None
]


@pytest.mark.parametrize("framework", frameworks.names())
@pytest.mark.parametrize("parameter", WITH_A_DEFAULT, ids=lambda entry: entry.name)
def test_a_parameter_is_read_or_every_value_but_its_default_is_refused(framework, parameter):
    programs = PROJECT / "dlperf_study" / "training"
    # One that differs from another in a detail takes its trainer from it.
    trainer = Path(inspect.getfile(frameworks.load(framework).trainer))
    files = [programs / "frameworks" / f"{framework}.py", trainer, *programs.glob("*/_*.py")]
    files += [*programs.glob("models/*.py"), *programs.glob("worker/*.py")]
    is_read = any(f"onfiguration.{parameter.name}" in path.read_text() for path in files)
    different = "different" if parameter.type is str else parameter.type(parameter.default + 1)
    changed = replace(configuration(framework=framework), **{parameter.name: different})
    assert is_read or any(parameter.name in reason for reason in reasons(changed))


def test_an_unknown_model_or_data_source_is_answered_with_the_choices():
    assert "the models are arcface_resnet50, " in reasons(replace(PADDLE, model="nothing"))[0]
    assert "the data loaders are" in reasons(replace(PADDLE, data_loader="nothing"))[0]
