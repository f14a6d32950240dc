"""Against the same numbers computed from the runs by hand."""

from statistics import median

import pytest

from dlperf_study.dataset.configuration_table import MEDIANS
from dlperf_study.dataset.dataset import collect
from tests.evidence_factory import Planned, Recipe, configuration, example_study, write_study

ONE, FOUR = configuration(), configuration(devices_per_node=4)


@pytest.fixture
def dataset(paths):
    example_study(paths)
    return collect(paths)


def row(dataset, asked):
    return dataset.configurations.set_index("identity").loc[asked.identity]


def values(dataset, asked, column):
    return dataset.runs.loc[dataset.runs["identity"] == asked.identity, column].tolist()


@pytest.mark.parametrize("column", [name for name in MEDIANS if not name.startswith("fixed_window")])
def test_a_measured_column_is_the_median_over_the_runs(dataset, column):
    assert row(dataset, FOUR)[column] == pytest.approx(median(values(dataset, FOUR, column)))


def test_the_interval_of_three_runs_is_their_range(dataset):
    rates, found = values(dataset, FOUR, "throughput"), row(dataset, FOUR)
    assert (found.throughput_low, found.throughput_high) == pytest.approx((min(rates), max(rates)))
    assert found.interval_coverage == 0.75


def test_speedup_and_efficiency_are_those_of_the_medians(dataset):
    ratio = median(values(dataset, FOUR, "throughput")) / median(values(dataset, ONE, "throughput"))
    found = row(dataset, FOUR)
    assert (found.speedup, found.efficiency) == pytest.approx((ratio, ratio / 4))
    assert found.efficiency_low == pytest.approx(found.speedup_low / 4)
    assert found.speedup_low < found.speedup < found.speedup_high


def test_a_speedup_has_its_baseline(dataset):
    found, baseline = row(dataset, FOUR), row(dataset, ONE)
    assert found.baseline_throughput == baseline.throughput
    assert (found.baseline_low, found.baseline_high) == (baseline.throughput_low, baseline.throughput_high)
    assert baseline.is_baseline
    assert not found.is_baseline


def test_computation_to_communication_is_a_ratio_of_medians(dataset):
    found = row(dataset, FOUR)
    assert found.computation_to_communication == pytest.approx(found.computation_seconds / found.exposed_seconds)
    assert row(dataset, ONE)[["computation_to_communication"]].isna().all()


def test_an_unsupported_configuration_has_a_reason_and_no_number(dataset):
    found = row(dataset, configuration(precision="fp16"))
    assert found.unsupported_reason == "precision fp16 is not built"
    assert (found.runs_planned, found.runs_completed) == (0, 0)
    assert found[["throughput", "speedup", "interval_coverage", *MEDIANS]].isna().all()


def test_failed_runs_are_not_summarised(paths):
    write_study(paths, [Planned(ONE, Recipe(outcome="killed"))])
    found = row(collect(paths), ONE)
    assert (found.runs_planned, found.runs_completed) == (3, 0)
    assert found[["throughput", "speedup"]].isna().all()


def test_two_runs_have_a_throughput_without_interval(paths):
    write_study(paths, [Planned(ONE, runs=2)])
    found = row(collect(paths), ONE)
    assert found.throughput > 0
    assert found[["throughput_low", "interval_coverage", "speedup_low"]].isna().all()
