"""The parts of the self-test that need real processes: a planted wait, a straggler, a shaped link."""

import pytest

from dlperf_study.dataset.dataset import collect
from dlperf_study.evidence.run import read_run
from dlperf_study.execution.driver import make_plan, run_study
from dlperf_study.execution.selftest_studies import study_file
from dlperf_study.execution.shaped_link import BITS_PER_SECOND, link_obstacle, run_on_shaped_link
from dlperf_study.paths import OUTPUTS_VARIABLE, StudyPaths
from dlperf_study.selftest.checks import WAIT_TOLERANCE, check_link
from dlperf_study.selftest.result import Status
from tests.command_line import CLUSTER, LIMIT_SECONDS, PATIENCE_SECONDS, first_in_line, machine_is_free, wait_for
from tests.requirements import need

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


@pytest.fixture
def machine_is_ours():
    """Keep other tests from measuring meanwhile."""
    with first_in_line():
        wait_for(machine_is_free, "the machine to be free", PATIENCE_SECONDS)
        yield


@pytest.fixture
def cluster_file(tmp_path, monkeypatch):
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    return str(file)


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


@pytest.mark.alone
def test_an_exchange_over_a_shaped_link_takes_what_it_allows(cluster_file, machine_is_ours):
    need("root", "ip", "tc", "unshare")
    assert link_obstacle() == ""
    plan, _ = make_plan(study_file("link"), cluster_file, quick=True)
    run_on_shaped_link(study_file("link"), cluster_file, quick=True)
    dataset = collect(StudyPaths.of(plan.study))
    assert check_link(dataset, BITS_PER_SECOND).status is Status.PASSED
