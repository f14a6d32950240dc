"""ResNet-50 with a bias on every convolution: the size of the network in the ElasticDL report.

The report trained the ResNet50 of Keras on CIFAR-10: 23,555,082 parameters in 214 tensors, which is
ResNet-50 plus one bias for each of 26,560 output channels. Keras puts the stride of a stage on the
first 1x1 convolution; this network keeps it on the 3x3, so it communicates the same bytes and
computes a little more.
"""

from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.models import resnet50
from dlperf_study.training.models._base import Model
from dlperf_study.training.models._image_networks import image_builders


def build_paddle(configuration: Configuration, rank: int, world_size: int) -> Any:
    """Build Paddle's ResNet-50, then give each convolution a bias."""
    from paddle.nn import Conv2D

    layer = resnet50.BUILDERS["paddle"](configuration, rank, world_size)
    for convolution in layer.sublayers():
        if isinstance(convolution, Conv2D):
            convolution.bias = convolution.create_parameter([convolution.weight.shape[0]], is_bias=True)
    return layer


def build_torch(configuration: Configuration, rank: int, world_size: int) -> Any:
    """Build PyTorch's ResNet-50, then add biases of 0."""
    import torch

    module = resnet50.BUILDERS["torch"](configuration, rank, world_size)
    for convolution in module.modules():
        if isinstance(convolution, torch.nn.Conv2d):
            convolution.bias = torch.nn.Parameter(torch.zeros(convolution.out_channels))
    return module


BUILDERS = image_builders(resnet50.class_network, resnet50.paddle_network, convolution_biases=True)
BUILDERS |= {"paddle": build_paddle, "torch": build_torch}
MODEL = Model(
    name="resnet50_convolution_biases",
    display_name="ResNet-50 with convolution biases",
    image_size=32,
    classes=10,
    parameters={10: 23_555_082},
    parameters_source="ElasticDL, docs/benchmark/ftlib_benchmark.md",
    forward_macs=resnet50.forward_macs,
    flops_source=resnet50.MODEL.flops_source,
    builders=BUILDERS,
    pools_to_pixel=True,
)
