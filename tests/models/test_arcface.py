"""The ArcFace loss against its equation, and the sharded classifier against the whole one."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy
import psutil
import pytest

from dlperf_study.errors import UnsupportedError
from dlperf_study.models._paddle_arcface import MARGIN, SCALE, Shard
from dlperf_study.models.base import replicated_parameters
from tests.models.paddle_layers import batch, build
from tests.models.sharded_ranks import CLASSES, RANKS, SAMPLES_PER_RANK, gradients, reproducible

TIMEOUT_SECONDS = 120


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


@pytest.mark.parametrize("classifier", ["replicated", "sharded"])
def test_the_loss_is_the_equation(classifier):
    layer = reproducible(arcface(classifier=classifier), Shard.of(CLASSES, 0, 1))
    images, labels = batch(4, CLASSES)
    features = layer.backbone(images).numpy().astype("float64")
    expected = loss_by_equation(features, layer.centers.numpy().astype("float64"), labels.numpy())
    assert layer(images, labels).item() == pytest.approx(expected, rel=1e-4)


def test_shards_hold_every_class_once():
    shards = [Shard.of(85_742, rank, 8) for rank in range(8)]
    held = [number for shard in shards for number in range(shard.first, shard.first + shard.rows)]
    assert held == list(range(85_742))


def test_more_ranks_than_classes_are_unsupported():
    with pytest.raises(UnsupportedError, match="classes is 7, too few to give each of 8 ranks a shard"):
        arcface(classifier="sharded", rank=0, world_size=8)


def test_shards_start_with_different_centers_though_seeded_alike():
    first, second = (arcface(classifier="sharded", rank=rank, world_size=2).centers.numpy() for rank in (0, 1))
    assert not numpy.isclose(first[: len(second)], second).any()


def test_a_shard_is_not_among_the_replicated_parameters():
    layer = arcface(classifier="sharded", world_size=2)
    replicated = replicated_parameters(layer)
    assert len(replicated) == 161
    assert not any(parameter is layer.centers for parameter in replicated)


@pytest.mark.parametrize(("sample_ratio", "sampled"), [(0.5, 10), (0.05, 3)])
def test_partial_fc_trains_the_classes_of_the_batch_and_a_sample_of_the_others(sample_ratio, sampled):
    import paddle

    layer = build("arcface_resnet50", classes=20, classifier="sharded", sample_ratio=sample_ratio)
    images, _ = batch(4, classes=20)
    layer(images, paddle.to_tensor([3, 19, 3, 0])).backward()
    trained = numpy.flatnonzero(numpy.abs(layer.centers.grad.numpy()).sum(axis=1))
    assert len(trained) == sampled
    assert {0, 3, 19} <= set(trained)


def test_a_shard_without_a_class_of_the_batch_still_samples():
    import paddle

    from dlperf_study.models._paddle_arcface import _sample_rows

    rows = _sample_rows(paddle.to_tensor([15, 16]), Shard(first=0, rows=10, rank=0, ranks=2), 0.4)
    assert len(set(rows.tolist())) == 4


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What two ranks with half the classes each computed."""
    folder = tmp_path_factory.mktemp("sharded_ranks")
    with launched(folder) as launcher:
        assert launcher.wait(TIMEOUT_SECONDS) == 0, _tail(folder)
    return [numpy.load(folder / f"rank-{rank}.npz") for rank in range(RANKS)]


@pytest.fixture(scope="module")
def whole():
    """What one process with all classes computes from the batches of both ranks."""
    layer = reproducible(arcface(), Shard.of(CLASSES, 0, 1))
    loss = layer(*batch(RANKS * SAMPLES_PER_RANK, CLASSES))
    loss.backward()
    return {"loss": loss.item(), **gradients(layer)}


def test_the_sharded_loss_is_the_loss_of_the_whole_batch(ranks, whole):
    for rank in ranks:
        assert float(rank["loss"]) == pytest.approx(whole["loss"], rel=1e-5)


def test_the_averaged_backbone_gradient_is_that_of_the_whole_batch(ranks, whole):
    names = [name for name in whole if name.startswith("backbone.")]
    assert len(names) == 161
    for rank in ranks:
        assert max(_relative_error(rank[name], whole[name]) for name in names) < 1e-3


def test_each_shard_has_its_rows_of_the_classifier_gradient(ranks, whole):
    shards = numpy.concatenate([rank["centers"] for rank in ranks])
    assert shards.shape == whole["centers"].shape
    assert _relative_error(shards, whole["centers"]) < 1e-4


@contextmanager
def launched(folder):
    """Start the ranks with Paddle's launcher and leave none of its processes behind."""
    script = str(Path(__file__).with_name("sharded_ranks.py"))
    launch = ["-m", "paddle.distributed.launch", "--nproc_per_node", str(RANKS), "--host", "127.0.0.1"]
    logs = ["--max_restart", "0", "--log_dir", str(folder / "logs")]
    command = [sys.executable, *launch, *logs, script, str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (
        (folder / "launcher.log").open("w") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=output) as launcher,
    ):
        try:
            yield launcher
        finally:
            _kill_all_of(folder)


def _kill_all_of(folder):
    """Kill what bears this test's folder in its command line: ranks lead sessions of their own."""
    for process in psutil.process_iter(["cmdline"]):
        if str(folder) in (process.info["cmdline"] or []):
            process.kill()


def _tail(folder):
    return "\n".join(path.read_text()[-2000:] for path in [folder / "launcher.log", *folder.glob("logs/workerlog.*")])


def _relative_error(actual, expected):
    return numpy.linalg.norm(actual - expected) / numpy.linalg.norm(expected)
