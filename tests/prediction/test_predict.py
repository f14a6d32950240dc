"""What is predicted, claimed and refused: of published series, and of a study."""

import json
from dataclasses import replace

import pytest

import dlperf_study
from dlperf_study.__main__ import main
from dlperf_study.core.errors import DlperfStudyError
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.prediction.curves import STRONG, Unit, curves_of_sources
from dlperf_study.prediction.prediction import Prediction, Refusal, predict
from tests.evidence_factory import Planned, Recipe, configuration, write_study
from tests.prediction.curve_factory import curve

SERIES = "dlperf_paddle_resnet50/fp32_b128"


@pytest.fixture
def study(tmp_path, monkeypatch):
    """One model on one and two nodes, and another one on one node only."""
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    planned = []
    for model, sizes in (("resnet50", (1, 2)), ("mobilenet_v2", (1,))):
        baseline = configuration(model=model)
        for nodes in sizes:
            exposed = Recipe(exposed_communication_seconds=0.01 if nodes > 1 else 0.0)
            planned.append(Planned(configuration(model=model, nodes=nodes), exposed, baseline=baseline))
    write_study(StudyPaths.of("example"), planned)
    return dlperf_study.open_study("example")


def test_a_curve_has_the_nodes_with_all_their_devices_and_what_is_inside_one():
    over_nodes, inside = [found for found in curves_of_sources(["dlperf_paddle_resnet50"]) if found.label in SERIES]
    assert (over_nodes.unit, inside.unit) == (Unit.NODE, Unit.DEVICE)
    assert [(point.units, point.devices) for point in over_nodes.points] == [(1, 8), (2, 16), (4, 32)]
    assert [point.devices for point in over_nodes.all_points] == [1, 2, 4, 8, 16, 32]
    assert [point.units for point in inside.points] == [1, 2, 4, 8]


def test_a_published_series_is_predicted_with_an_interval_of_other_laboratories():
    [result] = predict([found for found in curves_of_sources(["dlperf_paddle_resnet50"]) if found.label in SERIES])
    assert isinstance(result, Prediction)
    [size] = result.sizes
    assert (size.units, size.devices) == (8, 64)
    # By hand: t(1), t(4) = 8 / 2625.38, 32 / 9348.17; t(8) = t(4) + (t(4) - t(1)) x (1/8) / (3/4).
    seconds = 32 / 9348.17 + (32 / 9348.17 - 8 / 2625.38) / 6
    assert size.throughput == pytest.approx(64 / seconds)
    assert size.efficiency == pytest.approx(size.throughput / 64 / 352.72)
    assert size.throughput_interval.low < size.throughput < size.throughput_interval.high
    assert size.reason == ""


def test_a_size_that_too_few_laboratories_test_has_no_interval_and_the_reason():
    [result] = predict([curve({1: 100.0, 2: 190.0})], Unit.NODE, [2, 4, 64])
    measured, tested, untested = result.sizes
    assert measured.is_measured
    assert measured.throughput == pytest.approx(190.0)
    assert tested.throughput_interval is not None
    assert untested.throughput_interval is None
    assert untested.efficiency_interval is None
    assert "laboratories" in untested.reason
    assert result.largest_tested == 4
    [strong] = predict([curve({1: 100.0, 2: 190.0}, scaling=STRONG)])
    assert strong.largest_tested == 2
    assert "fixed" in strong.sizes[0].reason


def test_noisy_throughputs_widen_an_interval():
    exact, noisy = (predict([curve({1: 100.0, 2: 190.0}, error=error)])[0].sizes[0] for error in (1e-9, 0.2))
    assert noisy.throughput_interval.high > 1.1 * exact.throughput_interval.high


ONE_SIZE = curve({2: 100.0}, Unit.DEVICE, devices_per_unit=1)
INSIDE_A_NODE = curve({1: 100.0, 2: 190.0, 4: 370.0}, Unit.DEVICE, devices_per_unit=1)


@pytest.mark.parametrize(
    ("measured", "unit", "words"),
    [
        (replace(curve({1: 100.0, 2: 190.0}), has_servers=True), Unit.NODE, "parameter servers"),
        (replace(ONE_SIZE, on_gpus=True), None, "devices_per_node=4"),
        (INSIDE_A_NODE, Unit.NODE, "nodes=2 with devices_per_node=4"),
        (curve({2: 100.0}), Unit.NODE, "nodes=1"),
    ],
    ids=["parameter_servers", "one size", "inside a node", "one number of nodes"],
)
def test_a_refusal_names_the_point_to_measure(measured, unit, words):
    [result] = predict([measured], unit, [8])
    assert isinstance(result, Refusal)
    assert words in result.reason


def test_no_second_size_is_asked_for_where_it_would_be_refused_too():
    [of_cores] = predict([replace(ONE_SIZE, on_gpus=False)])
    assert isinstance(of_cores, Refusal)
    assert "devices_per_node" not in of_cores.reason


def test_the_command_predicts_a_published_series(capsys):
    assert main(["predict", SERIES, "--nodes", "8", "16", "--json"]) == 0
    [prediction] = json.loads(capsys.readouterr().out)["predictions"]
    assert prediction["largest_tested"] == 8
    eight, sixteen = prediction["sizes"]
    assert eight["throughput_interval"][0] < eight["throughput"] < eight["throughput_interval"][1]
    assert sixteen["throughput_interval"] is None
    assert "laboratories" in sixteen["reason"]
    assert main(["predict", SERIES, "--nodes", "8"]) == 0
    assert "Largest size with an interval: 8 nodes." in capsys.readouterr().out
    assert main(["predict", "tensorpack_multigpu", "--nodes", "2"]) == 1
    assert "measure nodes=2 with devices_per_node=8" in capsys.readouterr().out
    assert main(["predict", "dlperf_paddle_resnet5"]) == 1
    assert "did you mean dlperf_paddle_resnet50?" in capsys.readouterr().err
    assert main(["predict", "dlperf_paddle_resnet50/fp32_b129"]) == 1
    assert "did you mean fp32_b128" in capsys.readouterr().err


def test_a_study_is_predicted_in_python_and_by_the_command(study, capsys):
    predictions = study.predict(nodes=[4])
    row = predictions.frame.loc[("ResNet-50", 4)]
    # 80 ms of computation, and a transfer of 10 ms on two nodes: 15 ms on four.
    assert row["throughput"] == pytest.approx(4 * 80 / 95 * study.configurations["throughput"].iloc[0], rel=0.02)
    assert row["throughput_low_90"] < row["throughput"] < row["throughput_high_90"]
    assert "nodes=1" not in predictions.refused["MobileNetV2"]
    assert "nodes=2" in predictions.refused["MobileNetV2"]
    assert main(["predict", "example", "--nodes", "4"]) == 0
    assert repr(predictions) == capsys.readouterr().out.rstrip("\n")
    assert "<table" in predictions._repr_html_()
    with pytest.raises(DlperfStudyError):
        study.predict(nodes=[4], devices=[2])
    for sizes in ([0], [-1], [1.5], ["2"], [True], [10**9], 2, "2", None):
        with pytest.raises(DlperfStudyError, match="nodes"):
            study.predict(nodes=sizes)
