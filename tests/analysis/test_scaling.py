import pytest

from dlperf_study.analysis.scaling import curve_diagnostics, efficiency, series_factors
from dlperf_study.dataset.configuration_table import configurations_table
from dlperf_study.dataset.dataset import collect
from dlperf_study.diagnostic import Severity
from tests.evidence_factory import Planned, Recipe, configuration, write_study

ONE, TWO = configuration(), configuration(devices_per_node=2)


def measured(paths, *points, scaling="weak", runs=3):
    """Collect a study from pairs of parameters and seconds per step."""
    planned = [
        Planned(configuration(**parameters), Recipe(seconds, 0.0, noise=0.001), runs) for parameters, seconds in points
    ]
    write_study(paths, planned, scaling)
    return collect(paths)


def test_efficiency_is_against_the_devices_of_the_baseline():
    assert efficiency(3.0, 8, 2) == pytest.approx(0.75)


def test_a_point_above_linear_is_diagnosed(paths):
    dataset = measured(paths, ({}, 0.1), ({"devices_per_node": 2}, 0.08))
    (diagnostic,) = curve_diagnostics(dataset.configurations, "weak")
    assert diagnostic.identity == dataset.configurations["identity"][1]
    assert "above linear: from 1 to 2 devices" in diagnostic.message
    assert "cache" in diagnostic.message


def test_a_point_far_above_linear_is_an_error_without_excuse(paths):
    dataset = measured(paths, ({}, 0.1), ({"devices_per_node": 2}, 0.02))
    (diagnostic,) = curve_diagnostics(dataset.configurations, "weak")
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.message.startswith("5 times linear: from 1 to 2 devices")
    assert "innocent" not in diagnostic.message


@pytest.mark.parametrize("runs", [1, 3])
def test_a_point_that_falls_is_diagnosed_with_and_without_intervals(paths, runs):
    dataset = measured(paths, ({}, 0.1), ({"devices_per_node": 2}, 0.3), runs=runs)
    (diagnostic,) = curve_diagnostics(dataset.configurations, "weak")
    assert "falls: from 1 to 2 devices" in diagnostic.message


def test_ordinary_scaling_is_not_diagnosed(paths):
    dataset = measured(paths, ({}, 0.1), ({"devices_per_node": 2}, 0.11), ({"devices_per_node": 4}, 0.13))
    assert list(curve_diagnostics(dataset.configurations, "weak")) == []


def test_what_was_repeated_unequally_often_lies_on_one_curve(paths):
    dataset = measured(paths, ({"repeats": 4}, 0.1), ({"devices_per_node": 2, "repeats": 3}, 0.08))
    assert len(list(curve_diagnostics(dataset.configurations, "weak"))) == 1


def test_points_of_different_series_are_not_compared(paths):
    dataset = measured(paths, ({}, 0.1), ({"devices_per_node": 2, "model": "vgg16"}, 0.5))
    assert list(curve_diagnostics(dataset.configurations, "weak")) == []


def test_under_strong_scaling_the_batch_per_device_changes_along_the_curve(paths):
    points = ({"batch_per_device": 32}, 0.1), ({"batch_per_device": 16, "devices_per_node": 2}, 0.2)
    dataset = measured(paths, *points, scaling="strong")
    assert len(list(curve_diagnostics(dataset.configurations, "strong"))) == 1
    assert "batch_per_device" in series_factors(dataset.configurations, "weak")
    assert "batch_per_device" not in series_factors(dataset.configurations, "strong")


def test_under_strong_scaling_each_global_batch_is_a_curve_of_its_own(paths):
    points = [
        ({"batch_per_device": 64}, 0.2),
        ({"batch_per_device": 32, "devices_per_node": 2}, 0.1),
        ({"batch_per_device": 128}, 0.4),
        ({"batch_per_device": 64, "devices_per_node": 2}, 0.2),
    ]
    dataset = measured(paths, *points, scaling="strong")
    factors = series_factors(dataset.configurations, "strong")
    curves = dataset.configurations.groupby(factors)["batch_per_device"].apply(list).tolist()
    assert curves == [[64, 32], [128, 64]]
    assert list(curve_diagnostics(dataset.configurations, "strong")) == []


def test_servers_split_curves_only_where_they_vary_at_equal_devices(paths):
    alone = measured(paths, ({"servers": 1}, 0.1), ({"servers": 2, "devices_per_node": 2}, 0.1))
    assert "servers" not in series_factors(alone.configurations, "weak")
    both = configurations_of({"servers": 1}, {"servers": 2}, {"servers": 2, "devices_per_node": 2})
    assert "servers" in series_factors(both, "weak")


def configurations_of(*parameters):
    import pandas as pd

    asked = [configuration(**values) for values in parameters]
    return pd.DataFrame([one.as_dict() | {"world_size": one.world_size} for one in asked])


def test_a_speedup_without_baseline_is_missing_and_an_error(paths):
    failed = Planned(ONE, Recipe(outcome="failed", reason="no memory"))
    plan = write_study(paths, [failed, Planned(TWO)])
    table, diagnostics = configurations_table(plan, collect(paths).runs, {})
    assert table.loc[1, ["speedup", "efficiency", "baseline_throughput"]].isna().all()
    assert table.loc[1, "throughput"] > 0
    assert [(diagnostic.subject, diagnostic.severity) for diagnostic in diagnostics] == [("speedup", "error")]
