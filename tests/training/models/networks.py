"""Networks, batches and parameters of both libraries, shared by the tests of the networks."""

from importlib import import_module

import numpy

from dlperf_study.study.configuration import Configuration
from dlperf_study.training import models
from dlperf_study.training.models._base import Model

#: Those that can share a process.
LIBRARIES = ("paddle", "torch")
#: How each library makes a tensor of an array, and seeds its generator.
CONVERTERS = {"paddle": "to_tensor", "torch": "from_numpy"}
SEEDERS = {"paddle": "seed", "torch": "manual_seed"}


def built_with(library):
    """Return the models of images that a library can build."""
    built = {name: models.load(name) for name in models.names()}
    return [name for name, model in built.items() if isinstance(model, Model) and library in model.builders]


def built_networks():
    """Return every model with each library of this process that can build it."""
    return [(name, library) for library in LIBRARIES for name in built_with(library)]


def build(name, rank=0, world_size=1, library="paddle", **changes):
    values = {"image_size": 32, "classes": 10, **changes}
    configuration = Configuration(study="s", cluster="c", framework="f", strategy="d", model=name, **values)
    return models.load(name).builder(library)(configuration, rank, world_size)


def seeded(name, library, **changes):
    """Build a network whose initial parameters are the same at every call."""
    getattr(import_module(library), SEEDERS[library])(1)
    return build(name, library=library, **changes)


def batch(samples, classes, image_size=32, library="paddle"):
    """Return images and labels, the same at every call."""
    random = numpy.random.default_rng(7)
    images = random.standard_normal((samples, 3, image_size, image_size)).astype("float32")
    return tensor(images, library), tensor(random.integers(0, classes, samples), library)


def tensor(values, library):
    return getattr(import_module(library), CONVERTERS[library])(numpy.asarray(values))


def assign(parameter, values, library):
    import_module(f"dlperf_study.training.models._{library}_layers").tensors().assign(parameter, values)


def parts(layer):
    """Return all layers inside a layer."""
    return layer.sublayers() if hasattr(layer, "sublayers") else layer.modules()


def after_forward(layer, hook):
    """Call ``hook(layer, inputs, output)`` whenever the layer has run."""
    register = "register_forward_post_hook" if hasattr(layer, "sublayers") else "register_forward_hook"
    getattr(layer, register)(hook)


def trained(layer):
    """Return the trainable parameters by name; Paddle lists the statistics of batch norm as parameters too."""
    return {name: p for name, p in layer.named_parameters() if not getattr(p, "stop_gradient", False)}


def values(layer):
    return {name: parameter.detach().numpy() for name, parameter in trained(layer).items()}


def gradients(layer):
    return {name: parameter.grad.numpy() for name, parameter in trained(layer).items()}


def count(parameters):
    return sum(int(numpy.prod(parameter.shape)) for parameter in parameters)
