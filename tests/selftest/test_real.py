"""The parts of the self-test that need real processes: a planted wait and a straggler."""

import pytest

from dlperf_study.evidence.run import read_run
from dlperf_study.execution.driver import make_plan, run_study
from dlperf_study.execution.selftest_studies import study_file
from dlperf_study.paths import StudyPaths
from dlperf_study.selftest.checks import WAIT_TOLERANCE
from tests.command_line import LIMIT_SECONDS

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def test_the_slowed_rank_waits_and_no_other(cluster_file, machine_is_ours):
    plan, cluster = make_plan(study_file("straggler"), cluster_file, quick=True)
    assert run_study(plan, cluster, lambda _: None).failures == []
    for entry in plan.entries:
        configuration = entry.configuration
        run = read_run(StudyPaths.of(plan.study).configuration(configuration.identity).run(1))
        assert run.completed
        for log in run.ranks:
            planted = log.end["planted"]
            expected = configuration.planted_slowdown if log.rank == configuration.slowed_rank else 0.0
            assert planted["waited_seconds"] / planted["step_seconds"] == pytest.approx(expected, abs=WAIT_TOLERANCE)
