"""Against the same numbers computed from the runs by hand."""

from statistics import fmean, geometric_mean

import numpy as np
import pytest
from scipy.stats import t

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.configuration_table import _estimate_columns
from dlperf_study.dataset.dataset import collect
from dlperf_study.metrics.columns import COLUMNS, Summary, summarised
from dlperf_study.metrics.statistics import Estimate
from dlperf_study.report.tables.missing import explain_missing
from dlperf_study.study.communication import COLLECTIVE_KINDS
from tests.evidence_factory import Planned, Recipe, configuration, edit_log, example_study, write_study

THROUGHPUTS, SIGNED, POSITIVE, FACTS = map(
    summarised, (Summary.GEOMETRIC, Summary.MEAN, Summary.POSITIVE_MEAN, Summary.FACT)
)
ONE, FOUR = configuration(), configuration(devices_per_node=4)


RECIPE = Recipe(input_seconds=0.004, batch_seconds=0.03)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    paths = StudyPaths(tmp_path_factory.mktemp("example"))
    example_study(paths, recipe=RECIPE)
    return collect(paths)


def row(dataset, asked):
    return dataset.configurations.set_index("configuration_id").loc[asked.configuration_id]


def values(dataset, asked, column):
    return dataset.runs.loc[dataset.runs["configuration_id"] == asked.configuration_id, column].tolist()


def t_interval(numbers):
    return t.interval(0.95, len(numbers) - 1, np.mean(numbers), np.std(numbers, ddof=1) / np.sqrt(len(numbers)))


#: Of ingested logs, sequences, recomputation, asynchronous trainers, or a strategy with several kinds of collectives.
ELSEWHERE = (
    *("fixed_window", "token_throughput", "device_token_throughput", "hfu", "sum_of_rank_throughputs"),
    *(f"{kind}_bandwidth" for kind in COLLECTIVE_KINDS),
)


@pytest.mark.parametrize("column", [name for name in THROUGHPUTS if not name.startswith(ELSEWHERE)])
def test_a_throughput_is_the_geometric_mean_over_the_runs_with_its_interval(dataset, column):
    throughputs, summary = values(dataset, FOUR, column), row(dataset, FOUR)
    assert summary[column] == pytest.approx(geometric_mean(throughputs))
    ends = (summary[f"{column}_low"], summary[f"{column}_high"])
    assert ends == pytest.approx(tuple(np.exp(t_interval(np.log(throughputs)))))


#: Of long windows, of compiled networks, and of runs with telemetry: see test_resources.py.
NOT_OF_ALL = (
    *("step_p95_seconds", "step_p99_seconds", "compile_seconds", "energy_per_sample", "mean_power"),
    *("gpu_utilisation", "sm_clock", "memory_clock", "clock_limited_share"),
    *("network_throughput", "network_throughput_before"),
    # Of a configuration below 2 ms there is none.
    "jitter_seconds",
    # Of strategies whose collectives have several groups.
    *(f"{kind}_alone_seconds" for kind in COLLECTIVE_KINDS),
    *(
        "data_communication_seconds",
        "shard_communication_seconds",
        "tensor_communication_seconds",
        "pipeline_communication_seconds",
    ),
)


@pytest.mark.parametrize("column", [name for name in SIGNED if name not in NOT_OF_ALL])
def test_what_may_be_negative_is_the_mean_over_the_runs_with_its_interval(dataset, column):
    numbers, summary = values(dataset, FOUR, column), row(dataset, FOUR)
    low, high = np.clip(t_interval(numbers), *COLUMNS[column].limits)
    assert summary[column] == pytest.approx(fmean(numbers))
    assert (summary[f"{column}_low"], summary[f"{column}_high"]) == pytest.approx((low, high))


@pytest.mark.parametrize("column", [name for name in POSITIVE if name not in NOT_OF_ALL])
def test_a_positive_quantity_has_the_mean_over_the_runs_with_an_interval_of_its_logarithm(dataset, column):
    numbers, summary = values(dataset, FOUR, column), row(dataset, FOUR)
    low, high = summary[f"{column}_low"], summary[f"{column}_high"]
    half_width = t_interval(numbers)[1] - fmean(numbers)
    assert summary[column] == pytest.approx(fmean(numbers))
    assert np.log([low, high]) == pytest.approx(
        np.log(fmean(numbers)) + np.array([-1, 1]) * half_width / fmean(numbers)
    )


def summary_of(column, runs):
    """Return the mean of a metric over runs, with its interval."""
    metric = COLUMNS[column]
    values = np.log(runs) if metric.summary is Summary.GEOMETRIC else runs
    return _estimate_columns(metric, Estimate.from_values(values))


def test_every_measured_column_has_columns_for_its_interval():
    assert {
        f"{name}_{bound}" for name in (*THROUGHPUTS, *SIGNED, *POSITIVE) for bound in ("low", "high")
    } <= COLUMNS.keys()


def test_the_parts_of_a_step_add_up(dataset):
    summary = row(dataset, FOUR)
    parts = summary.compute_seconds + summary.input_seconds + summary.exposed_communication_seconds
    assert summary.step_seconds == pytest.approx(parts)
    assert summary.input_seconds == pytest.approx(RECIPE.input_seconds, rel=0.05)


def test_speedup_and_efficiency_are_those_of_the_throughputs(dataset):
    found, baseline = row(dataset, FOUR), row(dataset, ONE)
    ratio = found.throughput / baseline.throughput
    assert (found.speedup, found.efficiency) == pytest.approx((ratio, ratio / 4))
    assert found.efficiency_low == pytest.approx(found.speedup_low / 4)
    assert found.speedup_low < found.speedup < found.speedup_high
    for name in ("throughput", "throughput_low", "throughput_high"):
        assert found[f"baseline_{name}"] == baseline[name]
    assert (baseline.is_baseline, found.is_baseline) == (True, False)


def test_an_unsupported_configuration_has_a_reason_and_no_number(dataset, snapshot):
    summary = row(dataset, configuration(precision="fp16"))
    assert summary.unsupported_reason == snapshot
    assert (summary.runs_planned, summary.runs_completed) == (0, 0)
    assert (
        summary[["throughput", "speedup", "baseline_significance", *THROUGHPUTS, *SIGNED, *POSITIVE, *FACTS]]
        .isna()
        .all()
    )


def test_failed_runs_are_not_summarised(paths):
    write_study(paths, [Planned(ONE, Recipe(status="killed"))])
    summary = row(collect(paths), ONE)
    assert (summary.runs_planned, summary.runs_completed) == (3, 0)
    assert summary[["throughput", "speedup"]].isna().all()


def test_two_runs_have_a_throughput_without_interval(paths):
    write_study(paths, [Planned(ONE, runs=2)])
    summary = row(collect(paths), ONE)
    assert summary.throughput > 0
    assert summary[["throughput_low", "step_seconds_low"]].isna().all()


def test_the_peak_of_memory_is_that_of_the_rank_and_the_run_with_most(paths):
    """A rank that did not record a kind may have had most of it, so that kind has no peak."""
    kinds = {"process_bytes": 10**9, "allocated_bytes": 10**8}
    write_study(paths, [Planned(FOUR, Recipe(peak_memory=kinds), runs=2)])
    first, second = (paths.configuration(FOUR.configuration_id).run(repetition) for repetition in (1, 2))
    most = {"process_bytes": 3 * 10**9, "allocated_bytes": 3 * 10**8}
    edit_log(first.rank_log(0), lambda lines: lines[-1].update(peak_memory=most))
    edit_log(second.rank_log(2), lambda lines: lines[-1].update(peak_memory={"process_bytes": 2 * 10**9}))
    dataset = collect(paths)
    assert values(dataset, FOUR, "peak_process_bytes") == [3 * 10**9, 2 * 10**9]
    assert dataset.runs["peak_allocated_bytes"].tolist()[0] == 3 * 10**8
    assert dataset.runs["peak_allocated_bytes"].isna().tolist() == [False, True]
    summary = row(dataset, FOUR)
    assert (summary.peak_process_bytes, summary.peak_allocated_bytes) == (3 * 10**9, 3 * 10**8)
    assert dataset.configurations["peak_reserved_bytes"].isna().all()


def lengthen(run, steps):
    """Let the training window of the only rank have so many steps: its own again and again."""

    def repeat_steps(lines):
        [training] = [line for line in lines if line.get("name") == "training"]
        training |= {name: np.resize(training[name], steps).tolist() for name in ("step_seconds", "losses")}
        training |= {"steps": steps, "seconds": sum(training["step_seconds"])}

    edit_log(run.rank_log(0), repeat_steps)


def test_a_study_in_which_nothing_has_another_baseline_has_no_speedup(paths):
    write_study(paths, [Planned(FOUR, RECIPE, 3)])
    alone = collect(paths)
    assert row(alone, FOUR)[["speedup", "efficiency", "baseline_throughput"]].isna().all()
    reason = "every configuration is its own baseline"
    assert explain_missing(alone, next(alone.configurations.itertuples()), "speedup") == reason


@pytest.mark.parametrize("column", ["mfu", "hfu", "overlap", "gpu_utilisation"])
def test_no_share_and_no_end_of_its_interval_is_above_one(column):
    summary = summary_of(column, [0.4, 0.95, 0.9])
    assert summary[f"{column}_low"] < summary[column] < summary[f"{column}_high"] == 1.0


def test_no_mean_and_no_bound_is_beyond_what_the_value_can_be():
    """A latency of three runs that noise puts on both sides of 0 is not negative, nor is the end of its interval."""
    latency = summary_of("communication_latency_seconds", [-0.003, 0.001, -0.004])
    assert latency["communication_latency_seconds"] == latency["communication_latency_seconds_low"] == 0.0
    assert latency["communication_latency_seconds_high"] > 0
    wait = summary_of("input_seconds", [-0.002, 0.004, 0.001])
    assert (wait["input_seconds"], wait["input_seconds_low"]) == (pytest.approx(0.001), 0.0)
    assert wait["input_seconds_high"] > 0.004
    # A utilisation above 1 is an error, and is shown as it is.
    above_one = summary_of("mfu", [1.2, 1.3, 1.25])
    assert 1.2 < above_one["mfu"] < above_one["mfu_high"] < 1.4


def test_a_percentile_of_some_runs_only_is_none_of_the_configuration(paths):
    """A run of 80 steps has no 99th percentile: that of the others, which are faster, is not that of all."""
    of_80_steps = configuration(measured_steps=80, measured_seconds=1.0)
    write_study(paths, [Planned(of_80_steps)])
    first, second, third = (
        paths.configuration(of_80_steps.configuration_id).run(repetition) for repetition in (1, 2, 3)
    )
    lengthen(first, 120)
    lengthen(third, 120)
    dataset = collect(paths)
    assert [value > 0 for value in values(dataset, of_80_steps, "step_p99_seconds")] == [True, False, True]
    assert np.isnan(row(dataset, of_80_steps)["step_p99_seconds"])
    assert row(dataset, of_80_steps)["step_p50_seconds"] > 0
    lengthen(second, 120)
    assert row(collect(paths), of_80_steps)["step_p99_seconds"] > 0
