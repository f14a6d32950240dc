"""The ArcFace loss in Paddle, over a whole classifier or over one shard of it.

Sharded: each rank holds the rows of some classes. Features and labels of all ranks are gathered, each
rank computes the logits of its classes, and the softmax is put together from all-reduced maxima and
sums (the "distributed" fully connected layer of PLSC; An et al., "Partial FC", 2021).
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from dlperf_study.errors import UnsupportedError
from dlperf_study.models._paddle_losses import loss_layer
from dlperf_study.models.base import NetworkConfiguration

MARGIN = 0.5
SCALE = 64.0
#: Cosines stay this far from 1, where the margin's gradient is infinite.
COSINE_LIMIT = 1 - 1e-6


@dataclass(frozen=True)
class Shard:
    """The classes ``first`` to ``first + rows`` of a classifier that ``ranks`` ranks share."""

    first: int
    rows: int
    rank: int
    ranks: int

    @classmethod
    def of(cls, classes: int, rank: int, ranks: int) -> "Shard":
        """Return the shard of ``rank``; when classes don't divide evenly, the first ranks hold one more.

        Raises UnsupportedError when a rank would be left without a class.
        """
        if classes < ranks:
            raise UnsupportedError(f"classes is {classes}, too few to give each of {ranks} ranks a shard")
        least, more = divmod(classes, ranks)
        return cls(first=least * rank + min(rank, more), rows=least + (rank < more), rank=rank, ranks=ranks)


def arcface_layer(
    backbone: Any, embedding: int, configuration: NetworkConfiguration, rank: int, world_size: int
) -> Any:
    """Return ``backbone``, which puts out [N, embedding], with the ArcFace loss.

    Replicated, the loss is the mean over this rank's samples. Sharded, it is the mean over the samples of
    all ranks, the same number on every rank, and gradients are scaled so that **averaging the replicated
    parameters over the ranks** gives its gradient, as data parallelism does. The shard's own gradient is
    complete and must not be exchanged: its parameter carries ``no_sync``.
    """
    sharded = configuration.classifier == "sharded"
    shard = Shard.of(configuration.classes, rank, world_size) if sharded else Shard(0, configuration.classes, 0, 1)
    loss = partial(_loss, shard=shard, sample_ratio=configuration.sample_ratio)
    return loss_layer(loss, backbone=backbone, centers=_centers(shard, embedding, configuration.seed, sharded))


def _centers(shard: Shard, embedding: int, seed: int, sharded: bool) -> Any:
    """Return the shard's class centers [rows, embedding], drawn from N(0, 0.01) as in InsightFace."""
    import paddle

    centers = paddle.create_parameter(
        [shard.rows, embedding], "float32", default_initializer=paddle.nn.initializer.Normal(0.0, 0.01)
    )
    if sharded:
        centers.no_sync = True
        centers.set_value(_own_draw(centers.shape, seed, shard.rank))
    return centers


def _own_draw(shape: list[int], seed: int, rank: int) -> Any:
    """Return N(0, 0.01) that differs by rank: a generator seeded alike everywhere would repeat classes."""
    import numpy

    return 0.01 * numpy.random.default_rng([seed, rank]).standard_normal(shape, dtype="float32")


def _loss(layer: Any, images: Any, labels: Any, shard: Shard, sample_ratio: float) -> Any:
    # The head computes in float32 whatever the backbone's precision: exp(64) is near float16's end.
    features = _gather_features(layer.backbone(images).astype("float32"), shard)
    labels = _gather(labels, shard)
    classes, centers = _classes(layer.centers, labels, shard, sample_ratio)
    own = (labels.unsqueeze(1) == classes.unsqueeze(0)).astype("float32")
    return _cross_entropy(_logits(features, centers, own), own, shard)


def _classes(centers: Any, labels: Any, shard: Shard, sample_ratio: float) -> tuple[Any, Any]:
    """Return the class numbers [C] that take part in this step, and their centers [C, embedding]."""
    import paddle

    if sample_ratio == 1:
        return paddle.arange(shard.first, shard.first + shard.rows, dtype="int64"), centers
    rows = _sample_rows(labels, shard, sample_ratio)
    return rows + shard.first, paddle.gather(centers, rows)


def _sample_rows(labels: Any, shard: Shard, sample_ratio: float) -> Any:
    """Return the rows of the batch's own classes and random others, together ``sample_ratio`` of the shard.

    All classes of the batch take part, also when they are more than that (Partial FC, algorithm 1).
    """
    import paddle

    inside = (labels >= shard.first) & (labels < shard.first + shard.rows)
    positives = paddle.unique(labels[inside] - shard.first)
    order = paddle.rand([shard.rows])
    if positives.size:
        order = paddle.scatter(order, positives, paddle.full([positives.size], 2.0))
    return paddle.topk(order, max(positives.size, math.ceil(shard.rows * sample_ratio)))[1]


def _logits(features: Any, centers: Any, own: Any) -> Any:
    """Return SCALE x cosine [N, C], with the margin added to the angle where ``own`` is 1.

    Equation 3 of Deng et al.; cos(a + m) = cos(a) cos(m) - sin(a) sin(m).
    """
    from paddle.nn import functional

    product = functional.linear(functional.normalize(features), functional.normalize(centers).T)
    cosine = product.astype("float32").clip(-COSINE_LIMIT, COSINE_LIMIT)
    target = (own * cosine).sum(axis=1, keepdim=True)
    with_margin = target * math.cos(MARGIN) - (1 - target.square()).sqrt() * math.sin(MARGIN)
    return SCALE * (cosine + own * (with_margin - target))


def _cross_entropy(logits: Any, own: Any, shard: Shard) -> Any:
    """Return the mean cross-entropy over all samples, whose logits [N, C] lie on all shards."""
    import paddle

    shifted = logits - _max_over_shards(logits.detach().max(axis=1, keepdim=True), shard)
    sums = paddle.stack([shifted.exp().sum(axis=1), (own * shifted).sum(axis=1)])
    normalizer, target = _sum_over_shards(sums, shard)
    return (normalizer.log() - target).mean()


def _gather_features(features: Any, shard: Shard) -> Any:
    """Return the features of all ranks [ranks x N, embedding]; the gradient flows to this rank's own.

    Each shard holds a part of that gradient, so it is summed over the ranks, then multiplied by their
    number because the caller averages what the backbone makes of it.
    """
    if shard.ranks == 1:
        return features
    gathered = _gather(features, shard)
    gathered.register_hook(lambda gradient: _all_reduced(gradient, "SUM") * shard.ranks)
    return gathered


def _gather(tensor: Any, shard: Shard) -> Any:
    """Return the tensors of all ranks, concatenated in order of rank; this rank's own keeps its graph."""
    import paddle

    if shard.ranks == 1:
        return tensor
    pieces: list[Any] = []
    paddle.distributed.all_gather(pieces, tensor.detach())
    pieces[shard.rank] = tensor
    return paddle.concat(pieces)


def _max_over_shards(local: Any, shard: Shard) -> Any:
    return local if shard.ranks == 1 else _all_reduced(local, "MAX")


def _sum_over_shards(local: Any, shard: Shard) -> Any:
    """Return the sum over the ranks; its gradient reaches this rank's own term only.

    Every rank computes the loss from this sum, so each differentiates just what it holds.
    """
    if shard.ranks == 1:
        return local
    return local + (_all_reduced(local.detach(), "SUM") - local.detach())


def _all_reduced(tensor: Any, operation: str) -> Any:
    import paddle

    result = tensor.clone()
    paddle.distributed.all_reduce(result, op=getattr(paddle.distributed.ReduceOp, operation))
    return result
