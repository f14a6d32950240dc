"""One rank of ArcFace with a sharded classifier; writes its loss and gradients. Run by test_arcface.py."""

import sys
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).parents[3]))

from dlperf_study.training.models.arcface_resnet50 import Shard
from tests.training.models.networks import assign, batch, build, gradients, trained

RANKS = 2
CLASSES = 7
SAMPLES_PER_RANK = 2


def reproducible(layer, shard, library):
    """Return ``layer`` with parameters drawn in order, centers drawn by class, and batch norm by running statistics.

    With the statistics of a batch, two halves would not be the whole.
    """
    random = numpy.random.default_rng(3)
    for parameter in trained(layer.backbone).values():
        assign(parameter, _draw(random, parameter.shape), library)
    centers = random.standard_normal((CLASSES, 512)).astype("float32")
    assign(layer.head.centers, centers[shard.first : shard.first + shard.rows], library)
    layer.eval()
    return layer


def _draw(random, shape):
    """Return weights that keep the size of what passes through them."""
    if len(shape) == 1:
        return 1 + 0.1 * random.standard_normal(shape).astype("float32")
    return random.standard_normal(shape).astype("float32") / numpy.sqrt(numpy.prod(shape[1:]), dtype="float32")


def paddle_rank():
    """Join the ranks; return this one's number and what makes a layer data-parallel."""
    import paddle

    paddle.distributed.init_parallel_env()
    return paddle.distributed.get_rank(), paddle.DataParallel


def torch_rank():
    """Join the ranks; return this one's number and what makes a module data-parallel."""
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    def parallel(layer):
        own = [name for name, parameter in layer.named_parameters() if hasattr(parameter, "no_sync")]
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(layer, own)
        return DistributedDataParallel(layer)

    distributed.init_process_group("gloo")
    return distributed.get_rank(), parallel


def main(library, folder):
    rank, parallel = {"paddle": paddle_rank, "torch": torch_rank}[library]()
    layer = build("arcface_resnet50", rank, RANKS, library, classes=CLASSES, classifier="sharded")
    model = parallel(reproducible(layer, Shard.of(CLASSES, rank, RANKS), library))
    mine = slice(rank * SAMPLES_PER_RANK, (rank + 1) * SAMPLES_PER_RANK)
    images, labels = batch(RANKS * SAMPLES_PER_RANK, CLASSES, library=library)
    loss = model(images[mine], labels[mine])
    loss.backward()
    numpy.savez(folder / f"rank-{rank}.npz", loss=loss.item(), **gradients(layer))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
