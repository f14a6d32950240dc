import pandas as pd
import pytest

from dlperf_study.analysis.published_points import Published, exchange_points, matching_configurations
from dlperf_study.analysis.statistics import MINIMUM_RUNS
from dlperf_study.plan.plan import build_plan
from dlperf_study.study.study_file import load_study
from tests.study.examples import anything_goes, cluster

STUDIES = ("vgg16_parameter_server", "arcface", "resnet50", "allreduce", "input_pipeline")
#: What the sources of a study print and no configuration of it asks.
UNASKED = {"allreduce": {"Horovod", "image_compression"}}


def published_and_ours(name):
    plan = build_plan(load_study(name), cluster(nodes=100, devices_per_node=8), anything_goes)
    rows = [{"identity": entry.configuration.identity, **entry.configuration.as_dict()} for entry in plan.entries]
    return Published.read(plan.published), pd.DataFrame(rows)


def point(points, cell):
    (found,) = points[points["cell"] == cell].itertuples()
    return found


@pytest.mark.parametrize("study", STUDIES)
def test_every_published_throughput_matches_exactly_one_configuration_of_ours(study):
    published, ours = published_and_ours(study)
    matches = matching_configurations(published.points, ours)
    unasked = published.points[["program", "model"]].isin(UNASKED.get(study, set())).any(axis=1)
    assert [len(match) for match in matches] == [0 if lonely else 1 for lonely in unasked]


@pytest.mark.parametrize("study", STUDIES)
def test_matches_have_the_same_number_of_devices(study):
    published, ours = published_and_ours(study)
    devices = (ours["nodes"] * ours["devices_per_node"]).set_axis(ours["identity"])
    for found, matches in zip(
        published.points.itertuples(), matching_configurations(published.points, ours), strict=True
    ):
        assert {int(devices[identity]) for identity in matches} <= {found.world_size}


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"batch_per_device": 64}, False),
        ({"framework": "torch_ddp"}, False),
        ({"classifier": "replicated"}, False),
        ({"optimizer": "sgd"}, True),
    ],
)
def test_only_what_the_source_states_must_agree(change, same):
    published, ours = published_and_ours("arcface")
    assert all(map(len, matching_configurations(published.points, ours.assign(**change)))) == same


def test_a_speedup_has_the_interval_of_a_ratio_of_runs():
    points = Published.read(("dlperf_paddle_plsc",)).points
    plotted = point(points, "dlperf_paddle_plsc/fp32_b128/4 | 32/samples/s")
    assert plotted.speedup == pytest.approx(11084.53 / 397.78)
    assert (plotted.printed_ratio, plotted.ratio, plotted.runs) == ("27.87", "speedup", 5)
    # By hand: the runs of 32 devices lie within 10997.67 and 11165.17, those of one within 397.44 and 398.98.
    assert 10997.67 / 398.98 <= plotted.speedup_low < 27.87 < plotted.speedup_high <= 11165.17 / 397.44
    assert plotted.throughput_low >= 10997.67


def test_without_printed_runs_there_is_no_interval():
    points = Published.read(("dlperf_paddle_resnet50", "tensorpack_multigpu")).points
    bare = points[points["runs"] < MINIMUM_RUNS]
    assert len(bare) == 15 + 42
    assert bare[["throughput_low", "speedup_low", "efficiency_high"]].isna().all(axis=None)


def test_the_accelerate_rate_is_the_efficiency_of_a_computed_speedup():
    points = Published.read(("paddle_vgg16_cluster",)).points
    plotted = point(points, "paddle_vgg16_cluster/accelerate_rate/PaddlePaddle Fluid/100#1")
    assert plotted.baseline_throughput == 16.74
    assert plotted.speedup == pytest.approx(1019.29 / 16.74)
    assert plotted.efficiency == pytest.approx(0.6089, abs=0.0001)
    assert (plotted.printed_ratio, plotted.ratio) == ("60.89%", "efficiency")


def test_without_a_printed_ratio_the_single_device_of_the_same_line_is_the_baseline():
    points = Published.read(("tensorpack_multigpu",)).points
    plotted = point(points, "tensorpack_multigpu/p100_replicated/8/tensorpack(GPU/CPU/Python)#3")
    assert plotted.baseline == "tensorpack_multigpu/p100_replicated/1/tensorpack(GPU/CPU/Python)#3"
    assert plotted.speedup == pytest.approx(1551 / 219)


def test_without_any_single_device_there_is_no_speedup():
    points = Published.read(("tensorpack_multigpu",)).points
    eight_only = points[points["table"].str.startswith("v100")]
    assert len(eight_only) == 10
    assert eight_only[["speedup", "efficiency", "baseline_throughput"]].isna().all(axis=None)


def test_communication_is_told_in_the_words_of_its_source():
    points = exchange_points(Published.read(("elasticdl_allreduce_wiki",)).cells)
    communication = {(row.table, row.world_size): row.communication for row in points.itertuples()}
    assert communication["minikube_mobilenet_v2", 3] == "10: 6"
    assert communication["cpu_mobilenet_v2", 4] == "44.7%"
    assert communication["gpu_resnet50", 4] == "82% (14.67 s of 18 s)"
    assert ("minikube_mobilenet_v2", 1) not in communication
    assert ("gpu_resnet50", 1) not in communication


def test_no_source_gives_no_point():
    assert Published.read(()).points.empty


def test_what_ours_does_not_state_is_not_the_same():
    published, ours = published_and_ours("arcface")
    unsaid = ours.astype({"classes": "Int64"}).assign(classes=pd.NA)
    assert not any(matching_configurations(published.points, unsaid))
