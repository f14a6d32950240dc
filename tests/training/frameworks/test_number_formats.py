"""In what networks really compute, and how losses are scaled: what a CPU can show of it, on the real libraries."""

import math
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dlperf_study.core.errors import RunError
from dlperf_study.machines.cluster.hardware import CPU_INFO
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.precision import LossScaling
from dlperf_study.training import frameworks
from dlperf_study.training.frameworks import _paddle
from dlperf_study.training.frameworks._processes import WITHOUT_TF32
from dlperf_study.training.libraries import paddle as paddle_library
from dlperf_study.training.libraries import torch as torch_library
from dlperf_study.training.libraries._base import (
    FIRST_LOSS_SCALE,
    STATIC_LOSS_SCALE,
    Output,
    format_of_float32,
    observed_format,
)
from dlperf_study.training.libraries._torch_steps import LossScaler
from dlperf_study.training.libraries.paddle import Paddle
from dlperf_study.training.libraries.torch import Torch
from tests.training.frameworks.launching import configuration
from tests.training.frameworks.test_jobs import GPUS

CPU_REASON = _paddle.CPU_REASON
LIBRARIES = [pytest.param("torch", marks=pytest.mark.needs("torch")), "paddle"]
HALF = {"precision": "amp_fp16", "loss_scaling": "dynamic"}


def products_of(library: str) -> Any:
    if library == "paddle":
        return Paddle(configuration()).products
    return Torch(configuration()).products


def with_10_bits(array: Any) -> Any:
    """Round the mantissas of float32 to those that TF32 has."""
    bits = array.view(np.int32) + (1 << 12)
    return (bits & ~((1 << 13) - 1)).view(np.float32)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_cpu_computes_float32_in_float32_and_tf32_would_be_noticed(library):
    products = products_of(library)
    assert format_of_float32(products) == "float32"

    def as_tensor_cores_do(images: Any, weights: Any, number_format: str) -> list[Any]:
        if number_format == "float32":
            images, weights = with_10_bits(images), with_10_bits(weights)
        return products(images, weights, number_format)

    assert format_of_float32(as_tensor_cores_do) == "tf32"


@pytest.mark.needs("torch")
def test_fp32_switches_off_what_computes_float32_in_fewer_bits():
    """The default of a machine, or of a user's start-up file, would make rows of fp32 that are not."""
    import torch

    products = products_of("torch")
    parts = (torch.backends.mkldnn.conv, torch.backends.mkldnn.matmul)
    for part in parts:
        part.fp32_precision = "bf16"
    # Without AMX oneDNN computes float32 in float32 whatever is allowed.
    if "amx_bf16" in CPU_INFO.read_text():
        assert format_of_float32(products) == "bfloat16"
    Torch(configuration(framework="torch_ddp"))
    assert [part.fp32_precision for part in parts] == ["ieee", "ieee"]
    assert format_of_float32(products_of("torch")) == "float32"


@pytest.mark.needs("torch")
@pytest.mark.parametrize(("precision", "expected"), [("fp32", "float32"), ("amp_bf16", "bfloat16")])
def test_the_output_of_a_layer_tells_its_number_format(precision, expected):
    import torch

    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
    autocast = Torch(configuration(precision=precision)).autocast()
    with torch_library.observed_outputs(network) as outputs, autocast():
        network(torch.ones(1, 3, 2, 2))
    network(torch.ones(1, 3, 2, 2))
    assert outputs == [Output(expected)]


def test_a_network_that_multiplies_nothing_has_no_known_precision(refused):
    with refused(RunError):
        observed_format([], products_of("paddle"))


def test_paddle_computes_in_float32_on_a_cpu_whatever_it_is_asked_for():
    """It only warns: without the observation this were a row of bfloat16."""
    import paddle

    network = paddle.nn.Sequential(paddle.nn.Conv2D(3, 2, 3))
    autocast = Paddle(configuration(precision="amp_bf16")).autocast()
    observed, warned = paddle_library.observed_outputs(network), pytest.warns(UserWarning, match=CPU_REASON)
    with warned, observed as outputs, autocast():
        network(paddle.ones([1, 3, 8, 8]))
    assert outputs == [Output("float32", "nchw")]


@pytest.fixture
def gpu_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Paddle's scaler take this CPU for a GPU: the place is all that it checks."""
    place = SimpleNamespace(is_gpu_place=lambda: True)
    monkeypatch.setattr("paddle.amp.grad_scaler._dygraph_tracer", lambda: SimpleNamespace(_expected_place=place))
    monkeypatch.setattr("paddle.amp.grad_scaler.amp_global_state", lambda: SimpleNamespace(amp_dtype="float16"))


def paddle_states(requested: Configuration, losses: list[float]) -> Iterator[LossScaling]:
    """Yield the state of Paddle's scaler after each step of one weight that is multiplied by these."""
    import paddle

    weight = paddle.create_parameter([1], "float32")
    optimizer = paddle.optimizer.SGD(0.1, parameters=[weight])
    scaler = paddle_library.loss_scaler(requested)
    for loss in losses:
        before = weight.numpy().copy()
        scaler.scale((weight * loss).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        assert (before == weight.numpy()).all() == math.isinf(loss)
        yield scaler.state()


def torch_states(requested: Configuration, losses: list[float]) -> Iterator[LossScaling | None]:
    """Yield the same of PyTorch's scaler."""
    import torch

    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = LossScaler(Torch(requested), optimizer)
    for loss in losses:
        before = weight.item()
        scaler.scaler.scale((weight * loss).sum()).backward()
        scaler.scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        assert (before == weight.item()) == math.isinf(loss)
        yield scaler.state()


@pytest.mark.parametrize("states", [paddle_states, pytest.param(torch_states, marks=pytest.mark.needs("torch"))])
@pytest.mark.usefixtures("gpu_place")
def test_scaled_losses_skip_steps_that_overflow(states, monkeypatch):
    """Dynamic scaling halves the scale at each overflow and doubles it after good steps; a constant stays."""
    monkeypatch.setattr("dlperf_study.training.libraries._base.GROWTH_STEPS", 3)
    losses = [1.0, math.inf, math.inf, 1.0, 1.0, 1.0]
    seen = list(states(configuration(**HALF), losses))
    first = FIRST_LOSS_SCALE
    assert [state.scale for state in seen] == [first, first / 2, first / 4, first / 4, first / 4, first / 2]
    assert [state.skipped_steps for state in seen] == [0, 1, 2, 2, 2, 2]
    static = list(states(configuration(precision="amp_fp16", loss_scaling="static"), losses))
    assert [state.scale for state in static] == [STATIC_LOSS_SCALE] * 6
    assert static[-1].skipped_steps == 2


@pytest.mark.needs("torch")
def test_without_loss_scaling_there_is_no_state():
    assert list(torch_states(configuration(framework="torch_ddp"), [1.0])) == [None]


def test_a_scaler_that_paddle_switches_off_has_no_state():
    """So the log of a rank has no scale, and the run fails."""
    with pytest.warns(UserWarning, match="AmpScaler can only be enabled"):
        scaler = paddle_library.loss_scaler(configuration(**HALF))
    assert scaler.state() is None


@pytest.mark.parametrize("model", ["mobilenet_v2", "resnet50"])
def test_channels_last_compute_the_same(model):
    import paddle

    images = np.random.default_rng(0).standard_normal((2, 3, 32, 32), dtype=np.float32)
    losses = []
    for memory_format in ("nchw", "nhwc"):
        requested = configuration(model=model, memory_format=memory_format)
        library = Paddle(requested)
        layer = library.built(0, 1)
        layer.eval()
        tensor = library.in_layout(paddle.to_tensor(images))
        with paddle.no_grad():
            losses.append(layer(tensor, paddle.to_tensor([1, 2])).item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert tensor.shape == [2, 32, 32, 3]


@pytest.mark.parametrize("name", ["paddle_collective", "torch_ddp", "horovod_torch"])
def test_tf32_is_off_on_gpus_unless_it_is_asked_for(name):
    requested = configuration(framework=name)
    framework = frameworks.load(name)
    [fp32] = framework.job(requested, GPUS).tasks
    [tf32] = framework.job(replace(requested, precision="tf32"), GPUS).tasks
    assert fp32.environment.items() >= WITHOUT_TF32.items()
    assert not tf32.environment.keys() & WITHOUT_TF32.keys()
