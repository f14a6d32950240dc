"""How long earlier runs took."""

from dlperf_study.core.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.execution.progress import earlier_run_seconds
from tests.evidence_factory import Planned, Recipe, change, configuration, write_plan, write_run


def test_the_mean_of_completed_runs_with_their_waiting(tmp_path, monkeypatch):
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    paths = StudyPaths.of("example")
    measured, failed, new = (configuration(batch_per_device=batch) for batch in (1, 2, 4))
    for repetition, seconds in ((1, 10.0), (2, 20.0)):
        change(write_run(paths, measured, repetition, Recipe(waited_seconds=1.0)), seconds=seconds)
    write_run(paths, failed, 1, Recipe(outcome="failed"))
    plan = write_plan(paths, map(Planned, (measured, failed, new)))
    assert earlier_run_seconds(plan) == {measured.identity: 16.0}
