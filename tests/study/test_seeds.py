"""The studies against the published tables they come from, typed in from the sources each test names."""

import itertools
from dataclasses import replace

import pytest

from dlperf_study.plan.plan import build_plan
from dlperf_study.study.study_file import load_study
from tests.study.examples import anything_goes, cluster

BUILT = {
    "framework": ("paddle_collective", "paddle_ps"),
    "strategy": ("all_reduce", "local", "async"),
    "data_source": ("synthetic_device",),
    "precision": ("fp32",),
    "loss_scaling": ("none",),
    "compiler": ("none",),
}


#: Windows by time: what was published has numbers of steps.
BY_TIME = ("max_warmup_seconds", "measured_seconds")


def refuse_unbuilt(configuration):
    for name, built in BUILT.items():
        if getattr(configuration, name) not in built:
            return f"{name} {getattr(configuration, name)} is not built"
    return None


def entries(study, *names):
    """Return the levels of all configurations on machines that are large enough."""
    plan = build_plan(load_study(study), cluster(nodes=100, devices_per_node=8), anything_goes)
    assert not plan.unsupported
    levels = [tuple(getattr(entry.configuration, name) for name in names) for entry in plan.entries]
    assert len(set(levels)) == len(levels), "the names do not tell the configurations apart"
    return set(levels)


def fixed(study, *names):
    """Return the values that must be the same in all configurations."""
    plan = build_plan(load_study(study), cluster(nodes=100, devices_per_node=8), anything_goes)
    values = {tuple(getattr(entry.configuration, name) for name in names) for entry in plan.entries}
    (only,) = values
    return only


def test_vgg16_parameter_server_has_the_four_tables_of_performance_for_distributed_vgg16():
    single_thread = {("local", 1, 0, 32), ("local", 1, 0, 64), ("local", 1, 0, 128), ("local", 1, 0, 256)}
    batch_size = {("async", 20, 10, 32), ("async", 20, 10, 64), ("async", 20, 10, 128), ("async", 20, 10, 256)}
    accelerate = {("async", 20, 20, 128), ("async", 40, 20, 128), ("async", 80, 20, 128), ("async", 100, 20, 128)}
    pservers = {("async", 60, 3, 128), ("async", 60, 6, 128), ("async", 60, 10, 128), ("async", 60, 20, 128)}
    planned = entries("vgg16_parameter_server", "strategy", "nodes", "servers", "batch_per_device")
    assert planned == single_thread | batch_size | accelerate | pservers
    names = ("framework", "image_size", "classes", "devices_per_node", "threads_per_device", "precision")
    assert fixed("vgg16_parameter_server", *names) == ("paddle_ps", 32, 10, 1, 1, "fp32")


def test_vgg16_compares_each_batch_size_with_its_own_single_thread():
    plan = build_plan(load_study("vgg16_parameter_server"), cluster(100, 1), anything_goes)
    by_identity = {entry.configuration.identity: entry.configuration for entry in plan.entries}
    for entry in plan.entries:
        baseline = by_identity[entry.baseline_identity]
        assert (baseline.strategy, baseline.servers, baseline.world_size) == ("local", 0, 1)
        assert baseline.batch_per_device == entry.configuration.batch_per_device


def test_arcface_has_the_table_of_dlperf_paddlepaddle_plsc():
    assert entries("arcface", "nodes", "devices_per_node") == {(1, 1), (1, 4), (1, 8), (2, 8), (4, 8)}
    names = ("image_size", "classes", "batch_per_device", "precision", "warmup_steps", "measured_steps", "repeats")
    assert fixed("arcface", *names) == (112, 85742, 128, "fp32", 50, 100, 5)
    assert fixed("arcface", *BY_TIME) == (0, 0)
    assert fixed("arcface", "model", "classifier", "sample_ratio") == ("arcface_resnet50", "sharded", 1.0)


#: Nodes and devices per node of the tables of DLPerf's PaddlePaddle/resnet50v1.5.
FP32_SIZES = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8))
FP16_SIZES = ((1, 1), (1, 4), (1, 8), (2, 8), (4, 8))


def test_resnet50_has_the_four_tables_of_dlperf_and_three_of_them_with_synthetic_data():
    fp32 = {("fp32", "none", 128, "files", *size) for size in FP32_SIZES}
    fp16 = {("amp_fp16", "dynamic", 224, "files", *size) for size in FP16_SIZES}
    without_dynamic_loss_scaling = {("amp_fp16", "static", 224, "files", *size) for size in FP16_SIZES}
    with_dali = {("amp_fp16", "dynamic", 196, "dali", *size) for size in FP16_SIZES}
    files = fp32 | fp16 | without_dynamic_loss_scaling
    added = {(*point[:3], "synthetic_device", *point[4:]) for point in files}
    names = ("precision", "loss_scaling", "batch_per_device", "data_source", "nodes", "devices_per_node")
    assert entries("resnet50", *names) == files | with_dali | added
    assert fixed("resnet50", "image_size", "classes", "warmup_steps", "measured_steps") == (224, 1000, 20, 100)
    assert fixed("resnet50", *BY_TIME) == (0, 0)


def test_allreduce_has_the_tables_of_elasticdls_allreduce_benchmark():
    resnet, mobilenet = "resnet50_convolution_biases", "mobilenet_v2"
    minikube = {(resnet, 32, 1, 1, n) for n in (1, 2)} | {(mobilenet, 32, 1, 1, n) for n in (1, 2, 3)}
    cpu_only = {(model, 32, 4, n, 1) for model in (resnet, mobilenet) for n in (1, 2, 4, 8)}
    gpu = {(model, 256, 1, n, 1) for model in (resnet, mobilenet) for n in (1, 2, 4)}
    planned = entries("allreduce", "model", "image_size", "threads_per_device", "nodes", "devices_per_node")
    assert {point for point in planned if point[1] == 256} == gpu
    assert planned == minikube | cpu_only | gpu
    assert fixed("allreduce", "batch_per_device", "strategy") == (64, "all_reduce")


REPLICATED, SERVER = ("paddle_collective", "all_reduce", 0), ("paddle_ps", "sync", 1)
HOROVOD = ("horovod_torch", "all_reduce", 0)
GPU, CPU, PYTHON = "synthetic_device", "synthetic_host", "python_queue"


def test_input_pipeline_has_the_tables_of_tensorpacks_multi_gpu_benchmark():
    p100 = {
        (*update, source, 64, "fp32", "none", devices)
        for update, source, devices in itertools.product((REPLICATED, SERVER), (GPU, CPU, PYTHON), (1, 2, 4, 8))
    }
    v100_tf1 = {
        (*HOROVOD, GPU, 64, "fp32", "none", 8),
        (*REPLICATED, GPU, 64, "fp32", "none", 8),
        (*REPLICATED, GPU, 64, "amp_fp16", "none", 8),
        (*REPLICATED, GPU, 128, "amp_fp16", "none", 8),
        (*REPLICATED, GPU, 128, "amp_fp16", "xla", 8),
    }
    v100_tf2 = {
        (*HOROVOD, GPU, 64, "fp32", "none", 8),
        (*REPLICATED, GPU, 64, "fp32", "none", 8),
        (*REPLICATED, GPU, 128, "fp32", "none", 8),
        (*REPLICATED, GPU, 128, "amp_fp16", "none", 8),
        (*REPLICATED, GPU, 128, "amp_fp16", "xla", 8),
    }
    published = p100 | v100_tf1 | v100_tf2
    described = {
        (*REPLICATED, source, 64, "fp32", "none", devices)
        for source in ("python_dataset", "zmq")
        for devices in (1, 2, 4, 8)
    }
    baselines = {(*point[:-1], 1) for point in published}
    names = ("framework", "strategy", "servers", "data_source", "batch_per_device", "precision", "compiler")
    assert entries("input_pipeline", *names, "devices_per_node") == published | described | baselines
    assert fixed("input_pipeline", "model", "image_size", "nodes") == ("resnet50", 224, 1)


def test_levels_that_are_not_built_stay_in_the_plan_with_their_reason():
    plan = build_plan(load_study("input_pipeline"), cluster(1, 8), refuse_unbuilt)
    reasons = {entry.unsupported for entry in plan.unsupported}
    assert reasons == {
        "data_source synthetic_host is not built",
        "data_source python_queue is not built",
        "data_source python_dataset is not built",
        "data_source zmq is not built",
        "strategy sync is not built",
        "framework horovod_torch is not built",
        "precision amp_fp16 is not built",
    }
    assert len(plan.runnable) == 6


QUICK_SIZES = {
    "quickstart": 4,
    "vgg16_parameter_server": 3,
    "arcface": 2,
    "resnet50": 2,
    "allreduce": 4,
    "input_pipeline": 2,
}


@pytest.mark.parametrize("name", QUICK_SIZES)
def test_a_quick_variant_runs_on_two_devices_in_about_a_minute(name):
    plan = build_plan(load_study(name, quick=True), cluster(1, 2), refuse_unbuilt)
    configurations = [entry.configuration for entry in plan.runnable]
    assert len(configurations) == QUICK_SIZES[name]
    assert {c.world_size for c in configurations} == {1, 2}
    assert {(c.image_size, c.repeats, c.quick) for c in configurations} == {(32, 1, True)}
    assert max(c.warmup_steps + c.measured_steps + c.computation_steps for c in configurations) <= 12
    assert {(c.max_warmup_seconds, c.measured_seconds) for c in configurations} == {(0, 0)}
    assert max(c.global_batch for c in configurations) <= 16


@pytest.mark.parametrize("name", QUICK_SIZES)
def test_in_a_quick_variant_every_baseline_can_run_that_something_is_compared_with(name):
    plan = build_plan(load_study(name, quick=True), cluster(1, 2), refuse_unbuilt)
    runnable = {entry.configuration.identity for entry in plan.runnable}
    assert {entry.baseline_identity for entry in plan.runnable} <= runnable
    assert any(not entry.is_baseline for entry in plan.runnable)


def test_quickstart_compares_all_reduce_with_its_own_process_and_the_server_with_none():
    plan = build_plan(load_study("quickstart"), cluster(1, 2), refuse_unbuilt)
    assert len(plan.runnable) == len(plan.entries) == 6
    by_identity = {entry.configuration.identity: entry.configuration for entry in plan.entries}
    for entry in plan.entries:
        alone = {"strategy": "local", "servers": 0} if entry.configuration.framework == "paddle_ps" else {}
        assert by_identity[entry.baseline_identity] == replace(entry.configuration, devices_per_node=1, **alone)


@pytest.mark.parametrize("quick", [False, True])
def test_no_run_of_quickstart_needs_more_than_two_cores(quick):
    plan = build_plan(load_study("quickstart", quick), cluster(1, 2), refuse_unbuilt)
    threads = [c.world_size * c.threads_per_device + c.servers for c in (entry.configuration for entry in plan.entries)]
    assert max(threads) == 2


def test_quickstart_asks_for_intervals_within_six_minutes():
    study = load_study("quickstart")
    assert (study.precision, study.time_budget_minutes) == (0.1, 6)
    plan = build_plan(study, cluster(1, 2), refuse_unbuilt)
    assert {(c.repeats, c.measured_seconds) for c in (entry.configuration for entry in plan.entries)} == {(3, 4.0)}
