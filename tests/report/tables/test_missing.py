"""A dash has the reason why the number, or its interval, is missing."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dlperf_study.dataset.dataset import collect
from dlperf_study.metrics.metric import not_measured_in_run
from dlperf_study.metrics.statistics import Estimate, NoInterval, Sample
from dlperf_study.report.tables.missing import explain_missing, explain_missing_interval, explain_missing_of_run
from dlperf_study.study.program import OWN_PROGRAM
from tests.evidence_factory import Planned, Recipe, configuration, write_study

OTHER, TWO = (configuration(framework=name, devices_per_node=2) for name in ("torch_ddp", "paddle_collective"))
EQUAL_RUNS = Recipe(noise=0.0)

RUN = {
    "repetition": 1,
    "breakdown_from": 1,
    "framework": "torch_ddp",
    "status": "completed",
    "cpu_limit": 0.0,
    "communication": "none",
    "wall_obstacle": "its lines have no times",
}


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("communication_seconds", "nothing to communicate"),
        ("used_cores", "no CPU limit was set"),
        ("throttled_share", "no CPU limit was set"),
        ("steadiness", "its steps are too few, or vary too much, to tell"),
        ("wall_throughput", "its lines have no times"),
    ],
)
def test_a_dash_of_a_run_has_its_reason(column, reason):
    assert explain_missing_of_run(SimpleNamespace(**RUN), column) == reason


def test_a_run_that_failed_does_not_count_and_an_unknown_reason_is_the_definition():
    assert explain_missing_of_run(SimpleNamespace(**RUN | {"status": "failed"}), "used_cores").endswith(
        "does not count"
    )
    assert explain_missing_of_run(SimpleNamespace(**RUN | {"cpu_limit": 0.3}), "used_cores").startswith("Used cores: ")


def test_what_a_program_of_the_user_does_not_measure_is_not_explained_by_what_it_is():
    program = SimpleNamespace(**RUN | {"framework": OWN_PROGRAM})
    assert explain_missing_of_run(program, "load_balance") == not_measured_in_run(program)
    assert not not_measured_in_run(SimpleNamespace(**RUN))
    assert not not_measured_in_run(SimpleNamespace(status="completed"))


def measured(paths, of_other=(), of_two=(), two=TWO):
    """Return a study of two frameworks on two devices, and the row of the one that is compared with the other."""
    planned = [Planned(OTHER, *of_other), Planned(two, *of_two)]
    write_study(paths, [replace(item, reference=OTHER) for item in planned])
    dataset = collect(paths)
    return dataset, dataset.configuration_rows[two.configuration_id]


def interval_reason(measured_study, column, role=None):
    dataset, row = measured_study
    return explain_missing_interval(dataset, row, column, role)


def test_two_runs_have_no_interval(paths):
    study = measured(paths, of_two=(Recipe(), 2))
    expected = "fewer than 3 completed runs (2)"
    assert interval_reason(study, "throughput") == expected
    for column, role in (("speedup", "baseline"), ("compute_difference_seconds", "reference")):
        assert interval_reason(study, column, role) == expected


def test_a_value_that_two_of_three_runs_have_has_no_interval(paths):
    study = measured(paths, two=replace(TWO, breakdown_from=2))
    assert interval_reason(study, "compute_seconds").startswith("fewer than 3 of the runs")
    reason = interval_reason(study, "compute_difference_seconds", "reference")
    assert reason.startswith("fewer than 3 rounds measured the parts of a step of both it and its reference")


def test_runs_that_differ_are_never_called_equal(paths):
    """Values of 0, 0, 0, 0, none and 5.17 of runs that are precise."""
    dataset, row = measured(paths, of_two=(Recipe(noise=0.001), 6))
    runs = dataset.runs.copy()
    runs.loc[runs["configuration_id"] == TWO.configuration_id, "jitter_seconds"] = [0.0, 0.0, 0.0, 0.0, np.nan, 5.17]
    plan = dataset.plan.changed(target_ci=0.5, max_repetitions=12)
    changed = replace(dataset, runs=runs, plan=plan)
    assert "very value" not in explain_missing_interval(changed, row, "jitter_seconds")


def test_equal_runs_have_no_interval(paths):
    study = measured(paths, (EQUAL_RUNS, 3), (EQUAL_RUNS, 3))
    assert interval_reason(study, "throughput") == "all its runs have this very value: no interval"
    expected = "the same difference in every round"
    assert interval_reason(study, "speedup", "baseline") == expected
    parts = interval_reason(study, "compute_difference_seconds", "reference")
    assert parts == "the parts of a step of it and its reference differ by the same in every round: no interval"


def test_runs_of_fewer_than_three_common_rounds_have_no_interval_of_a_ratio(paths):
    dataset, row = measured(paths, of_two=(Recipe(order="by hand"), 3))
    assert explain_missing_interval(dataset, row, "speedup", "baseline") == "fewer than 3 common rounds (0)"
    blocks = replace(dataset, plan=dataset.plan.changed(order="sequential"))
    assert explain_missing_interval(blocks, row, "speedup", "baseline") == "runs in sequential order"


def test_a_baseline_of_two_runs_gives_no_interval_of_a_ratio(paths):
    study = measured(paths, of_other=(Recipe(), 2))
    expected = "baseline: fewer than 3 completed runs (2)"
    assert interval_reason(study, "speedup", "baseline") == expected


def test_equal_and_few_throughputs_of_logs_have_no_interval_of_a_ratio(paths):
    """Runs of logs are in no rounds."""
    dataset, row = measured(paths, of_two=(EQUAL_RUNS, 3))
    logs = replace(dataset, plan=dataset.plan.changed(ingested_from="logs"))
    expected = "equal values in all runs"
    assert explain_missing_interval(logs, row, "speedup", "baseline") == expected
    runs = dataset.runs.copy()
    is_second = (runs["configuration_id"] == TWO.configuration_id) & (runs["repetition"] > 2)
    runs.loc[is_second, "throughput"] = np.nan
    expected = "fewer than 3 completed runs (2)"
    assert explain_missing_interval(replace(logs, runs=runs), row, "speedup", "baseline") == expected


def test_an_interval_that_an_older_table_has_not_is_not_explained_by_its_runs(paths):
    study = measured(paths)
    for column, role in (
        ("throughput", None),
        ("speedup", "baseline"),
        ("compute_difference_seconds", "reference"),
    ):
        assert interval_reason(study, column, role) == "no CI in this table of configurations"


def test_a_part_that_one_of_both_did_not_measure_has_no_difference(paths):
    dataset, row = measured(paths, two=replace(TWO, compute_only_steps=0))
    assert explain_missing(dataset, row, "compute_difference_seconds") == "it was not measured of both"
    for column in ("compute_seconds", "exposed_communication_seconds", "jitter_seconds", "load_balance"):
        assert explain_missing(dataset, row, column) == "compute-only time was not measured", column


def test_a_difference_of_equal_parts_is_not_explained_by_a_lack_of_rounds(paths):
    """Steps differ, and computation exceeds exposed communication by the same in every round."""
    dataset, row = measured(paths, (EQUAL_RUNS, 3), (EQUAL_RUNS, 3))
    changed = row._replace(significance="slower", largest_difference=None)
    reason = explain_missing(dataset, changed, "largest_difference")
    assert reason == "the parts of a step of it and its reference differ by the same in every round: no interval"


def test_numbers_of_an_exchange_that_was_not_measured_alone_say_so(paths):
    dataset, row = measured(paths, two=replace(TWO, communication_only_steps=0))
    for column in ("communication_latency_seconds", "communication_bandwidth", "bus_bandwidth", "overlap"):
        assert explain_missing(dataset, row, column) == "communication alone was not measured", column


def test_an_exchange_of_another_kind_has_no_bus_bandwidth(paths):
    dataset, row = measured(paths, of_two=(Recipe(communication="synchronous_push_pull"), 3))
    assert explain_missing(dataset, row, "bus_bandwidth") == "defined for an all-reduce only"
    assert explain_missing(dataset, row, "communication_latency_seconds").startswith(
        "transfers of one kind in three sizes"
    )


def test_ranks_that_wait_inside_their_computation_have_no_jitter(paths):
    dataset, row = measured(paths, two=replace(TWO, classifier="sharded"))
    expected = "ranks wait for each other inside their computation"
    assert explain_missing(dataset, row, "jitter_seconds") == expected
    assert explain_missing(dataset, row, "overlap") == f"{expected}, so synchronisation jitter is unknown"


@pytest.mark.parametrize(
    ("estimate", "reason"),
    [
        (Estimate.from_values([1.0, 2.0]), NoInterval.FEW_VALUES),
        (Estimate.from_values([1.0, 1.0, 1.0]), NoInterval.EQUAL_VALUES),
        (Estimate.from_values([1.0, 1.1, 1.2]), None),
        (Estimate.from_values([1.0, 1.1, 1.2]).minus(Estimate.from_values([1.0])), NoInterval.FEW_VALUES),
        (Sample(np.ones(3), np.arange(3.0)).minus(Sample(np.ones(3), np.arange(1.0, 4.0))), NoInterval.FEW_ROUNDS),
    ],
)
def test_an_estimate_without_an_error_has_the_reason(estimate, reason):
    assert (estimate.reason, estimate.error is None) == (reason, reason is not None)
