"""What the libraries installed here say of GPUs, and what that means for a run."""

import json
import os
import sys
from dataclasses import replace
from importlib import metadata

import pytest

from dlperf_study.core.errors import RunError
from dlperf_study.machines.cluster import software
from dlperf_study.machines.cluster.software import gpu_answer
from dlperf_study.machines.launchers.kubernetes import facts_query
from dlperf_study.study.gpu_support import GpuQuestion, GpuSupport, is_named
from dlperf_study.training.frameworks._trainer import communication_library
from dlperf_study.training.libraries._base import cudnn_version, error_line, nccl_version
from dlperf_study.training.questions import gpu_question, program_facts
from tests.nvidia_smi import A100
from tests.shell_program import program

V100 = "Tesla V100-SXM2-16GB"
TORCH = gpu_question("torch_ddp")
TWO = GpuSupport("12.6", "9.5.1", "2.25.1", (A100, A100))


@pytest.mark.matrix
@pytest.mark.parametrize(
    "framework",
    [
        "paddle_collective",
        pytest.param("torch_ddp", marks=pytest.mark.needs("torch")),
        pytest.param("horovod_torch", marks=pytest.mark.needs("torch", "horovod")),
        pytest.param("tensorflow_mirrored", marks=pytest.mark.needs("tensorflow")),
    ],
)
def test_libraries_say_whether_they_are_built_for_gpus(framework):
    support = GpuSupport.of(gpu_answer((sys.executable,), gpu_question(framework), os.environ))
    # Where no build for CPUs is found, pip installs the one for CUDA.
    if "torch" in framework and "+cpu" not in metadata.version("torch"):
        assert support is not None
        assert support.cuda
    else:
        assert support == GpuSupport()


def test_gpus_have_the_order_of_nvidia_smi_and_no_library_no_answer(tmp_path):
    assert gpu_answer((program(tmp_path, "echo null"),), TORCH, os.environ) is None
    prints_order = 'printf \'{"cuda": "%s", "gpus": []}\' $CUDA_DEVICE_ORDER'
    answer = gpu_answer((program(tmp_path, prints_order),), TORCH, {"PATH": os.environ["PATH"]})
    assert GpuSupport.of(answer) == GpuSupport("PCI_BUS_ID")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'OSError: libcudart.so.12: no such file' >&2; exit 1", "exited with code 1: OSError: libcudart.so.12"),
        ("echo Welcome", "prints 'Welcome' instead of an answer"),
    ],
)
def test_a_library_that_cannot_be_imported_is_an_error(tmp_path, script, message):
    with pytest.raises(RunError, match=message):
        gpu_answer((program(tmp_path, script),), TORCH, os.environ)


@pytest.mark.parametrize(("code", "version"), [(91002, "9.10.2"), (90501, "9.5.1"), (8902, "8.9.2"), (7605, "7.6.5")])
def test_a_version_code_of_cudnn_is_a_version(code, version):
    assert cudnn_version(code) == version


def test_nccl_exchanges_only_between_gpus_of_a_library_that_has_it():
    assert communication_library(TWO) == "NCCL 2.25.1"
    assert communication_library(replace(TWO, nccl="")) == "gloo"
    assert communication_library(None) == "gloo"


@pytest.mark.parametrize(
    ("support", "wanted", "obstacle"),
    [
        (TWO, 2, ""),
        (None, 1, "torch is not installed"),
        (GpuSupport(), 1, "torch is built without CUDA (`make gpu TORCH_INDEX=ADDRESS` installs "),
        (TWO, 3, "torch (CUDA 12.6, cuDNN 9.5.1, NCCL 2.25.1) sees 2 GPUs, but the run needs 3"),
        (
            replace(TWO, nccl="", gpus=(), obstacle="the driver is too old"),
            1,
            "torch (CUDA 12.6, cuDNN 9.5.1, no NCCL) sees 0 GPUs, but the run needs 1: the driver is too old",
        ),
    ],
)
def test_why_a_framework_cannot_train_on_gpus(support, wanted, obstacle):
    reason = TORCH.obstacle(support, wanted)
    assert reason.startswith(obstacle)
    assert bool(reason) == bool(obstacle)


def test_libraries_without_cuda_or_build_are_refused_with_the_command_that_installs_the_other(snapshot):
    obstacle = gpu_question("tensorflow_mirrored").obstacle(GpuSupport())
    assert "tensorflow is built without CUDA (`make gpu TENSORFLOW_INDEX=default` installs" in obstacle
    question = gpu_question("paddle_ps")
    assert question.obstacle(None) == snapshot
    assert gpu_answer(("/nowhere/python",), question, {}) is None


@pytest.mark.parametrize(
    ("name", "measured", "agrees"),
    [
        ("A100", A100, True),
        ("nvidia a100-sxm4-80gb", A100, True),
        ("NVIDIA V100-SXM2-16GB", "Tesla V100-SXM2-16GB", True),
        ("Tesla V100", A100, False),
        ("A100-SXM4-40GB", A100, False),
        ("a GPU", A100, False),
        ("Tesla T4, NVIDIA A100-SXM4-80GB", A100, True),
    ],
)
def test_a_name_may_be_short_but_not_of_another_device(name, measured, agrees):
    assert is_named(name, measured) is agrees


@pytest.mark.parametrize(
    ("of_second", "contradictions"),
    [
        (TWO, []),
        (
            replace(TWO, gpus=(V100, V100)),
            [f"two has {V100}, but the cluster file has '{A100}'; write device_name: {V100}"],
        ),
        (
            replace(TWO, nccl="2.21.5"),
            ["torch on two has CUDA 12.6, cuDNN 9.5.1, NCCL 2.21.5, but on one CUDA 12.6, cuDNN 9.5.1, NCCL 2.25.1"],
        ),
        (None, ["two: torch is not installed"]),
    ],
)
def test_nodes_agree_with_the_cluster_file_and_each_other(of_second, contradictions):
    supports = {"one": TWO, "two": of_second}
    assert list(TORCH.contradictions(supports, 2, A100)) == contradictions


@pytest.mark.parametrize(("code", "version"), [(0, ""), (2804, "2.8.4"), (21501, "2.15.1"), (22502, "2.25.2")])
def test_nccl_has_a_version(code, version):
    assert nccl_version(code) == version


@pytest.mark.parametrize(
    ("error", "obstacle"),
    [
        (
            RuntimeError("\nCall stack\n\nExternalError: CUDA error(35)\n  [Hint: update]"),
            "ExternalError: CUDA error(35)",
        ),
        (RuntimeError("The NVIDIA driver is too old\nUpdate it"), "The NVIDIA driver is too old"),
        (ValueError(), "ValueError"),
    ],
)
def test_the_line_with_the_error_is_the_obstacle(error, obstacle):
    assert error_line(error) == obstacle


def test_every_library_of_a_python_answers(monkeypatch):
    """None of a library that is not installed; an answer that is none does not hide those of the others."""

    def answer(python: tuple[str, ...], question: GpuQuestion, environment: dict[str, str]) -> dict[str, str] | None:
        if question.framework == "torch_ddp":
            raise RunError("libcudart.so.12 is missing")
        return {"cuda": "12.6"} if question.framework == "paddle_collective" else None

    monkeypatch.setattr(software, "gpu_answer", answer)
    questions = facts_query(program_facts(), "gpu")[-1].removeprefix("--questions=")
    answers = software.gpu_answers(json.loads(questions))
    assert answers == {"paddle_collective": {"cuda": "12.6"}, "torch_ddp": {"error": "libcudart.so.12 is missing"}}
