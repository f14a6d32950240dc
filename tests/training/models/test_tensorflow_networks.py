"""TensorFlow's networks are Paddle's. Each library has its own process: together they end in a segmentation fault."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy
import paddle
import pytest

from dlperf_study.training import models
from dlperf_study.training.frameworks._tensorflow import WITHOUT_KERAS_3
from dlperf_study.training.models._tensorflow_layers import pooling_weights
from tests.training.models.networks import batch, built_with, gradients, parts, seeded, values
from tests.training.models.test_torch_networks import running_means

pytestmark = pytest.mark.timeout(300)
PROGRAM = str(Path(__file__).with_name("tensorflow_networks.py"))
NAMES = built_with("tensorflow")
#: VGG16 has no layer that the others don't have, but its pooling, and ten times their parameters.
COMPARED = [name for name in NAMES if name != "vgg16"]
#: Odd at every stage of these networks, so that the rounding of strides is compared too.
ODD_IMAGE_SIZE = 71
SAMPLES, CLASSES = 4, 10
#: How far two estimates may lie apart, in standard deviations of their difference.
SIGMAS = 5


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """What both libraries computed with each network: the same parameters, the same batch, one step."""
    folder = tmp_path_factory.mktemp("networks")
    by_paddle = {name: step_in_paddle(folder, name) for name in COMPARED}
    environment = {**os.environ, **WITHOUT_KERAS_3, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, PROGRAM, str(folder), *NAMES]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert finished.returncode == 0, finished.stderr[-3000:]
    for name, counts in json.loads(finished.stdout.splitlines()[-1]).items():
        published = {str(classes): parameters for classes, parameters in models.load(name).parameters.items()}
        assert counts == published, name
    return {name: (by_paddle[name], numpy.load(folder / f"{name}-tensorflow.npz")) for name in COMPARED}


def step_in_paddle(folder, name):
    """Write parameters and batch as TensorFlow takes them; return what a step in double precision gives."""
    network = seeded(name, "paddle", image_size=ODD_IMAGE_SIZE, classes=CLASSES)
    parameters = as_in_tensorflow(values(network))
    images, labels = batch(SAMPLES, CLASSES, ODD_IMAGE_SIZE)
    named = {f"parameter_{number}": array for number, array in enumerate(parameters)}
    numpy.savez(folder / f"{name}.npz", images=images.numpy(), labels=labels.numpy(), **named)
    for part in parts(network):
        if type(part).__name__ == "Dropout":
            part.p = 0.0
    network.to(dtype="float64")
    loss = network(images.astype("float64"), labels)
    loss.backward()
    return loss.item(), parameters, as_in_tensorflow(gradients(network)), running_means(network)


def as_in_tensorflow(arrays):
    """Return arrays in order; the weight of a convolution is [out, in, rows, columns] in Paddle."""
    return [array.transpose(2, 3, 1, 0) if array.ndim == 4 else array for array in arrays.values()]


@pytest.mark.needs("tensorflow")
@pytest.mark.parametrize("name", COMPARED)
def test_a_network_is_paddles(compared, name):
    """TensorFlow computes in single precision, whose rounding moves gradients behind batch norms by percents."""
    (loss, parameters, expected_gradients, means), tensorflow = compared[name]
    assert float(tensorflow["loss"]) == pytest.approx(loss, rel=1e-4)
    largest = max(numpy.linalg.norm(gradient) for gradient in expected_gradients)
    for number, expected in enumerate(expected_gradients):
        actual = tensorflow[f"gradient_{number}"]
        allowed = 0.05 * numpy.linalg.norm(expected) + 1e-6 * largest
        assert numpy.linalg.norm(actual - expected) <= allowed, (number, expected.shape)
    for number, mean in enumerate(means):
        assert tensorflow[f"mean_{number}"] == pytest.approx(mean, rel=1e-3, abs=1e-5)
    # Parameters start from the same distribution.
    for array, (deviation, mean) in zip(parameters, tensorflow["starts"], strict=True):
        tolerance = SIGMAS / math.sqrt(array.size)
        assert deviation == pytest.approx(array.std(), rel=tolerance), array.shape
        assert abs(mean - array.mean()) <= math.sqrt(2) * tolerance * array.std(), array.shape


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 7), (2, 7), (7, 7), (9, 7), (14, 7)])
def test_pooling_averages_the_regions_that_paddle_averages(inputs, outputs):
    images = numpy.random.default_rng(7).standard_normal((2, 3, inputs, inputs))
    rows = numpy.array(pooling_weights(inputs, outputs))
    expected = paddle.nn.functional.adaptive_avg_pool2d(paddle.to_tensor(images), outputs).numpy()
    assert numpy.einsum("ph,qw,nchw->ncpq", rows, rows, images) == pytest.approx(expected)
