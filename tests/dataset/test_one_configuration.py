import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.dataset.dataset import collect, runs_and_steps
from tests.evidence_factory import Planned, Recipe, configuration, write_run, write_study

ONE, TWO = configuration(), configuration(devices_per_node=2)


def test_one_configuration_has_the_rows_it_has_in_the_dataset(paths):
    write_study(paths, [Planned(ONE), Planned(TWO)])
    runs, steps = runs_and_steps(paths.configuration(TWO.configuration_id))
    dataset = collect(paths)
    ours = dataset.runs[dataset.runs["configuration_id"] == TWO.configuration_id].reset_index(drop=True)
    assert runs.equals(ours)
    assert len(steps) == (dataset.steps["configuration_id"] == TWO.configuration_id).sum()


def test_a_coarse_precision_makes_no_run_steady(paths):
    noisy = Recipe(noise=0.1)
    plan = write_study(paths, [Planned(ONE, noisy)])
    runs, _ = runs_and_steps(paths.configuration(ONE.configuration_id))
    plan.changed(target_ci=0.5).write(paths.plan_file)
    runs_of_coarse_study, _ = runs_and_steps(paths.configuration(ONE.configuration_id))
    assert runs["steadiness"].isna().all()
    assert runs_of_coarse_study["steadiness"].isna().all()


def test_a_run_that_did_not_complete_is_a_run_without_steps(paths):
    write_run(paths, ONE, 1, Recipe(status="failed", reason="exit 1"))
    runs, steps = runs_and_steps(paths.configuration(ONE.configuration_id))
    assert runs["status"].tolist() == ["failed"]
    assert steps.empty


def test_without_a_run_there_is_nothing_to_show(paths):
    with pytest.raises(RecordError, match="no run yet"):
        runs_and_steps(paths.configuration(ONE.configuration_id))
