"""MobileNetV2 at width 1.0 (Sandler et al., 2018)."""

from collections.abc import Iterator
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training.models._base import FLOPS_SOURCE, Model, convolution_macs, strided
from dlperf_study.training.models._image_networks import image_builders

#: Expansion, output channels, blocks and stride of the first block: table 2 of the paper.
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
#: Channels after the first convolution, and before the classifier.
STEM, FEATURES = 32, 1280


def blocks() -> Iterator[tuple[int, int, int, int]]:
    """Yield channels, expansion, output channels and stride of blocks."""
    channels = STEM
    for expansion, outputs, repetitions, first_stride in STAGES:
        for stride in (first_stride, *[1] * (repetitions - 1)):
            yield channels, expansion, outputs, stride
            channels = outputs


def forward_macs(image_size: int, classes: int) -> int:
    """Return the multiply-accumulates of one forward pass."""
    size = strided(image_size, 2)
    macs = convolution_macs(3, STEM, 3, size)
    for inputs, expansion, outputs, stride in blocks():
        hidden, output_size = inputs * expansion, strided(size, stride)
        if expansion > 1:  # otherwise the block has no first 1x1 convolution
            macs += convolution_macs(inputs, hidden, 1, size)
        macs += convolution_macs(hidden, hidden, 3, output_size, groups=hidden)
        macs += convolution_macs(hidden, outputs, 1, output_size)
        size = output_size
    return macs + convolution_macs(STAGES[-1][1], FEATURES, 1, size) + FEATURES * classes


def _paddle(configuration: Configuration) -> Any:
    from paddle.vision.models import mobilenet_v2

    return mobilenet_v2(num_classes=configuration.classes)


def _network(nn: Any, configuration: Configuration) -> Any:
    """Return the network in a library's layers."""
    first = (*nn.convolution_norm(3, STEM, 3, stride=2), nn.ReLU6())
    residuals = [_inverted_residual(nn, *block) for block in blocks()]
    last = (*nn.convolution_norm(STAGES[-1][1], FEATURES, 1), nn.ReLU6())
    classifier = (nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(FEATURES, configuration.classes))
    return nn.Sequential(*first, *residuals, *last, *classifier)


def _inverted_residual(nn: Any, inputs: int, expansion: int, outputs: int, stride: int) -> Any:
    """Return a block, residual if it keeps its shape."""
    hidden = inputs * expansion
    expand = (*nn.convolution_norm(inputs, hidden, 1), nn.ReLU6()) if expansion > 1 else ()
    depthwise = (*nn.convolution_norm(hidden, hidden, 3, stride, groups=hidden), nn.ReLU6())
    body = nn.Sequential(*expand, *depthwise, *nn.convolution_norm(hidden, outputs, 1))
    if stride == 1 and inputs == outputs:
        return nn.residual(body, nn.Identity())
    return body


MODEL = Model(
    name="mobilenet_v2",
    display_name="MobileNetV2",
    image_size=224,
    classes=1000,
    parameters={10: 2_236_682, 1000: 3_504_872},
    parameters_source="ElasticDL, docs/benchmark/ftlib_benchmark.md (10 classes); torchvision, num_params (1000)",
    forward_macs=forward_macs,
    flops_source=f"{FLOPS_SOURCE}; torchvision gives 0.301e9 multiply-accumulates at 224",
    builders=image_builders(_network, _paddle),
    pools_to_pixel=True,
)
