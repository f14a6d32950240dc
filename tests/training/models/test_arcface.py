"""The ArcFace loss against its equation, and the sharded classifier against the whole one."""

import os
import subprocess
import sys
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import numpy
import psutil
import pytest

from dlperf_study.core.errors import UnsupportedError
from dlperf_study.training.libraries.paddle import Paddle
from dlperf_study.training.models._base import without_loss
from dlperf_study.training.models.arcface_resnet50 import MARGIN, SCALE, Shard, sample_rows
from tests.training.models.networks import LIBRARIES, batch, build, gradients, tensor
from tests.training.models.sharded_ranks import CLASSES, RANKS, SAMPLES_PER_RANK, reproducible

TIMEOUT_SECONDS = 120
LAUNCHERS = {
    "paddle": ("paddle.distributed.launch", "--host", "127.0.0.1", "--max_restart", "0"),
    "torch": ("torch.distributed.run", "--standalone", "--local_addr", "127.0.0.1", "--redirects", "3"),
}

every_library = pytest.mark.parametrize("library", LIBRARIES)


def arcface(**changes):
    return build("arcface_resnet50", classes=CLASSES, **changes)


def loss_by_equation(features, centers, labels):
    """Equation 3 of Deng et al. (2019), sample by sample, with an arc cosine."""
    unit = lambda rows: rows / numpy.linalg.norm(rows, axis=1, keepdims=True)  # noqa: E731
    angles = numpy.arccos(numpy.clip(unit(features) @ unit(centers).T, -1, 1))
    losses = []
    for angle, label in zip(angles, labels, strict=True):
        angle[label] += MARGIN
        logits = SCALE * numpy.cos(angle)
        losses.append(numpy.logaddexp.reduce(logits) - logits[label])
    return numpy.mean(losses)


@every_library
@pytest.mark.parametrize("classifier", ["replicated", "sharded"])
def test_the_loss_is_the_equation(classifier, library):
    layer = arcface(classifier=classifier, library=library)
    layer.eval()
    images, labels = batch(4, CLASSES, library=library)
    features = layer.backbone(images).detach().numpy().astype("float64")
    expected = loss_by_equation(features, layer.head.centers.detach().numpy().astype("float64"), labels.numpy())
    assert layer(images, labels).item() == pytest.approx(expected, rel=1e-4)


@every_library
def test_without_its_loss_a_network_is_its_backbone(library):
    layer = arcface(library=library)
    assert without_loss(layer) is layer.backbone


def test_shards_hold_every_class_once_and_start_alike_in_every_library():
    shards = [Shard.of(85_742, rank, 8) for rank in range(8)]
    held = [number for shard in shards for number in range(shard.first, shard.first + shard.rows)]
    assert held == list(range(85_742))
    first, second = (shard_of_two(1, library).head.centers.detach().numpy() for library in LIBRARIES)
    assert (first == second).all()


def test_more_ranks_than_classes_are_unsupported(refused):
    with refused(UnsupportedError):
        arcface(classifier="sharded", rank=0, world_size=8)


@every_library
def test_shards_start_with_different_centers_though_seeded_alike(library):
    first, second = (shard_of_two(rank, library).head.centers.detach().numpy() for rank in (0, 1))
    assert not numpy.isclose(first[: len(second)], second).any()


def shard_of_two(rank, library):
    return arcface(classifier="sharded", rank=rank, world_size=2, library=library)


def test_a_shard_is_neither_replicated_nor_exchanged():
    layer = arcface(classifier="sharded", world_size=2)
    replicated = Paddle(None).replicated_parameters(layer)
    assert len(replicated) == 161
    assert not any(parameter is layer.head.centers for parameter in replicated)
    layer = arcface(classifier="sharded", world_size=2, library="torch")
    assert [name for name, parameter in layer.named_parameters() if hasattr(parameter, "no_sync")] == ["head.centers"]
    assert not hasattr(arcface(library="torch").head.centers, "no_sync")


@every_library
@pytest.mark.parametrize(("sample_ratio", "sampled"), [(0.5, 10), (0.05, 3)])
def test_partial_fc_trains_the_classes_of_the_batch_and_a_sample_of_the_others(sample_ratio, sampled, library):
    layer = build("arcface_resnet50", library=library, classes=20, classifier="sharded", sample_ratio=sample_ratio)
    images, _ = batch(4, classes=20, library=library)
    layer(images, tensor([3, 19, 3, 0], library)).backward()
    trained = numpy.flatnonzero(numpy.abs(layer.head.centers.grad.numpy()).sum(axis=1))
    assert len(trained) == sampled
    assert {0, 3, 19} <= set(trained)


@every_library
def test_a_shard_without_a_class_of_the_batch_still_samples(library):
    shard = Shard(first=0, rows=10, rank=0, ranks=2)
    tensors = import_module(f"dlperf_study.training.models._{library}_layers").tensors()
    rows = sample_rows(tensors, tensor([15, 16], library), shard, 0.4)
    assert len(set(rows.tolist())) == 4


@every_library
def test_two_ranks_with_half_the_classes_each_compute_what_one_process_computes(tmp_path, library):
    with launched(library, tmp_path) as launcher:
        exit_code = launcher.wait(TIMEOUT_SECONDS)
        outputs = [*tmp_path.rglob("workerlog.*"), *tmp_path.rglob("*.log")]
        assert exit_code == 0, [path.read_text()[-2000:] for path in outputs]
    ranks = [numpy.load(tmp_path / f"rank-{rank}.npz") for rank in range(RANKS)]
    layer = reproducible(arcface(library=library), Shard.of(CLASSES, 0, 1), library)
    loss = layer(*batch(RANKS * SAMPLES_PER_RANK, CLASSES, library=library))
    loss.backward()
    whole = gradients(layer)
    names = [name for name in whole if name.startswith("backbone.")]
    assert len(names) == 161
    for rank in ranks:
        assert float(rank["loss"]) == pytest.approx(loss.item(), rel=1e-5)
        assert max(_relative_error(rank[name], whole[name]) for name in names) < 1e-3
    shards = numpy.concatenate([rank["head.centers"] for rank in ranks])
    assert shards.shape == whole["head.centers"].shape
    assert _relative_error(shards, whole["head.centers"]) < 1e-4


@contextmanager
def launched(library, folder):
    """Start the ranks with the library's launcher and leave none of its processes behind."""
    script = str(Path(__file__).with_name("sharded_ranks.py"))
    launch = [*LAUNCHERS[library], "--nproc_per_node", str(RANKS), "--log_dir", str(folder / "logs")]
    command = [sys.executable, "-m", *launch, script, library, str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    with (
        (folder / "launcher.log").open("w") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=output) as launcher,
    ):
        try:
            yield launcher
        finally:
            # Ranks lead sessions of their own; all have this test's folder in their command line.
            for process in psutil.process_iter(["cmdline"]):
                if str(folder) in (process.info["cmdline"] or []):
                    process.kill()


def _relative_error(actual, expected):
    return numpy.linalg.norm(actual - expected) / numpy.linalg.norm(expected)
