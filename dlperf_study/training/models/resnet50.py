"""ResNet-50 v1.5 (He et al., 2016; the stride of a stage is on its first 3x3 convolution)."""

from collections.abc import Iterator
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.models._base import FLOPS_SOURCE, Model, convolution_macs, strided
from dlperf_study.training.models._image_networks import image_builders

#: Width, bottleneck blocks and stride of each stage; the output of a stage has four times its width.
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
STEM, FEATURES = 64, 2048


def forward_macs(image_size: int, classes: int) -> int:
    """Return the multiply-accumulates of one forward pass."""
    return backbone_macs(image_size) + FEATURES * classes


def backbone_macs(image_size: int) -> int:
    """Return the count of all but the last layer."""
    size = strided(image_size, 2)
    macs = convolution_macs(3, STEM, 7, size)
    size = strided(size, 2)
    for inputs, width, stride in blocks():
        output_size = strided(size, stride)
        macs += convolution_macs(inputs, width, 1, size)
        macs += convolution_macs(width, width, 3, output_size)
        macs += convolution_macs(width, 4 * width, 1, output_size)
        if inputs != 4 * width:  # the shortcut has a convolution too
            macs += convolution_macs(inputs, 4 * width, 1, output_size)
        size = output_size
    return macs


def blocks() -> Iterator[tuple[int, int, int]]:
    """Yield input channels, width and stride of every bottleneck block."""
    channels = STEM
    for width, repetitions, first_stride in STAGES:
        for stride in (first_stride, *[1] * (repetitions - 1)):
            yield channels, width, stride
            channels = 4 * width


def paddle_network(configuration: Configuration) -> Any:
    """Return Paddle's ResNet-50, which is the v1.5."""
    from paddle.vision.models import resnet50

    return resnet50(num_classes=configuration.classes)


def class_network(nn: Any, configuration: Configuration) -> Any:
    """Return the network for the classes of a configuration."""
    return network(nn, configuration.classes)


def network(nn: Any, outputs: int) -> Any:
    """Return Paddle's ResNet-50 in a library's layers."""
    stem = (*nn.convolution_norm(3, STEM, 7, stride=2), nn.ReLU(), nn.MaxPool2D(3, stride=2, padding=1))
    bottlenecks = [_bottleneck(nn, *block) for block in blocks()]
    return nn.Sequential(*stem, *bottlenecks, nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(FEATURES, outputs))


def _bottleneck(nn: Any, inputs: int, width: int, stride: int) -> Any:
    """Return a block, with a projection if shapes differ."""
    outputs = 4 * width
    first = (*nn.convolution_norm(inputs, width, 1), nn.ReLU())
    body = nn.Sequential(
        *first, *nn.convolution_norm(width, width, 3, stride), nn.ReLU(), *nn.convolution_norm(width, outputs, 1)
    )
    shortcut = nn.Identity()
    if inputs != outputs:
        shortcut = nn.Sequential(*nn.convolution_norm(inputs, outputs, 1, stride))
    return nn.Sequential(nn.residual(body, shortcut), nn.ReLU())


BUILDERS = image_builders(class_network, paddle_network)
MODEL = Model(
    name="resnet50",
    display_name="ResNet-50",
    image_size=224,
    classes=1000,
    parameters={10: 23_528_522, 1000: 25_557_032},
    parameters_source="torchvision, ResNet50_Weights.IMAGENET1K_V1, num_params; less 990 x 2,049 for 10 classes",
    forward_macs=forward_macs,
    flops_source=f"{FLOPS_SOURCE}; torchvision gives 4.089e9 multiply-accumulates at 224",
    builders=BUILDERS,
    pools_to_pixel=True,
)
