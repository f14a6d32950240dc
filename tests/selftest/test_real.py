"""The parts of the self-test that need real processes: an injected wait and a straggler."""

import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.execution.controller import run_study
from dlperf_study.execution.planning import make_plan
from dlperf_study.execution.selftest_studies import study_file
from dlperf_study.records.run import read_run
from dlperf_study.selftest.checks import WAIT_TOLERANCE
from tests.command_line import LIMIT_SECONDS

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def test_the_slowed_rank_waits_and_no_other(cluster_file, machine_is_ours):
    """Of the two configurations of the study, the one in which a rank is slowed."""
    plan, cluster = make_plan(study_file("straggler"), cluster_file, quick=True)
    [slowed] = (entry for entry in plan.entries if entry.configuration.injected_slowdown)
    assert run_study(plan.changed(entries=(slowed,)), cluster, lambda _: None).failures == []
    configuration = slowed.configuration
    run = read_run(StudyPaths.of(plan.study).configuration(configuration.configuration_id).run(1))
    assert run.completed
    assert {log.rank for log in run.ranks} == {0, 1}
    for log in run.ranks:
        injected = log.end["injected"]
        expected = configuration.injected_slowdown if log.rank == configuration.slowed_rank else 0.0
        assert injected["waited_seconds"] / injected["step_seconds"] == pytest.approx(expected, abs=WAIT_TOLERANCE)
