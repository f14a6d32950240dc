"""What the other tests here rely on: whatever a test leaves is noticed."""

import subprocess

import pytest

from dlperf_study.machines.supervision.processes import end
from tests.command_line import LIMIT_SECONDS, wait_for
from tests.machines.clusters.conftest import left_on
from tests.machines.clusters.namespaces import made

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def test_a_process_that_is_left_on_a_host_is_seen(hosts):
    assert {f"/run/netns/{host.name}" for host in hosts} < {*made()}
    with subprocess.Popen(hosts[0].argv("sleep", "600")):
        wait_for(lambda: left_on(hosts) == [f"{hosts[0].name}: sleep 600"], "the process")
        end(hosts[0].processes())
    assert left_on(hosts) == []


def test_a_job_that_is_left_is_seen(slurm, busy):
    assert f"job {busy}" in left_on(slurm.hosts, slurm)
