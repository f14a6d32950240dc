"""Each network is the one its file says it is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from dlperf_study.training import models
from dlperf_study.training.libraries.paddle import Paddle
from dlperf_study.training.models._paddle_layers import trainable_parameters
from tests.training.models.networks import (
    after_forward,
    batch,
    build,
    built_networks,
    built_with,
    count,
    gradients,
    parts,
    trained,
)

#: Odd at every stage of these networks, so that the rounding of strides is tested too.
ODD_IMAGE_SIZE = 71
SAMPLES = 2

every_network = pytest.mark.parametrize(("name", "library"), built_networks())

PUBLISHED = [(name, library, classes) for name, library in built_networks() for classes in models.load(name).parameters]


@pytest.mark.parametrize(("name", "library", "classes"), PUBLISHED)
def test_the_built_network_has_the_published_number_of_parameters(name, library, classes):
    model = models.load(name)
    layer = build(name, library=library, image_size=model.image_size, classes=classes)
    assert count(trained(layer).values()) == model.parameters[classes]


def test_the_network_of_the_elasticdl_report_has_its_number_of_tensors():
    assert len(trainable_parameters(build("resnet50_convolution_biases"))) == 214


@every_network
def test_a_step_does_the_declared_multiply_accumulates_and_gives_every_parameter_a_gradient(name, library):
    layer = build(name, library=library, image_size=ODD_IMAGE_SIZE)
    macs = _count_macs(layer)
    loss = layer(*batch(SAMPLES, 10, ODD_IMAGE_SIZE, library))
    assert models.load(name).forward_macs(ODD_IMAGE_SIZE, 10) == sum(macs) / SAMPLES
    loss.backward()
    assert list(loss.shape) == []
    assert numpy.isfinite(loss.item())
    assert all(numpy.isfinite(gradient).all() for gradient in gradients(layer).values())


def test_statistics_of_batch_norm_are_neither_trained_nor_compared_between_ranks():
    layer = build("resnet50")
    assert len(layer.parameters()) == 267
    assert len(trainable_parameters(layer)) == len(Paddle(None).replicated_parameters(layer)) == 161


@pytest.mark.parametrize(("name", "published"), [("vgg16", 15.47), ("resnet50", 4.089), ("mobilenet_v2", 0.301)])
def test_declared_multiply_accumulates_are_those_torchvision_publishes(name, published):
    assert round(models.load(name).forward_macs(224, 1000) / 1e9, 3) == pytest.approx(published, abs=0.0005)


@pytest.fixture(scope="module")
def static_losses(request):
    """Two losses of each model that is tested, from a static program in a process of its own: the mode is global."""
    tested = {item.callspec.params["name"] for item in request.session.items if "static_losses" in item.fixturenames}
    environment = {**os.environ, "FLAGS_enable_pir_api": "0", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name("static_programs.py")), *sorted(tested)]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads(finished.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", built_with("paddle"))
def test_a_static_program_trains_with_labels_in_a_column(name, static_losses):
    first, second = static_losses[name]
    assert numpy.isfinite([first, second]).all()
    assert first != second


def _count_macs(layer):
    """Return a list with those of ArcFace's head; each convolution and linear layer appends its own as it runs."""
    macs = [SAMPLES * count([layer.head.centers]) if hasattr(layer, "head") else 0]

    def add(part, _inputs, output):
        macs.append(count([part.weight]) // output.shape[1] * count([output]))

    for part in parts(layer):
        if type(part).__name__ in ("Conv2D", "Conv2d", "Linear"):
            after_forward(part, add)
    return macs
