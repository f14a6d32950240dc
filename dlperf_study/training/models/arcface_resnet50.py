"""ArcFace (Deng et al., 2019) on ResNet-50: face recognition over 85,742 identities (MS1M).

The backbone is the ResNet-50 v1.5 with a fully connected embedding of 512. InsightFace and PLSC used
a variant of it (3x3 stem, PReLU, batch norm at the embedding), so throughput is not comparable
with theirs one to one; the classifier, which decides how such a training scales, is the same.

Trainable parameters: 23,508,032 of the backbone, 2048 x 512 + 512 of the embedding, and 512 a class.

The loss, over a whole classifier or over one shard of it, is written once for all libraries. Sharded: each rank holds
the rows of some classes. Features and labels of all ranks are gathered, each rank computes the logits of its classes,
and the softmax is put together from all-reduced maxima and sums (the "distributed" fully connected layer of PLSC; An
et al., "Partial FC", 2021).
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from dlperf_study.core.errors import UnsupportedError
from dlperf_study.study.configuration import Configuration
from dlperf_study.training.models._base import FLOPS_SOURCE, Model, composed
from dlperf_study.training.models.resnet50 import FEATURES, backbone_macs, network

# ``library`` has the operations of a library that the loss needs: ``normal_parameter``, float32 from N(0, deviation);
# ``cosines`` [N, C] float32 of features [N, E] and centers [C, E]; ``integers``, ``first`` and those after it;
# ``distinct``, the values of a tensor once each, sorted; ``sample_with``, ``count`` row numbers below ``rows``, all
# ``positives`` and others at random; ``all_gathered``, the tensors of all ranks, with the graph of this rank's;
# ``all_reduced``, the SUM or MAX over the ranks.
EMBEDDING = 512
MARGIN = 0.5
SCALE = 64.0
#: Cosines stay this far from 1, where the margin's gradient is infinite.
COSINE_LIMIT = 1 - 1e-6
#: Standard deviation of the initial class centers, as in InsightFace.
CENTER_DEVIATION = 0.01


def forward_macs(image_size: int, classes: int) -> int:
    """Return the multiply-accumulates of one forward pass."""
    return backbone_macs(image_size) + FEATURES * EMBEDDING + EMBEDDING * classes


def build_paddle(configuration: Configuration, rank: int, world_size: int) -> Any:
    """Build Paddle's embedding and this rank's classifier."""
    from paddle.vision.models import resnet50

    from dlperf_study.training.models import _paddle_layers

    backbone = resnet50(num_classes=EMBEDDING)
    return arcface_layer(_paddle_layers.tensors(), backbone, EMBEDDING, configuration, rank, world_size)


def build_torch(configuration: Configuration, rank: int, world_size: int) -> Any:
    """Build PyTorch's embedding and this rank's classifier."""
    from dlperf_study.training.models import _torch_layers

    backbone = _torch_layers.initialised(network(_torch_layers.by_paddle_names(), EMBEDDING))
    return arcface_layer(_torch_layers.tensors(), backbone, EMBEDDING, configuration, rank, world_size)


@dataclass(frozen=True)
class Shard:
    """The classes ``first`` to ``first + rows`` of a classifier that ``ranks`` ranks share."""

    first: int
    rows: int
    rank: int
    ranks: int

    @classmethod
    def of(cls, classes: int, rank: int, ranks: int) -> "Shard":
        """Return the shard of ``rank``; the first may hold one more; raises UnsupportedError."""
        if classes < ranks:
            raise UnsupportedError(f"classes is {classes}, fewer than the {ranks} ranks that need a shard each")
        least, more = divmod(classes, ranks)
        return cls(first=least * rank + min(rank, more), rows=least + (rank < more), rank=rank, ranks=ranks)


def arcface_layer(
    library: Any, backbone: Any, embedding: int, configuration: Configuration, rank: int, world_size: int
) -> Any:
    """Return ``backbone`` with the ArcFace loss."""
    # Replicated, the loss is the mean over this rank's samples. Sharded, it is the mean over the samples of all ranks,
    # the same number on every rank, and gradients are scaled so that **averaging the replicated parameters over the
    # ranks** gives its gradient, as data parallelism does. The gradient of the shard is complete and must not be
    # communicated: its parameter has ``no_sync``.
    sharded = configuration.classifier == "sharded"
    shard = Shard.of(configuration.classes, rank, world_size) if sharded else Shard(0, configuration.classes, 0, 1)
    loss = partial(_loss, library=library, shard=shard, sample_ratio=configuration.sample_ratio)
    centers = _centers(library, shard, embedding, configuration.seed, sharded)
    head = composed(library.Layer, loss, centers=centers)

    def forward(layer: Any, images: Any, labels: Any) -> Any:
        return layer.head(layer.backbone(images), labels)

    return composed(library.Layer, forward, backbone=backbone, head=head)


def sample_rows(library: Any, labels: Any, shard: Shard, sample_ratio: float) -> Any:
    """Return rows of the batch's classes and random others."""
    # All classes of the batch take part, also when they are more than that (Partial FC, algorithm 1).
    inside = (labels >= shard.first) & (labels < shard.first + shard.rows)
    positives = library.distinct(labels[inside] - shard.first)
    return library.sample_with(positives, shard.rows, max(len(positives), math.ceil(shard.rows * sample_ratio)))


def _centers(library: Any, shard: Shard, embedding: int, seed: int, sharded: bool) -> Any:
    """Return the class centers [rows, embedding] of a shard."""
    import numpy

    centers = library.normal_parameter((shard.rows, embedding), CENTER_DEVIATION)
    if sharded:
        centers.no_sync = True
        # Different on each rank: generators with the same seed would repeat classes.
        generator = numpy.random.default_rng([seed, shard.rank])
        values = generator.standard_normal((shard.rows, embedding), dtype="float32")
        library.assign(centers, CENTER_DEVIATION * values)
    return centers


def _loss(head: Any, features: Any, labels: Any, library: Any, shard: Shard, sample_ratio: float) -> Any:
    # Logits reach 64, where neighbours in bfloat16 are 0.25 apart: the softmax is in float32 whatever the backbone's.
    features = _gather(library, library.float32(features), shard)
    if shard.ranks > 1:
        # Each shard holds a part of the gradient that flows to the features of this rank, so it is summed over the
        # ranks, then multiplied by their number because the caller averages what the backbone makes of it.
        features.register_hook(lambda gradient: library.all_reduced(gradient, "SUM") * shard.ranks)
    # A static program gives labels as [N, 1].
    labels = _gather(library, labels.flatten(), shard)
    # The class numbers [C] that take part in this step, and their centers [C, embedding].
    if sample_ratio == 1:
        classes, centers = library.integers(shard.first, shard.rows, like=labels), head.centers
    else:
        rows = sample_rows(library, labels, shard, sample_ratio)
        classes, centers = rows + shard.first, library.take_rows(head.centers, rows)
    is_label = library.float32(labels.unsqueeze(1) == classes.unsqueeze(0))
    return _cross_entropy(library, _logits(library.cosines(features, centers), is_label), is_label, shard)


def _logits(cosines: Any, is_label: Any) -> Any:
    """Return SCALE x cosine [N, C] with the margin."""
    # Equation 3 of Deng et al.; cos(a + m) = cos(a) cos(m) - sin(a) sin(m).
    cosines = cosines.clip(-COSINE_LIMIT, COSINE_LIMIT)
    target = (is_label * cosines).sum(1, keepdim=True)
    with_margin = target * math.cos(MARGIN) - (1 - target.square()).sqrt() * math.sin(MARGIN)
    return SCALE * (cosines + is_label * (with_margin - target))


def _cross_entropy(library: Any, logits: Any, is_label: Any, shard: Shard) -> Any:
    """Return the mean over samples; logits are distributed."""
    largest = logits.detach().amax(1, keepdim=True)
    shifted = logits - (largest if shard.ranks == 1 else library.all_reduced(largest, "MAX"))
    sums = library.stack([shifted.exp().sum(1), (is_label * shifted).sum(1)])
    if shard.ranks > 1:
        # Every rank computes the loss from this sum over the ranks, so each differentiates only its term.
        sums = sums + (library.all_reduced(sums.detach(), "SUM") - sums.detach())
    normalizer, target = sums
    return (normalizer.log() - target).mean()


def _gather(library: Any, tensor: Any, shard: Shard) -> Any:
    """Return a tensor of all ranks, with this rank's gradient."""
    if shard.ranks == 1:
        return tensor
    return library.all_gathered(tensor, shard.rank, shard.ranks)


MODEL = Model(
    name="arcface_resnet50",
    display_name="ArcFace on ResNet-50",
    image_size=112,
    classes=85_742,
    parameters={85_742: 68_457_024},
    parameters_source="derived: ResNet-50 without its classifier, an embedding of 512, and 512 a class",
    forward_macs=forward_macs,
    flops_source=f"{FLOPS_SOURCE}; the margin and the softmax are left out",
    builders={"paddle": build_paddle, "torch": build_torch},
    classifiers=("replicated", "sharded"),
)
