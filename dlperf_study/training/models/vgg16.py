"""VGG16 for ImageNet (Simonyan and Zisserman, 2015, configuration D), without batch norm."""

from typing import Any

from dlperf_study.training.models._base import FLOPS_SOURCE, Model, NetworkConfiguration, convolution_macs

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
    """Return the multiply-accumulates of one forward pass; features are pooled to 7x7 at any size."""
    return convolutions_macs(image_size) + 512 * 7 * 7 * 4096 + 4096 * 4096 + 4096 * classes


def build_paddle(configuration: NetworkConfiguration, rank: int, world_size: int) -> Any:
    """Build Paddle's VGG16 with cross-entropy."""
    from paddle.vision.models import vgg16

    from dlperf_study.training.models._paddle_layers import cross_entropy_layer

    return cross_entropy_layer(vgg16(num_classes=configuration.classes))


def build_torch(configuration: NetworkConfiguration, rank: int, world_size: int) -> Any:
    """Build the same network in PyTorch with cross-entropy."""
    from dlperf_study.training.models._torch_layers import by_paddle_names, cross_entropy_module, initialised

    return cross_entropy_module(initialised(network(by_paddle_names(), configuration.classes)))


def build_tensorflow(configuration: NetworkConfiguration, rank: int, world_size: int) -> Any:
    """Build the same network in TensorFlow with cross-entropy."""
    from dlperf_study.training.models._tensorflow_layers import Layers, Network

    layers = Layers(configuration.seed, configuration.memory_format)
    return Network(layers, network(layers, configuration.classes))


def network(nn: Any, outputs: int) -> Any:
    """Return the network in a library's layers; ``nn`` names them as ``paddle.nn`` does.

    It pools features to 7x7 at any size of images, as Paddle's does.
    """
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
    return nn.Sequential(*layers, nn.Linear(4096, outputs))


MODEL = Model(
    name="vgg16",
    display_name="VGG16",
    image_size=224,
    classes=1000,
    parameters={1000: 138_357_544},
    parameters_source="torchvision, VGG16_Weights.IMAGENET1K_V1, num_params",
    forward_macs=forward_macs,
    flops_source=f"{FLOPS_SOURCE}; torchvision gives 15.47e9 multiply-accumulates at 224",
    builders={"paddle": build_paddle, "torch": build_torch, "tensorflow": build_tensorflow},
    smallest_image_size=32,
)
