import pytest

from dlperf_study.audit.published.points import Published, communication_points
from dlperf_study.metrics.statistics import MINIMUM_RUNS


def point(points, cell):
    (found,) = points[points["cell"] == cell].itertuples()
    return found


def test_a_speedup_has_the_interval_of_a_ratio_of_runs():
    points = Published.read(("dlperf_paddle_plsc",)).points
    plotted = point(points, "dlperf_paddle_plsc/fp32_b128/4 | 32/samples/s")
    assert plotted.speedup == pytest.approx(11084.53 / 397.78)
    assert (plotted.printed_ratio, plotted.ratio, plotted.runs) == ("27.87", "speedup", 5)
    # By hand: the runs of 32 devices lie within 10997.67 and 11165.17, those of one within 397.44 and 398.98.
    assert 10997.67 / 398.98 <= plotted.speedup_low < 27.87 < plotted.speedup_high <= 11165.17 / 397.44
    assert plotted.throughput_low >= 10997.67


def test_the_accelerate_rate_is_the_efficiency_of_a_computed_speedup():
    points = Published.read(("paddle_vgg16_cluster",)).points
    plotted = point(points, "paddle_vgg16_cluster/accelerate_rate/PaddlePaddle Fluid/100#1")
    assert plotted.baseline_throughput == 16.74
    assert plotted.speedup == pytest.approx(1019.29 / 16.74)
    assert plotted.efficiency == pytest.approx(0.6089, abs=0.0001)
    assert (plotted.printed_ratio, plotted.ratio) == ("60.89%", "efficiency")


def test_a_speedup_without_a_printed_ratio_is_over_the_single_device_of_its_line():
    points = Published.read(("tensorpack_multigpu",)).points
    plotted = point(points, "tensorpack_multigpu/p100_replicated/8/tensorpack(GPU/CPU/Python)#3")
    assert plotted.baseline == "tensorpack_multigpu/p100_replicated/1/tensorpack(GPU/CPU/Python)#3"
    assert plotted.speedup == pytest.approx(1551 / 219)
    points = Published.read(("dlperf_paddle_resnet50", "tensorpack_multigpu")).points
    bare = points[points["runs"] < MINIMUM_RUNS]
    assert len(bare) == 15 + 42
    assert bare[["throughput_low", "speedup_low", "efficiency_high"]].isna().all(axis=None)


def test_without_a_single_device_there_is_no_speedup_and_without_a_source_no_point():
    points = Published.read(("tensorpack_multigpu",)).points
    eight_only = points[points["table"].str.startswith("v100")]
    assert len(eight_only) == 10
    assert eight_only[["speedup", "efficiency", "baseline_throughput"]].isna().all(axis=None)
    assert Published.read(()).points.empty


def test_communication_is_told_in_the_words_of_its_source():
    points = communication_points(Published.read(("elasticdl_allreduce_wiki",)).cells)
    communication = {(row.table, row.world_size): row.communication for row in points.itertuples()}
    assert communication["minikube_mobilenet_v2", 3] == "10: 6"
    assert communication["cpu_mobilenet_v2", 4] == "44.7%"
    assert communication["gpu_resnet50", 4] == "82% (14.67 s of 18 s)"
    assert ("minikube_mobilenet_v2", 1) not in communication
    assert ("gpu_resnet50", 1) not in communication
