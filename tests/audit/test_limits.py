"""The tables of facts, against the networks of this package and against the formulas they name."""

import pytest

from dlperf_study.audit.limits import (
    find_device_peak,
    find_work,
    is_impossible,
    machines,
    printed_sample_size,
    required_flops,
    works,
)
from dlperf_study.audit.published import load
from dlperf_study.audit.quantities import THROUGHPUT
from dlperf_study.audit.result_frames import read_published_results
from dlperf_study.study.device_peaks import known_peaks
from dlperf_study.training import models
from dlperf_study.training.models._base import Model
from tests.audit.tables import results
from tests.audit.tables import throughput as throughput_of

CLASSES = {224: 1000, 256: 100, 32: 10}
OURS = [work for work in works() if work.model in models.names() and isinstance(models.load(work.model), Model)]
#: Layers and width of the transformers, and the blocks of the residual networks for faces, stage by stage.
TRANSFORMERS = {"bert_base": (12, 768)} | {
    f"gpt_h{h}_l{n}": (n, h) for n, h in ((12, 768), (16, 1536), (24, 2304), (16, 3072), (32, 3072))
}
FACES = {"insightface_resnet50": (3, 4, 14, 3), "insightface_resnet100": (3, 13, 30, 3)}


@pytest.mark.parametrize("work", OURS, ids=lambda work: f"{work.model}-{work.size}")
def test_our_own_networks(work):
    classes = 10 if work.model.endswith("cifar") else CLASSES[work.size]
    assert work.flops == models.load(work.model).flops_per_sample(work.size, classes)


@pytest.mark.parametrize("work", [work for work in works() if work.model in TRANSFORMERS], ids=lambda work: work.model)
def test_transformers(work):
    layers, width = TRANSFORMERS[work.model]
    assert work.flops == pytest.approx(72 * work.size * layers * width**2 * (1 + work.size / (6 * width)))
    assert not work.convolutional


@pytest.mark.parametrize("work", [work for work in works() if work.model in FACES], ids=lambda work: work.model)
def test_residual_networks_for_faces(work):
    """Two 3×3 convolutions a block, the second of a stage's first one with stride 2, beside a 1×1 one."""
    size, channels, macs = work.size, 64, work.size**2 * 9 * 3 * 64
    for blocks, width in zip(FACES[work.model], (64, 128, 256, 512), strict=True):
        half = size // 2
        macs += 9 * (size**2 * channels * width + half**2 * width * width) + half**2 * channels * width
        macs += (blocks - 1) * 2 * 9 * half**2 * width * width
        size, channels = half, width
    assert work.flops == 6 * (macs + size**2 * channels * 512)


def test_every_network_has_one_usual_size_and_every_fact_its_source():
    usual = [work.model for work in works() if work.usual]
    assert sorted(usual) == sorted({work.model for work in works()})
    assert all(fact.source for fact in (*works(), *known_peaks(), *machines().values()))


def test_no_published_number_of_dlperf_takes_more_than_its_devices_have():
    """But for convolutions in float32, of which Winograd's algorithm may save a part."""
    sources = [name for name in load()["source"].unique() if name.startswith("dlperf_")]
    shares: dict[str, list[float]] = {"amp_fp16": [], "fp32": []}
    for throughput in read_published_results(sources).select(THROUGHPUT):
        work, peak = find_work(throughput, printed_sample_size(throughput)), find_device_peak(throughput)
        if work and peak and throughput.world_size:
            shares[str(throughput.get("precision"))].append(required_flops(throughput, work) / peak.flops)
            assert not is_impossible(throughput, work, peak)
            assert shares[str(throughput.get("precision"))][-1] <= 1 or work.convolutional
    assert len(shares["amp_fp16"]) > 100
    assert max(shares["amp_fp16"]) <= 1
    assert 1 < max(shares["fp32"]) < 1.4


def test_float32_may_be_computed_as_tf32_where_nobody_says_which():
    [throughput] = results([throughput_of("1", device_name="NVIDIA A100-SXM4-80GB", precision="fp32")]).select(
        THROUGHPUT
    )
    peak = find_device_peak(throughput)
    assert peak is not None
    assert (peak.flops, peak.number_format) == (156e12, "tf32")
