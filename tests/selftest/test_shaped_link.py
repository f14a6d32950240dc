"""An all-reduce over a link of known rate."""

import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import collect
from dlperf_study.execution.planning import make_plan
from dlperf_study.execution.selftest_studies import BITS_PER_SECOND, link_obstacle, run_on_shaped_link, study_file
from dlperf_study.selftest.known_truths import check_link
from dlperf_study.selftest.result import Status
from tests.command_line import LIMIT_SECONDS
from tests.requirements import need


@pytest.mark.timeout(LIMIT_SECONDS)
def test_an_exchange_over_a_shaped_link_takes_what_it_allows(cluster_file, machine_is_ours):
    need("root", "ip", "tc", "unshare")
    assert link_obstacle() == ""
    plan, _ = make_plan(study_file("link"), cluster_file, quick=True)
    run_on_shaped_link(study_file("link"), cluster_file, quick=True)
    dataset = collect(StudyPaths.of(plan.study))
    assert check_link(dataset, BITS_PER_SECOND).status is Status.PASSED
