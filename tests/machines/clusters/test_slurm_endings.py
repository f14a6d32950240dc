"""What Slurm ends has Slurm's word, and a node that fails is named."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from dlperf_study.machines.cluster import Cluster
from dlperf_study.study.job import JobResult, RunStatus
from tests.command_line import LIMIT_SECONDS, wait_for
from tests.machines.clusters.slurm import Slurm
from tests.machines.clusters.slurm_runs import SLEEP, begun, execute, number_of, runs

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)

#: Slurm's word for an end, how many nodes the job has, and what is done to it by its number. A time limit has whole
#: minutes; its end can be moved to any second.
ENDS: dict[str, tuple[int, Callable[[Slurm, str], object]]] = {
    "NODE_FAIL": (2, lambda slurm, number: slurm.kill_node(slurm.hosts[1])),
    "TIMEOUT": (1, lambda slurm, number: slurm.command("scontrol", "update", f"JobId={number}", "EndTime=now+2")),
    "CANCELLED": (1, lambda slurm, number: slurm.command("scancel", number)),
}


@pytest.fixture(scope="module")
def results(
    slurm: Slurm, slurm_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[JobResult]]:
    """How two runs of each job ended; all jobs at once, for Slurm takes half a minute to see what has happened."""
    with ThreadPoolExecutor(len(ENDS)) as pool:
        waiting = {}
        for word, (nodes, happen) in ENDS.items():
            submissions = runs(tmp_path_factory.mktemp(word), slurm_cluster, [SLEEP] * nodes, ["true"] * nodes)
            waiting[word] = pool.submit(execute, submissions, slurm_cluster, 300)
            wait_for(partial(begun, submissions[0]), "the run to begin")
            happen(slurm, number_of(submissions))
        ended = {word: job.result() for word, job in waiting.items()}
    slurm.start_node(slurm.hosts[1])
    slurm.wait_until_idle()
    return ended


@pytest.mark.parametrize(
    ("word", "status"),
    [("NODE_FAIL", RunStatus.FAILED), ("TIMEOUT", RunStatus.TIMEOUT), ("CANCELLED", RunStatus.KILLED)],
)
def test_what_slurm_ends_has_slurm_s_word(results, word, status):
    """Also the run of the job that had not begun."""
    assert [result.status for result in results[word]] == [status, status], results[word]
    assert all(f": {word}" in result.reason for result in results[word]), results[word]


def test_the_node_that_failed_is_named(results, slurm):
    words = f"{slurm.hosts[1].name} is down"
    assert all(words in result.reason for result in results["NODE_FAIL"]), results["NODE_FAIL"]
