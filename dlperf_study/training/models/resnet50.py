"""ResNet-50 v1.5 (He et al., 2016; the stride of a stage is on its first 3x3 convolution)."""

from collections.abc import Iterator
from typing import Any

from dlperf_study.training.models._base import FLOPS_SOURCE, Model, NetworkConfiguration, convolution_macs, strided

#: Width, bottleneck blocks and stride of each stage; the output of a stage has four times its width.
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
STEM, FEATURES = 64, 2048


def forward_macs(image_size: int, classes: int) -> int:
    """Return the multiply-accumulates of one forward pass."""
    return backbone_macs(image_size) + FEATURES * classes


def backbone_macs(image_size: int) -> int:
    """Return the multiply-accumulates of everything before the last fully connected layer."""
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


def build_paddle(configuration: NetworkConfiguration, rank: int, world_size: int) -> Any:
    """Build Paddle's ResNet-50, which is the v1.5, with cross-entropy."""
    from paddle.vision.models import resnet50

    from dlperf_study.training.models._paddle_layers import cross_entropy_layer

    return cross_entropy_layer(resnet50(num_classes=configuration.classes))


def build_torch(configuration: NetworkConfiguration, rank: int, world_size: int) -> Any:
    """Build the same network in PyTorch with cross-entropy."""
    from dlperf_study.training.models._torch_layers import cross_entropy_module

    return cross_entropy_module(torch_network(configuration.classes))


def torch_network(outputs: int) -> Any:
    """Return Paddle's ResNet-50 as a PyTorch module from images [N, 3, S, S] to [N, outputs]."""
    from dlperf_study.training.models._torch_layers import by_paddle_names, initialised

    return initialised(network(by_paddle_names(), outputs))


def build_tensorflow(configuration: NetworkConfiguration, rank: int, world_size: int) -> Any:
    """Build the same network in TensorFlow with cross-entropy."""
    from dlperf_study.training.models._tensorflow_layers import Layers, Network

    layers = Layers(configuration.seed, configuration.memory_format)
    return Network(layers, network(layers, configuration.classes))


def network(nn: Any, outputs: int) -> Any:
    """Return Paddle's ResNet-50 in a library's layers; ``nn`` names them as ``paddle.nn`` does."""
    stem = (*nn.convolution_norm(3, STEM, 7, stride=2), nn.ReLU(), nn.MaxPool2D(3, stride=2, padding=1))
    bottlenecks = [_bottleneck(nn, *block) for block in blocks()]
    return nn.Sequential(*stem, *bottlenecks, nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(FEATURES, outputs))


def _bottleneck(nn: Any, inputs: int, width: int, stride: int) -> Any:
    """Return one block; where it changes the shape of its input, the shortcut has a convolution too."""
    outputs = 4 * width
    first = (*nn.convolution_norm(inputs, width, 1), nn.ReLU())
    body = nn.Sequential(
        *first, *nn.convolution_norm(width, width, 3, stride), nn.ReLU(), *nn.convolution_norm(width, outputs, 1)
    )
    is_projected = inputs != outputs
    shortcut = nn.Sequential(*nn.convolution_norm(inputs, outputs, 1, stride)) if is_projected else nn.Identity()
    return nn.Sequential(nn.residual(body, shortcut), nn.ReLU())


MODEL = Model(
    name="resnet50",
    display_name="ResNet-50",
    image_size=224,
    classes=1000,
    parameters={10: 23_528_522, 1000: 25_557_032},
    parameters_source="torchvision, ResNet50_Weights.IMAGENET1K_V1, num_params; less 990 x 2,049 for 10 classes",
    forward_macs=forward_macs,
    flops_source=f"{FLOPS_SOURCE}; torchvision gives 4.089e9 multiply-accumulates at 224",
    builders={"paddle": build_paddle, "torch": build_torch, "tensorflow": build_tensorflow},
    pools_to_pixel=True,
)
