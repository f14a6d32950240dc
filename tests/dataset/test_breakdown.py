"""A study whose first runs train alone: each number is of the runs that measured it, and says so."""

import numpy as np
import pytest
from scipy import stats

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.report import context
from dlperf_study.report.tables.missing import explain_missing, explain_missing_of_run
from tests.evidence_factory import Planned, Recipe, configuration, write_run, write_study

FROM_FOUR = {"breakdown_from": 4, "repetitions": 6}
#: With the same global batch, so that their steps are the same work.
ONE, TWO = (configuration(devices_per_node=devices, batch_per_device=8 // devices, **FROM_FOUR) for devices in (1, 2))
#: Computation of the runs of two devices, in seconds a step: near each other at first, then not.
SECONDS = np.array([0.100, 0.101, 0.100, 0.110, 0.100, 0.090])
EXPOSED = np.array([0.020, 0.020, 0.020, 0.010, 0.014, 0.012])
PARTS = ["compute_seconds", "exposed_communication_seconds", "communication_seconds", "load_balance"]


def study_of(folder, runs=6, **changes) -> Dataset:
    paths = StudyPaths(folder / "example")
    plan = write_study(paths, [Planned(ONE, runs=0), Planned(TWO, runs=0, baseline=ONE, reference=ONE)])
    for repetition, (seconds, exposed) in enumerate(zip(SECONDS[:runs], EXPOSED[:runs], strict=True), start=1):
        write_run(paths, ONE, repetition, Recipe(compute_seconds=0.08 + 0.001 * repetition, noise=0.0))
        write_run(
            paths, TWO, repetition, Recipe(compute_seconds=seconds, exposed_communication_seconds=exposed, noise=0.0)
        )
    plan.changed(**changes).write(paths.plan_file)
    return collect(paths)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return study_of(tmp_path_factory.mktemp("breakdown"))


def row_of(dataset, asked):
    return dataset.configurations.set_index("configuration_id", drop=False).loc[asked.configuration_id]


def test_a_run_that_trains_alone_counts_and_nothing_is_wrong_with_it(dataset):
    runs = dataset.runs[dataset.runs["configuration_id"] == TWO.configuration_id]
    assert [row.notna().tolist() for _, row in runs[PARTS].iterrows()] == [[False] * 4] * 3 + [[True] * 4] * 3
    assert set(dataset.runs["status"]) == {"completed"}
    assert row_of(dataset, TWO)["runs_completed"] == 6
    about = dataset.diagnostics[dataset.diagnostics["severity"] != "note"]
    assert not about["subject"].isin([*PARTS, "runs_completed", "evidence"]).any(), about["message"].tolist()


def test_throughputs_are_of_all_runs_and_parts_of_those_that_measured_them(dataset):
    row, steps = row_of(dataset, TWO), SECONDS + EXPOSED
    assert row["throughput"] == pytest.approx(stats.gmean(TWO.global_batch / steps))
    assert (row["step_seconds"], row["broken_down_step_seconds"]) == pytest.approx((steps.mean(), steps[3:].mean()))
    assert row["compute_seconds"] == pytest.approx(SECONDS[3:].mean())
    half_width = stats.t.ppf(0.975, 2) * EXPOSED[3:].std(ddof=1) / np.sqrt(3)
    assert row["exposed_communication_seconds_high"] - row["exposed_communication_seconds"] == pytest.approx(half_width)
    parts = row[["compute_seconds", "input_seconds", "exposed_communication_seconds"]].to_numpy(float)
    assert parts.sum() == pytest.approx(row["broken_down_step_seconds"])


def test_differences_add_up_over_their_rounds(dataset):
    row = row_of(dataset, TWO)
    names = ("compute", "input", "exposed_communication")
    assert sum(row[f"{name}_difference_seconds"] for name in names) == pytest.approx(
        row["broken_down_step_difference_seconds"]
    )
    alone = 0.08 + 0.001 * np.arange(1, 7)
    of_rounds = np.log(alone / (SECONDS + EXPOSED) / 2)
    assert np.log(row["efficiency"]) == pytest.approx(of_rounds.mean())


def test_where_nothing_is_exchanged_every_run_is_its_computation(dataset):
    row = row_of(dataset, ONE)
    assert row["compute_seconds"] == row["broken_down_step_seconds"] == row["step_seconds"]


def test_a_dash_says_that_the_run_trained_alone(dataset):
    run = next(row for row in dataset.runs.itertuples() if row.configuration_id == TWO.configuration_id)
    reasons = {explain_missing_of_run(run, column) for column in (*PARTS, "overlap", "broken_down_step_seconds")}
    assert reasons == {"measured from run 4 on (breakdown_from)"}
    first = next(row for row in dataset.runs.itertuples() if row.configuration_id == ONE.configuration_id)
    assert explain_missing_of_run(first, "communication_seconds") == "nothing to communicate"


def test_an_interrupted_study_says_from_which_run_on_parts_are_measured(tmp_path, snapshot):
    dataset = study_of(tmp_path, runs=3)
    row = dataset.configuration_rows[TWO.configuration_id]
    reasons = {explain_missing(dataset, row, column) for column in (*PARTS, "overlap")}
    assert reasons == snapshot
    assert explain_missing(
        dataset, dataset.configuration_rows[ONE.configuration_id], "exposed_communication_seconds_low"
    )


def test_a_table_of_parts_says_of_how_many_runs_it_is(dataset, snapshot):
    # Three of the six runs on two devices, and all six on one, where nothing is communicated: 9 of 12.
    assert context.breakdown_notes(dataset) == snapshot
    assert context.breakdown_notes(dataset.only(dataset.configurations.iloc[:0])) == ()
