"""One rank of ArcFace with a sharded classifier; writes its loss and gradients. Run by test_arcface.py."""

import sys
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).parents[2]))

from dlperf_study.models._paddle_arcface import Shard
from dlperf_study.models.base import trainable_parameters
from tests.models.paddle_layers import batch, build

RANKS = 2
CLASSES = 7
SAMPLES_PER_RANK = 2


def reproducible(layer, shard):
    """Return ``layer`` with parameters drawn in order, centers drawn by class, and batch norm by running statistics.

    With the statistics of a batch, two halves would not be the whole.
    """
    random = numpy.random.default_rng(3)
    for parameter in trainable_parameters(layer.backbone):
        parameter.set_value(_draw(random, parameter.shape))
    centers = random.standard_normal((CLASSES, 512)).astype("float32")
    layer.centers.set_value(centers[shard.first : shard.first + shard.rows])
    layer.eval()
    return layer


def _draw(random, shape):
    """Return weights that keep the size of what passes through them."""
    if len(shape) == 1:
        return 1 + 0.1 * random.standard_normal(shape).astype("float32")
    return random.standard_normal(shape).astype("float32") / numpy.sqrt(numpy.prod(shape[1:]), dtype="float32")


def gradients(layer):
    return {name: p.grad.numpy() for name, p in layer.named_parameters() if not p.stop_gradient}


def main(folder):
    import paddle

    paddle.distributed.init_parallel_env()
    rank = paddle.distributed.get_rank()
    shard = Shard.of(CLASSES, rank, RANKS)
    layer = build("arcface_resnet50", rank, RANKS, classes=CLASSES, classifier="sharded")
    parallel = paddle.DataParallel(reproducible(layer, shard))
    mine = slice(rank * SAMPLES_PER_RANK, (rank + 1) * SAMPLES_PER_RANK)
    images, labels = batch(RANKS * SAMPLES_PER_RANK, CLASSES)
    loss = parallel(images[mine], labels[mine])
    loss.backward()
    numpy.savez(folder / f"rank-{rank}.npz", loss=loss.numpy(), **gradients(layer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
