"""VGG16 for ImageNet (Simonyan and Zisserman, 2015, configuration D), without batch norm."""

from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.models._base import FLOPS_SOURCE, Model, convolution_macs
from dlperf_study.training.models._image_networks import image_builders

#: Channels and number of 3x3 convolutions of each group; a group ends in a 2x2 max pooling.
GROUPS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))


def convolutions_macs(image_size: int) -> int:
    """Return the multiply-accumulates of the thirteen convolutions."""
    macs, inputs, size = 0, 3, image_size
    for channels, layers in GROUPS:
        macs += convolution_macs(inputs, channels, 3, size)
        macs += (layers - 1) * convolution_macs(channels, channels, 3, size)
        inputs, size = channels, size // 2
    return macs


def forward_macs(image_size: int, classes: int) -> int:
    """Return the count of a forward pass at any size."""
    return convolutions_macs(image_size) + 512 * 7 * 7 * 4096 + 4096 * 4096 + 4096 * classes


def _paddle(configuration: Configuration) -> Any:
    from paddle.vision.models import vgg16

    return vgg16(num_classes=configuration.classes)


def _network(nn: Any, configuration: Configuration) -> Any:
    """Return the network in a library's layers."""
    # It pools features to 7x7 at any size of images, as Paddle's does.
    layers: list[Any] = []
    inputs = 3
    for channels, convolutions in GROUPS:
        for _ in range(convolutions):
            layers += [nn.Conv2D(inputs, channels, 3, padding=1), nn.ReLU()]
            inputs = channels
        layers.append(nn.MaxPool2D(2, 2))
    layers += [nn.AdaptiveAvgPool2D(7), nn.Flatten()]
    for features in (512 * 7 * 7, 4096):
        layers += [nn.Linear(features, 4096), nn.ReLU(), nn.Dropout(0.5)]
    return nn.Sequential(*layers, nn.Linear(4096, configuration.classes))


MODEL = Model(
    name="vgg16",
    display_name="VGG16",
    image_size=224,
    classes=1000,
    parameters={1000: 138_357_544},
    parameters_source="torchvision, VGG16_Weights.IMAGENET1K_V1, num_params",
    forward_macs=forward_macs,
    flops_source=f"{FLOPS_SOURCE}; torchvision gives 15.47e9 multiply-accumulates at 224",
    builders=image_builders(_network, _paddle),
    smallest_image_size=32,
)
