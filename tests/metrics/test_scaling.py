import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dlperf_study.core.errors import Severity
from dlperf_study.dataset.configuration_table import configurations_table, counted_throughputs
from dlperf_study.dataset.dataset import collect
from dlperf_study.metrics.scaling import (
    CurvePoint,
    CurveStep,
    curve_diagnostics,
    doubtful_speedups,
    efficiency,
    scaling_columns,
    series_factors,
    unexplained_steps,
)
from dlperf_study.metrics.statistics import Estimate, Interval, Sample
from tests.evidence_factory import Planned, Recipe, configuration, write_study

ONE, TWO = configuration(), configuration(devices_per_node=2)


def measured(paths, *points, scaling="weak", runs=3):
    """Collect a study from pairs of parameters and seconds per step."""
    planned = [
        Planned(configuration(**parameters), Recipe(seconds, 0.0, noise=0.001), runs) for parameters, seconds in points
    ]
    write_study(paths, planned, scaling)
    return collect(paths)


def of_curves(dataset):
    throughputs = counted_throughputs(dataset.runs, dataset.plan)
    return curve_diagnostics(dataset.configurations, throughputs, dataset.plan.scaling)


def test_efficiency_and_its_interval_are_per_device_of_the_baseline():
    assert efficiency(3.0, 8, 2) == pytest.approx(0.75)
    columns = scaling_columns(6.0, Interval(4.0, 8.0), 16, 2)
    assert columns["efficiency"] == 6.0 * 2 / 16
    assert (columns["efficiency_low"], columns["efficiency_high"]) == (4.0 * 2 / 16, 8.0 * 2 / 16)
    assert (columns["speedup"], columns["speedup_low"], columns["speedup_high"]) == (6.0, 4.0, 8.0)
    assert scaling_columns(6.0, None, 16, 2) == {"speedup": 6.0, "efficiency": 0.75}


@pytest.mark.parametrize(
    ("seconds", "runs", "severity"),
    [(0.08, 3, Severity.WARNING), (0.06, 2, Severity.NOTE), (0.3, 3, Severity.WARNING)],
    ids=["above linear", "above linear without an interval", "falls"],
)
def test_a_point_above_linear_or_that_falls_is_diagnosed(paths, seconds, runs, severity, snapshot):
    dataset = measured(paths, ({}, 0.1), ({"devices_per_node": 2}, seconds), runs=runs)
    (diagnostic,) = of_curves(dataset)
    assert (diagnostic.configuration_id, diagnostic.severity) == (
        dataset.configurations["configuration_id"][1],
        severity,
    )
    assert diagnostic.message == snapshot


def test_a_speedup_far_above_linear_is_an_error_without_excuse(paths, snapshot):
    dataset = measured(paths, ({}, 0.1), ({"devices_per_node": 2}, 0.02), ({"devices_per_node": 4}, 0.02))
    about = dataset.diagnostics[dataset.diagnostics["subject"] == "speedup"]
    assert set(about["severity"]) == {"error"}
    assert about["message"].tolist() == snapshot


@pytest.mark.parametrize(
    ("efficiency", "low", "changes", "is_doubtful"),
    [
        (1.3, 1.2, {}, False),
        (1.31, 1.2, {}, True),
        (1.31, np.nan, {}, True),
        (1.31, 0.9, {}, False),
        (3.0, 2.9, {"model": "vgg16"}, False),
        (3.0, 2.9, {"devices_per_node": 1, "threads_per_device": 2}, False),
    ],
)
def test_a_speedup_is_doubtful_above_1_3_times_linear_if_chance_does_not_explain_it(
    efficiency, low, changes, is_doubtful
):
    """Over the same configuration on fewer devices: other parameters may make anything faster."""
    table = configurations_of({}, {"devices_per_node": 2, **changes})
    table = table.assign(efficiency=[1.0, efficiency], efficiency_low=[1.0, low])
    table = table.assign(configuration_id=["one", "two"], baseline_id="one")
    doubtful = list(doubtful_speedups(table, "weak"))
    assert [(each.configuration_id, each.severity) for each in doubtful] == [("two", Severity.ERROR)] * is_doubtful


def test_what_runs_explain_or_linear_scaling_allows_is_not_diagnosed():
    falling = CurveStep(CurvePoint(1, 100.0), CurvePoint(2, 95.0), Estimate(math.log(0.95), 0.03, 4))
    assert unexplained_steps([falling]) == [False]
    assert unexplained_steps([replace(falling, log_ratio=Estimate(math.log(0.95), 0.01, 4))]) == [True]
    step = CurveStep(CurvePoint(1, 100.0), CurvePoint(2, 180.0), Estimate(math.log(1.8), 1e-6, 4))
    assert unexplained_steps([step]) == [False]
    assert unexplained_steps([replace(step, log_ratio=Estimate(math.log(2.1), 1e-6, 4))]) == [True]
    # The gain is against the devices.
    step = CurveStep(CurvePoint(2, 100.0), CurvePoint(8, 300.0), Estimate(math.log(3.0)))
    assert (step.devices_ratio, step.gain) == (4.0, 0.75)


@pytest.mark.parametrize(
    ("points", "runs", "diagnosed"),
    [
        ([({}, 0.1), ({"devices_per_node": 2}, 0.11), ({"devices_per_node": 4}, 0.13)], 3, 0),
        ([({}, 0.1), ({"devices_per_node": 2}, 0.3)], 2, 0),
        ([({}, 0.1), ({"devices_per_node": 2, "model": "vgg16"}, 0.5)], 3, 0),
        ([({"repetitions": 4}, 0.1), ({"devices_per_node": 2, "repetitions": 3}, 0.08)], 3, 1),
    ],
    ids=["ordinary scaling", "falls without intervals", "different series", "repeated unequally often"],
)
def test_which_points_of_a_curve_are_diagnosed(paths, points, runs, diagnosed):
    assert len(list(of_curves(measured(paths, *points, runs=runs)))) == diagnosed


def test_under_strong_scaling_the_batch_per_device_changes_along_the_curve(paths):
    points = ({"batch_per_device": 32}, 0.1), ({"batch_per_device": 16, "devices_per_node": 2}, 0.2)
    dataset = measured(paths, *points, scaling="strong")
    assert len(list(of_curves(dataset))) == 1
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
    curves = dataset.configurations.groupby(factors, dropna=False)["batch_per_device"].apply(list).tolist()
    assert curves == [[64, 32], [128, 64]]
    assert list(of_curves(dataset)) == []


def test_servers_split_curves_only_where_they_vary_at_equal_devices(paths):
    alone = measured(paths, ({"parameter_servers": 1}, 0.1), ({"parameter_servers": 2, "devices_per_node": 2}, 0.1))
    assert "parameter_servers" not in series_factors(alone.configurations, "weak")
    both = configurations_of(
        {"parameter_servers": 1}, {"parameter_servers": 2}, {"parameter_servers": 2, "devices_per_node": 2}
    )
    assert "parameter_servers" in series_factors(both, "weak")


def test_nodes_split_curves_where_servers_do_not_vary():
    table = configurations_of({"nodes": 2}, {"devices_per_node": 2})
    factors = series_factors(table, "weak")
    assert ("parameter_servers" in factors, "nodes" in factors, "devices_per_node" in factors) == (False, True, False)


def severities_of(throughputs, *parameters, **columns):
    """Return the identity and severity of the diagnostics on a curve of these throughputs, each of three runs."""
    table = configurations_of(*parameters).assign(throughput=throughputs, **columns)
    table["configuration_id"] = [f"point {position}" for position in range(len(table))]
    runs = np.array([0.999, 1.0, 1 / 0.999])
    samples = {f"point {position}": Sample(throughput * runs) for position, throughput in enumerate(throughputs)}
    return [
        (diagnostic.configuration_id, diagnostic.severity) for diagnostic in curve_diagnostics(table, samples, "weak")
    ]


def test_a_curve_in_tokens_alone_is_judged_in_tokens():
    table = configurations_of({}, {"devices_per_node": 2}).assign(throughput=np.nan, token_throughput=[100.0, 450.0])
    table["configuration_id"] = ["one", "two"]
    samples = {"one": Sample(np.array([100.0] * 3)), "two": Sample(np.array([450.0] * 3))}
    [diagnostic] = curve_diagnostics(table, samples, "weak", "token_throughput")
    assert diagnostic.severity is Severity.NOTE
    assert "from 100 to 450 tokens/s" in diagnostic.message


def test_curves_are_in_the_order_of_the_table_and_only_more_devices_are_steps():
    assert severities_of([100.0, 90.0], {}, {"devices_per_node": 2}, target_ci=None) == [("point 1", Severity.WARNING)]
    points = [{"model": model, "devices_per_node": devices} for model in ("vgg16", "resnet50") for devices in (1, 2)]
    severities = severities_of([100.0, 90.0, 100.0, 90.0], *points)
    assert [configuration_id for configuration_id, _ in severities] == ["point 1", "point 3"]
    assert severities_of([100.0, 50.0], {}, {"repetitions": 4}) == []
    assert severities_of([50.0, 100.0], {"devices_per_node": 2}, {}) == [("point 0", Severity.WARNING)]


def configurations_of(*parameters):
    configurations = [configuration(**values) for values in parameters]
    return pd.DataFrame([one.as_dict() | {"world_size": one.world_size} for one in configurations])


def test_a_speedup_without_baseline_is_missing_and_an_error(paths):
    failed = Planned(ONE, Recipe(status="failed", reason="no memory"))
    plan = write_study(paths, [failed, Planned(TWO)])
    table, diagnostics = configurations_table(plan, collect(paths).runs, {})
    assert table.loc[1, ["speedup", "efficiency", "baseline_throughput"]].isna().all()
    assert table.loc[1, "throughput"] > 0
    assert [(diagnostic.subject, diagnostic.severity) for diagnostic in diagnostics] == [("speedup", "error")]
