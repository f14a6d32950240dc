"""VGG16 of Paddle's Fluid cluster benchmark (2018): CIFAR-10, batch norm, dropout, 512 wide.

``vgg16_bn_drop`` of benchmark/cluster/vgg16/vgg16_fluid.py. Trainable parameters at C classes:

- thirteen 3x3 convolutions: 14,710,464 weights and 4,224 biases (Fluid's ``img_conv_group`` kept
  the bias before a batch norm), and twice 4,224 for their batch norms: 14,723,136
- two fully connected layers 512 to 512: 2 x (512 x 512 + 512) = 525,312
- the batch norm between them: 2 x 512 = 1,024
- the classifier: 513 x C, so 5,130 at 10 classes

Together 15,254,602 at 10 classes and images of 32x32.
"""

from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.models._base import FLOPS_SOURCE, Model
from dlperf_study.training.models._image_networks import image_builders
from dlperf_study.training.models.vgg16 import GROUPS, convolutions_macs

#: Dropout after each convolution but the last of a group, by group.
DROPOUTS = (0.3, 0.4, 0.4, 0.4, 0.4)
WIDTH = 512
#: Five 2x2 poolings divide the side of an image by this.
SHRINKING = 32


def forward_macs(image_size: int, classes: int) -> int:
    """Return the multiply-accumulates of one forward pass."""
    return convolutions_macs(image_size) + _features(image_size) * WIDTH + WIDTH * WIDTH + WIDTH * classes


def _paddle(configuration: Configuration) -> Any:
    from paddle import nn

    return _network(nn, configuration)


def _network(nn: Any, configuration: Configuration) -> Any:
    layers: list[Any] = []
    inputs = 3
    for (channels, convolutions), dropout in zip(GROUPS, DROPOUTS, strict=True):
        for convolution in range(convolutions):
            layers += [nn.Conv2D(inputs, channels, 3, padding=1), nn.BatchNorm2D(channels), nn.ReLU()]
            if convolution < convolutions - 1:
                layers.append(nn.Dropout(dropout))
            inputs = channels
        layers.append(nn.MaxPool2D(2, 2))
    layers += [nn.Flatten(), nn.Dropout(0.5), nn.Linear(_features(configuration.image_size), WIDTH)]
    layers += [nn.BatchNorm1D(WIDTH), nn.ReLU(), nn.Dropout(0.5), nn.Linear(WIDTH, WIDTH)]
    layers.append(nn.Linear(WIDTH, configuration.classes))
    return nn.Sequential(*layers)


def _features(image_size: int) -> int:
    """Return how many features the convolutions have as output."""
    side = image_size // SHRINKING
    return GROUPS[-1][0] * side * side


MODEL = Model(
    name="vgg16_cifar",
    display_name="VGG16 for CIFAR-10",
    image_size=32,
    classes=10,
    parameters={10: 15_254_602},
    parameters_source="derived from benchmark/cluster/vgg16/vgg16_fluid.py of PaddlePaddle; no count was published",
    forward_macs=forward_macs,
    flops_source=FLOPS_SOURCE,
    builders=image_builders(_network, _paddle),
    smallest_image_size=SHRINKING,
)
