"""PyTorch's networks are Paddle's: a comparison of the two compares libraries, not models."""

import math
from importlib import import_module

import numpy
import pytest

from tests.training.models.networks import (
    LIBRARIES,
    assign,
    batch,
    built_with,
    gradients,
    parts,
    seeded,
    trained,
    values,
)

pytestmark = pytest.mark.needs("torch")
#: Odd at every stage of these networks, so that the rounding of strides is compared too.
ODD_IMAGE_SIZE = 71
SAMPLES = 4
#: The hidden features of VGG16, and as many as show the same: to compare 119 million gradients takes long.
HIDDEN, ENOUGH = 4096, 64
#: How far two estimates may lie apart, in standard deviations of their difference: 1 pair in 1.7 million does.
SIGMAS = 5


def narrow(linear):
    """Return linear layers with fewer hidden features."""

    class Linear(linear):
        def __init__(self, inputs, outputs, *others, **named):
            sizes = [ENOUGH if size == HIDDEN else size for size in (inputs, outputs)]
            super().__init__(*sizes, *others, **named)

    return Linear


def step(network, library):
    """Do one step without dropout; return loss, gradients and running means.

    In double precision, but for the head of ArcFace, which computes in single. Single precision hides a real
    difference: rounding alone moves gradients behind batch norms by percents.
    """
    import torch

    number_type = {"paddle": "float64", "torch": torch.float64}[library]
    getattr(network, "backbone", network).to(dtype=number_type)
    for part in parts(network):
        if type(part).__name__ == "Dropout":
            part.p = 0.0
    images, labels = batch(SAMPLES, 10, ODD_IMAGE_SIZE, library)
    loss = network(images.to(number_type), labels)
    loss.backward()
    return loss.item(), as_in_torch(network, gradients(network)), running_means(network)


def as_in_torch(network, arrays):
    """Return arrays in order; the weight of a linear layer is [in, out] in Paddle and [out, in] in PyTorch."""
    turned = set()
    if hasattr(network, "named_sublayers"):
        turned = {f"{name}.weight" for name, part in network.named_sublayers() if type(part).__name__ == "Linear"}
    return [transposed(array) if name in turned else array for name, array in arrays.items()]


def transposed(array):
    """Return the transpose, in its own order in memory; NumPy takes seconds for 100 million numbers."""
    import torch

    return torch.from_numpy(array).t().contiguous().numpy()


def running_means(network):
    return [array.numpy() for name, array in network.state_dict().items() if name.endswith(("._mean", ".running_mean"))]


@pytest.mark.parametrize("name", [name for name in built_with("paddle") if name in built_with("torch")])
def test_a_network_is_paddles(name, monkeypatch):
    """A bias before a batch norm has no gradient but rounding, so errors are held against the largest one too."""
    for library in LIBRARIES:
        nn = import_module(f"{library}.nn")
        monkeypatch.setattr(nn, "Linear", narrow(nn.Linear))
    networks = [seeded(name, library, image_size=ODD_IMAGE_SIZE) for library in LIBRARIES]
    expected_starts, starts = (as_in_torch(network, values(network)) for network in networks)
    for expected, actual in zip(expected_starts, starts, strict=True):
        assert actual.shape == expected.shape
        tolerance, deviation = SIGMAS / math.sqrt(expected.size), expected.std()
        assert actual.std() == pytest.approx(deviation, rel=tolerance), expected.shape
        assert abs(actual.mean() - expected.mean()) <= math.sqrt(2) * tolerance * deviation, expected.shape
    for array, parameter in zip(expected_starts, trained(networks[1]).values(), strict=True):
        assign(parameter, array, "torch")
    steps = [step(network, library) for network, library in zip(networks, LIBRARIES, strict=True)]
    (expected_loss, expected_gradients, expected_means), (loss, actual_gradients, means) = steps
    assert loss == pytest.approx(expected_loss, rel=1e-6)
    for expected, actual in zip(expected_means, means, strict=True):
        assert actual == pytest.approx(expected, rel=1e-5, abs=1e-6)
    largest = max(numpy.linalg.norm(gradient) for gradient in expected_gradients)
    for expected, actual in zip(expected_gradients, actual_gradients, strict=True):
        allowed = 1e-5 * numpy.linalg.norm(expected) + 1e-9 * largest
        assert numpy.linalg.norm(actual - expected) <= allowed
