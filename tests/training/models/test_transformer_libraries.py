"""A transformer is the same in each library: the loss of one batch, and what each parameter gets of it.

TensorFlow has a process of its own: with Paddle in one it ends in a segmentation fault.
"""

import os
import subprocess
import sys
from math import sqrt

import numpy
import pytest

from dlperf_study.core.paths import PROJECT
from dlperf_study.training import models
from dlperf_study.training.frameworks._tensorflow import WITHOUT_KERAS_3
from dlperf_study.training.models._sequences import DEVIATION
from tests.training.models.test_transformers import TINY, batch, configuration

pytestmark = [pytest.mark.timeout(300), pytest.mark.needs("torch")]
PROGRAM = "tests.training.models.tensorflow_transformer"
IN_PADDLE = [name for name in TINY if "paddle" in models.load(name).builders]
#: PyTorch names it before the layers, Paddle and TensorFlow make it last.
BIAS_OF_HEAD = "network.head_bias"


def build(name, library):
    return models.load(name).builder(library)(configuration(name), 0, 1)


def in_torch(name):
    """Return loss, parameters and gradients of a step in PyTorch, by name; matrices are [inputs, outputs]."""
    import torch

    torch.manual_seed(0)
    layer = build(name, "torch")
    for parameter in layer.parameters():
        # Biases and norms too: their places among the others are compared.
        parameter.data += 0.01 * torch.randn(parameter.shape)
    loss = layer(*map(torch.from_numpy, batch(name)))
    loss.backward()
    pairs = {key: (parameter.detach(), parameter.grad) for key, parameter in layer.named_parameters()}
    if BIAS_OF_HEAD in pairs:
        pairs[BIAS_OF_HEAD] = pairs.pop(BIAS_OF_HEAD)
    values = {key: [by_columns(key, tensor.numpy()) for tensor in pair] for key, pair in pairs.items()}
    return loss.item(), values


def by_columns(key, array):
    is_linear = array.ndim == 2 and not key.split(".")[1].startswith("w")
    return array.T if is_linear else array


@pytest.mark.parametrize("name", IN_PADDLE)
def test_a_step_is_the_same_in_paddle(name):
    import paddle

    expected_loss, values = in_torch(name)
    layer = build(name, "paddle")
    parameters = dict(layer.named_parameters())
    assert parameters.keys() == values.keys()
    for key, (value, _) in values.items():
        parameters[key].set_value(value)
    loss = layer(*map(paddle.to_tensor, batch(name)))
    loss.backward()
    assert loss.item() == pytest.approx(expected_loss, rel=1e-5)
    for key, (_, gradient) in values.items():
        assert numpy.allclose(parameters[key].grad.numpy(), gradient, rtol=1e-3, atol=1e-5), key


@pytest.mark.parametrize("name", IN_PADDLE)
def test_paddle_begins_as_pytorch_does(name):
    import paddle

    paddle.seed(0)
    parameters = dict(build(name, "paddle").named_parameters())
    residual = DEVIATION / sqrt(2 * models.load(name).sizes.layers)
    for key, parameter in parameters.items():
        if parameter.ndim == 2:
            expected = residual if key.endswith((".wo.weight", ".w2.weight")) else DEVIATION
            assert parameter.numpy().std() == pytest.approx(expected, rel=0.2), key
        elif not key.endswith("weight"):
            assert not parameter.numpy().any()


@pytest.mark.needs("tensorflow")
def test_steps_are_the_same_in_tensorflow(tmp_path):
    """Also an update of AdamW, by TensorFlow's operations, of PyTorch's."""
    import torch

    expected_loss, values = in_torch("bert_tiny")
    arrays = {f"parameter_{number}": value for number, (value, _) in enumerate(values.values())}
    arrays |= {f"batch_{number}": array for number, array in enumerate(batch("bert_tiny"))}
    numpy.savez(tmp_path / "given.npz", **arrays)
    environment = {**os.environ, **WITHOUT_KERAS_3, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, "-m", PROGRAM, str(tmp_path)]
    finished = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=280)
    assert finished.returncode == 0, finished.stderr[-3000:]
    computed = numpy.load(tmp_path / "computed.npz")
    assert computed["loss"] == pytest.approx(expected_loss, rel=1e-5)
    for number, (key, (value, gradient)) in enumerate(values.items()):
        assert numpy.allclose(computed[f"gradient_{number}"], gradient, rtol=1e-3, atol=1e-5), key
        parameter = torch.nn.Parameter(torch.from_numpy(value.copy()))
        optimizer = torch.optim.AdamW([parameter], lr=0.0001)
        for _ in range(3):
            parameter.grad = torch.from_numpy(computed[f"gradient_{number}"])
            optimizer.step()
        assert numpy.allclose(computed[f"updated_{number}"], parameter.detach().numpy(), atol=1e-6), key
