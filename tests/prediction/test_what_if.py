"""Changes of a link, a batch, gradients, servers, an algorithm, overlap and input, each against a number by hand."""

import json
import math
from dataclasses import replace

import pytest

import dlperf_study
from dlperf_study.__main__ import main
from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.prediction.curves import Unit
from dlperf_study.prediction.physical_model import model_of
from dlperf_study.prediction.prediction import Refusal
from dlperf_study.prediction.scenario import what_if
from dlperf_study.prediction.what_if import CHANGES, WhatIfError, changed, parsed
from tests.evidence_factory import GRADIENT_BYTES, Planned, Recipe, configuration, write_study
from tests.prediction.test_physical_model import CARRIED, COMPUTATION, curve, of_servers, point, ring

#: 0.1 s for carrying them once: 1 GB/s, or 8 Gbit/s.
BYTES = 1e8


def measured(**changes):
    points = [point(1, 0.0, **changes)]
    points += [point(n, ring(n), latency_seconds=2e-3 * (n - 1), exchanged_bytes=BYTES, **changes) for n in (2, 4)]
    return curve(*points)


def seconds(changes, units=4, series=None):
    return changed(model_of(series or measured()), changes).seconds(units)


@pytest.mark.parametrize(
    ("change", "value", "expected"),
    [
        # Of 156 ms on four nodes 6 are latency and 150 bytes; half of the exchange is hidden.
        ("link", "2x", COMPUTATION + (0.006 + 0.075) / 2),
        ("link", "16Gbit/s", COMPUTATION + (0.006 + 0.075) / 2),
        ("link", "4000 mbit/s", COMPUTATION + 0.306 - 0.4 / 3),
        ("latency", "0.5x", COMPUTATION + (0.003 + 0.150) / 2),
        ("latency", "2ms", COMPUTATION + (0.012 + 0.150) / 2),
        ("gradients", "fp16", COMPUTATION + (0.006 + 0.075) / 2),
        ("batch", "3", 3 * COMPUTATION + 0.156 / 2),
        ("overlap", "none", COMPUTATION + 0.156),
        ("overlap", "full", COMPUTATION),
        ("overlap", "0.8", COMPUTATION + 0.2 * 0.156),
        ("algorithm", "tree", COMPUTATION + (0.004 + 2 * CARRIED) / 2),
        ("algorithm", "ring", COMPUTATION + 0.156 / 2),
    ],
)
def test_each_change_changes_its_term(change, value, expected):
    assert set(parsed([f"{change}={value}"])) == {change}
    assert seconds({change: value}) == pytest.approx(expected)


def test_a_larger_batch_trains_more_samples_in_a_step():
    [scenario] = what_if([measured()], {"batch": "2"}, Unit.NODE, [4])
    [size] = scenario.sizes
    assert size.ratio == pytest.approx(2 * (COMPUTATION + 0.078) / (2 * COMPUTATION + 0.078))


def test_changes_add_up_and_input_may_be_left_out():
    waiting = measured(input_seconds=0.05)
    assert seconds({}, series=waiting) == pytest.approx(COMPUTATION + 0.05 + 0.078)
    both = {"input": "none", "gradients": "fp16"}
    assert seconds(both, series=waiting) == pytest.approx(COMPUTATION + 0.081 / 2)


def test_more_servers_share_what_trainers_push():
    [scenario] = what_if([of_servers(1, 2, 4)], {"servers": "4"}, Unit.NODE, [8])
    [size] = scenario.sizes
    assert 8 / size.changed_rate == pytest.approx(COMPUTATION + 0.02 + 2 * 0.05 * 2)
    [refused] = what_if([measured()], {"servers": "4"})
    assert isinstance(refused, Refusal)


def test_a_series_that_can_not_be_changed_so_is_refused_with_the_reason():
    compressed = measured(has_short_gradients=True)
    for series, changes in (
        (compressed, {"gradients": "fp16"}),
        (of_servers(1, 2, 4), {"algorithm": "tree"}),
        (of_servers(1, 2, 4), {"link": "10Gbit/s"}),
        (curve(point(2, ring(2)), point(4, ring(4))), {"latency": "10us"}),
        (curve(point(2, ring(2), 2), point(4, ring(4), 2)), {"algorithm": "hierarchical"}),
    ):
        [refused] = what_if([series], changes)
        assert isinstance(refused, Refusal)
        assert refused.reason.startswith(next(iter(changes)))


def test_fewer_processes_on_the_same_cores_have_no_scenario():
    points = [point(units, ring(units), latency_seconds=1e-3, exchanged_bytes=BYTES) for units in (1, 2)]
    of_cores = replace(curve(*points), unit=Unit.DEVICE, on_gpus=False)
    [scenario] = what_if([of_cores], {"link": "2x"}, Unit.DEVICE, [1, 2, 3])
    assert [size.units for size in scenario.sizes] == [2]
    assert set(scenario.left_out) == {1, 3}
    [refused] = what_if([of_cores], {"algorithm": "tree"}, Unit.DEVICE)
    assert "several nodes" in refused.reason


NOT_VALID = [
    "lnk=2x",
    "link",
    "link=fast",
    "link=0x",
    "link=0.0Gbit/s",
    "batch=0",
    "batch=1.5",
    "overlap=2",
    "input=all",
]


@pytest.mark.parametrize("option", NOT_VALID)
def test_what_does_not_exist_is_one_message_with_what_does(option):
    with pytest.raises(WhatIfError) as raised:
        parsed([option])
    name = option.partition("=")[0]
    valid = CHANGES[name].valid if name in CHANGES else ", ".join(CHANGES)
    assert valid in str(raised.value)
    with pytest.raises(WhatIfError, match="twice"):
        parsed(["link=2x", "link=3x"])


@pytest.fixture
def study(tmp_path, monkeypatch):
    """One device a node: 80 ms of computation, half a millisecond a round, and 19 ms for carrying all bytes once."""
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    baseline, planned = configuration(), []
    for nodes, exchange in ((1, 0.0), (2, 0.020), (4, 0.0315)):
        latency = 0.001 * (nodes - 1)
        recipe = Recipe(exposed_seconds=exchange / 2, exchange_seconds=exchange or 0.02, latency_seconds=latency)
        planned.append(Planned(configuration(nodes=nodes), recipe, baseline=baseline))
    write_study(StudyPaths.of("example"), planned)
    return dlperf_study.open_study("example")


def test_a_study_tells_what_a_faster_link_gives(study, capsys):
    scenarios = study.what_if(nodes=[4, 8], link="2x")
    four, eight = (scenarios.frame.loc[("ResNet-50", count)] for count in (4, 8))
    assert four["ratio"] == pytest.approx((0.080 + 0.01575) / (0.080 + (0.003 + 0.01425) / 2), rel=0.02)
    # 14 rounds, and 7/4 of the bytes.
    assert eight["ratio"] == pytest.approx((0.080 + 0.04025 / 2) / (0.080 + (0.007 + 0.016625) / 2), rel=0.02)
    assert main(["predict", "example", "--nodes", "4", "8", "--what-if", "link=2x"]) == 0
    assert repr(scenarios) == capsys.readouterr().out.rstrip("\n")
    assert "<table" in scenarios._repr_html_()
    # A link of that rate: twice as many bytes/s as the exchanges had.
    as_rate = f"link={2 * 8 * GRADIENT_BYTES / 0.019 / 1e9:.4f}Gbit/s"
    assert main(["predict", "example", "--nodes", "8", "--what-if", as_rate, "--json"]) == 0
    [series] = json.loads(capsys.readouterr().out)["series"]
    assert series["sizes"][0]["ratio"] == pytest.approx(eight["ratio"], rel=0.02)
    assert math.isclose(series["physical_model"]["link_bytes_per_second"], GRADIENT_BYTES / 0.019, rel_tol=0.05)


def test_a_published_series_and_a_misspelt_change_are_refused(capsys):
    assert main(["predict", "dlperf_paddle_resnet50/fp32_b128", "--what-if", "link=2x"]) == 1
    assert "alone" in capsys.readouterr().out
    assert main(["predict", "dlperf_paddle_resnet50/fp32_b128", "--what-if", "lnk=2x"]) == 1
    captured = capsys.readouterr()
    assert "did you mean link" in captured.err
    assert "Traceback" not in captured.err
