"""`check` on real hosts: over ssh, and inside a job of Slurm."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.execution.check import check
from dlperf_study.execution.finding import Finding, Verdict
from dlperf_study.study.cluster import Cluster, Ssh
from tests.clusters.slurm import Slurm
from tests.clusters.ssh_hosts import SshHosts
from tests.command_line import LIMIT_SECONDS, wait_for

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


@pytest.fixture
def cluster(ssh: SshHosts) -> Cluster:
    names = tuple(host.name for host in ssh.hosts[:2])
    return Cluster(
        *("test", len(names), 1, "cpu", "a CPU", "ssh"),
        hosts=names,
        shared_files=False,
        work_folder=str(ssh.work),
        network_interface="eth0",
        ssh=Ssh(str(ssh.config)),
    )


def found(cluster: Cluster) -> dict[str, Finding]:
    return {finding.subject: finding for finding in check(cluster)}


def test_hosts_are_reached_and_reach_each_other(cluster: Cluster, ssh: SshHosts) -> None:
    rows = found(cluster)
    assert [row for row in rows.values() if row.verdict is Verdict.MISSING] == []
    for host in ssh.hosts[:2]:
        assert rows[f"{host.name}: reached"].found.startswith(f"{host.name}, ")
        assert rows[f"{host.name}: address"].found == f"{host.address} on eth0"
    assert rows["ports between nodes"].verdict is Verdict.HOLDS
    assert rows["paddle_collective"].found.endswith("everywhere")
    assert rows["clocks"].verdict is Verdict.HOLDS
    assert not ssh.left()


def test_a_host_that_is_not_there_is_named_and_the_others_are_checked(cluster: Cluster) -> None:
    rows = found(replace(cluster, hosts=(cluster.hosts[0], "nowhere")))
    assert rows["nowhere: reached"].verdict is Verdict.MISSING
    assert "nowhere" in rows["nowhere: reached"].remedy
    assert rows[f"{cluster.hosts[0]}: reached"].verdict is Verdict.HOLDS


def test_files_that_are_not_shared_are_found_out(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ssh: SshHosts
) -> None:
    monkeypatch.setenv("DLPERF_STUDY_OUTPUTS", str(ssh.hidden))
    rows = found(replace(cluster, shared_files=True))
    assert rows[f"{cluster.hosts[0]}: outputs/"].verdict is Verdict.MISSING
    monkeypatch.setenv("DLPERF_STUDY_OUTPUTS", str(tmp_path / "outputs"))
    rows = found(replace(cluster, shared_files=True))
    assert rows[f"{cluster.hosts[0]}: outputs/"].verdict is Verdict.HOLDS
    assert list((tmp_path / "outputs").iterdir()) == []


def test_another_interface_than_there_is_is_missing(cluster: Cluster) -> None:
    rows = found(replace(cluster, network_interface="ib0"))
    assert "network_interface ib0 has no IPv4 address here" in rows[f"{cluster.hosts[0]}: address"].found


IN_SLURM = """\
launcher: slurm
nodes: {nodes}
devices_per_node: 1
device: cpu
device_name: a CPU
link: Ethernet
network_interface: eth0
slurm: {{start_within_seconds: 20}}
"""


@pytest.mark.parametrize(("nodes", "code", "said"), [(2, 0, "nothing is missing"), (9, 1, "salloc: error:")])
def test_slurm_is_checked_from_inside_a_job(slurm: Slurm, tmp_path: Path, nodes: int, code: int, said: str) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text(IN_SLURM.format(nodes=nodes))
    ended = subprocess.run(
        [sys.executable, "-m", "dlperf_study", "check", str(file)],
        env={**os.environ, **slurm.variables, "DLPERF_STUDY_OUTPUTS": str(tmp_path / "outputs")},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, said in ended.stdout + ended.stderr) == (code, True), ended
    if code == 0:
        first, second = (host.name for host in slurm.hosts[:2])
        assert f"holds    nodes                {first}, {second}" in ended.stdout
        assert f"{second}: outputs/" in ended.stdout
    wait_for(lambda: not slurm.jobs(), "the job to end", 30)
