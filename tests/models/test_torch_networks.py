"""PyTorch's networks are Paddle's: a comparison of the two compares libraries, not models."""

import math
from dataclasses import dataclass
from importlib import import_module

import numpy
import pytest

from tests.models.networks import LIBRARIES, assign, batch, built_with, gradients, parts, seeded, trained, values

pytestmark = pytest.mark.needs("torch")
#: Odd at every stage of these networks, so that the rounding of strides is compared too.
ODD_IMAGE_SIZE = 71
SAMPLES = 4
#: The hidden features of VGG16, and as many as show the same: to compare 119 million gradients takes long.
HIDDEN, ENOUGH = 4096, 64
#: How far two estimates may lie apart, in standard deviations of their difference: 1 pair in 1.7 million does.
SIGMAS = 5


@dataclass(frozen=True)
class Trained:
    """What one library computed with a model; arrays as PyTorch lays them out, in the order of the parameters."""

    shapes: list
    deviations: list
    means: list
    loss: float
    gradients: list
    running_means: list


@pytest.fixture(scope="module", params=[name for name in built_with("paddle") if name in built_with("torch")])
def pair(request):
    """Both libraries' network as built, and then after a step on the same batch with Paddle's parameters."""
    with pytest.MonkeyPatch.context() as patch:
        for library in LIBRARIES:
            nn = import_module(f"{library}.nn")
            patch.setattr(nn, "Linear", narrow(nn.Linear))
        networks = [seeded(request.param, library, image_size=ODD_IMAGE_SIZE) for library in LIBRARIES]
    starts = [start(network) for network in networks]
    copy_parameters(*networks)
    return [
        Trained(*begun, *step(network, library))
        for begun, network, library in zip(starts, networks, LIBRARIES, strict=True)
    ]


def narrow(linear):
    """Return linear layers with fewer hidden features."""

    class Linear(linear):
        def __init__(self, inputs, outputs, *others, **named):
            sizes = [ENOUGH if size == HIDDEN else size for size in (inputs, outputs)]
            super().__init__(*sizes, *others, **named)

    return Linear


def start(network):
    arrays = as_in_torch(network, values(network))
    return [array.shape for array in arrays], [array.std() for array in arrays], [array.mean() for array in arrays]


def step(network, library):
    """Do one step without dropout; return loss, gradients and running means."""
    for part in parts(network):
        if type(part).__name__ == "Dropout":
            part.p = 0.0
    loss = network(*in_double_precision(network, library))
    loss.backward()
    return loss.item(), as_in_torch(network, gradients(network)), running_means(network)


def in_double_precision(network, library):
    """Convert the network, but not the head of ArcFace, which computes in single; return a batch for it.

    Single precision hides a real difference: rounding alone moves gradients behind batch norms by percents.
    """
    getattr(network, "backbone", network).to(dtype=tensor_type(library))
    images, labels = batch(SAMPLES, 10, ODD_IMAGE_SIZE, library)
    return images.to(tensor_type(library)), labels


def tensor_type(library):
    import torch

    return {"paddle": "float64", "torch": torch.float64}[library]


def copy_parameters(paddle_network, torch_network):
    arrays = as_in_torch(paddle_network, values(paddle_network))
    for array, parameter in zip(arrays, trained(torch_network).values(), strict=True):
        assign(parameter, array, "torch")


def as_in_torch(network, arrays):
    """Return arrays in order; the weight of a linear layer is [in, out] in Paddle and [out, in] in PyTorch."""
    turned = transposed_names(network)
    return [transposed(array) if name in turned else array for name, array in arrays.items()]


def transposed(array):
    """Return the transpose, in its own order in memory; NumPy takes seconds for 100 million numbers."""
    import torch

    return torch.from_numpy(array).t().contiguous().numpy()


def transposed_names(network):
    if not hasattr(network, "named_sublayers"):
        return set()
    return {f"{name}.weight" for name, part in network.named_sublayers() if type(part).__name__ == "Linear"}


def running_means(network):
    return [array.numpy() for name, array in network.state_dict().items() if name.endswith(("._mean", ".running_mean"))]


def test_the_loss_the_shapes_and_the_running_means_are_the_same(pair):
    paddle, torch = pair
    assert torch.shapes == paddle.shapes
    assert torch.loss == pytest.approx(paddle.loss, rel=1e-6)
    for expected, actual in zip(paddle.running_means, torch.running_means, strict=True):
        assert actual == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_parameters_start_from_the_same_distribution(pair):
    paddle, torch = pair
    for number, shape in enumerate(paddle.shapes):
        tolerance, deviation = SIGMAS / math.sqrt(math.prod(shape)), paddle.deviations[number]
        means = paddle.means[number], torch.means[number]
        assert torch.deviations[number] == pytest.approx(deviation, rel=tolerance), (number, shape)
        assert abs(means[0] - means[1]) <= math.sqrt(2) * tolerance * deviation, (number, shape)


def test_every_gradient_is_the_same(pair):
    """A bias before a batch norm has none but rounding, so errors are held against the largest gradient too."""
    paddle, torch = pair
    largest = max(numpy.linalg.norm(gradient) for gradient in paddle.gradients)
    for expected, actual in zip(paddle.gradients, torch.gradients, strict=True):
        allowed = 1e-5 * numpy.linalg.norm(expected) + 1e-9 * largest
        assert numpy.linalg.norm(actual - expected) <= allowed
