"""ArcFace (Deng et al., 2019) on ResNet-50: face recognition over 85,742 identities (MS1M).

The backbone is the ResNet-50 v1.5 with a fully connected embedding of 512. InsightFace and PLSC used
a variant of it (3x3 stem, PReLU, batch norm at the embedding), so throughput is not comparable
with theirs one to one; the classifier, which decides how such a training scales, is the same.

Trainable parameters: 23,508,032 of the backbone, 2048 x 512 + 512 of the embedding, and 512 a class.
"""

from typing import Any

from dlperf_study.models._base import FLOPS_SOURCE, Model, NetworkConfiguration
from dlperf_study.models.resnet50 import FEATURES, backbone_macs, torch_network

EMBEDDING = 512


def forward_macs(image_size: int, classes: int) -> int:
    """Return the multiply-accumulates of one forward pass."""
    return backbone_macs(image_size) + FEATURES * EMBEDDING + EMBEDDING * classes


def build_paddle(configuration: NetworkConfiguration, rank: int, world_size: int) -> Any:
    """Build Paddle's ResNet-50 as the embedding, with this rank's part of the classifier."""
    from paddle.vision.models import resnet50

    from dlperf_study.models import _paddle_tensors
    from dlperf_study.models._arcface import arcface_layer

    backbone = resnet50(num_classes=EMBEDDING)
    return arcface_layer(_paddle_tensors, backbone, EMBEDDING, configuration, rank, world_size)


def build_torch(configuration: NetworkConfiguration, rank: int, world_size: int) -> Any:
    """Build PyTorch's ResNet-50 as the embedding, with this rank's part of the classifier."""
    from dlperf_study.models import _torch_tensors
    from dlperf_study.models._arcface import arcface_layer

    return arcface_layer(_torch_tensors, torch_network(EMBEDDING), EMBEDDING, configuration, rank, world_size)


MODEL = Model(
    name="arcface_resnet50",
    image_size=112,
    classes=85_742,
    parameters={85_742: 68_457_024},
    parameters_source="derived: ResNet-50 without its classifier, an embedding of 512, and 512 a class",
    forward_macs=forward_macs,
    flops_source=f"{FLOPS_SOURCE}; the margin and the softmax are left out",
    builders={"paddle": build_paddle, "torch": build_torch},
    classifiers=("replicated", "sharded"),
)
