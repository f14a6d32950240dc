"""`check` on real hosts: over ssh, and inside a job of Slurm."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.core.resources import PARAMS
from dlperf_study.machines import launchers
from dlperf_study.machines.check import CheckResult, CheckStatus
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.cluster.hardware import cpu_name
from dlperf_study.machines.launchers.ssh import SshSettings
from dlperf_study.machines.node_agent.coordinator import PORTS
from dlperf_study.training.questions import program_facts
from tests.command_line import LIMIT_SECONDS, typed, wait_for
from tests.machines.clusters.slurm import Slurm

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)
#: What the command says while it waits; its result is on the other stream.
WAITS = "the check waits in the queue, at most {} s …\n"


@pytest.fixture
def cluster(ssh_cluster: Cluster) -> Cluster:
    """The first two of the hosts."""
    return replace(ssh_cluster, nodes=2, hosts=ssh_cluster.hosts[:2], network_interface="eth0")


def found(cluster: Cluster) -> dict[str, CheckResult]:
    return {result.subject: result for result in launchers.load("ssh").check(cluster, program_facts())}


def test_hosts_are_reached_and_reach_each_other(cluster, ssh):
    rows = found(cluster)
    assert [row for row in rows.values() if row.status is CheckStatus.MISSING] == []
    for host in ssh.hosts[:2]:
        assert rows[f"{host.name}: reached"].detail.startswith(f"{host.name}, ")
        assert rows[f"{host.name}: address"].detail == f"{host.address} on eth0"
    assert rows["ports between nodes"].status is CheckStatus.OK
    assert rows["paddle_collective"].detail.endswith("everywhere")
    assert rows["clocks"].status is CheckStatus.OK
    assert not ssh.left()


def test_a_host_that_is_not_there_is_named_and_nothing_is_said_of_ways_to_it(cluster):
    rows = found(replace(cluster, hosts=(cluster.hosts[0], "nowhere")))
    assert rows["nowhere: reached"].status is CheckStatus.MISSING
    assert rows[f"{cluster.hosts[0]}: reached"].status is CheckStatus.OK
    ways = [rows["ports between nodes"], rows[f"ssh from {cluster.hosts[0]} to nowhere"]]
    assert [row.status for row in ways] == [CheckStatus.UNTESTED] * 2


def test_the_way_to_try_it_by_hand_is_short_and_works(cluster, tmp_path):
    wrong = tmp_path / "python"
    rows = found(replace(cluster, python={"default": str(wrong)}))
    remedy = rows[f"{cluster.hosts[0]}: reached"].remedy
    command = remedy.removeprefix("try it by hand: ")
    remote_command = f"'{wrong} -m dlperf_study.machines.cluster.software'"
    assert command == f"ssh -F {cluster.settings.config_file} {cluster.hosts[0]} {remote_command}"
    wrong.symlink_to(sys.executable)
    pasted = subprocess.run(command.replace(str(wrong), sys.executable), shell=True, capture_output=True, text=True)
    assert '"code"' in pasted.stdout


def test_a_wrong_key_is_said_of_the_way_from_here_only(cluster, ssh):
    rows = found(replace(cluster, settings=SshSettings(config_file=str(ssh.config_with_wrong_key))))
    assert {name for name, row in rows.items() if row.status is CheckStatus.MISSING} == {
        f"{name}: reached" for name in cluster.hosts
    }
    assert "Permission denied" in rows[f"{cluster.hosts[0]}: reached"].detail
    assert rows[f"ssh from {cluster.hosts[0]}"].status is CheckStatus.UNTESTED


def test_files_that_are_not_shared_are_found_out(cluster, tmp_path, monkeypatch, ssh):
    monkeypatch.setenv("DLPERF_STUDY_OUTPUTS", str(ssh.hidden))
    rows = found(replace(cluster, shared_files=True))
    assert rows[f"{cluster.hosts[0]}: outputs/"].status is CheckStatus.MISSING
    monkeypatch.setenv("DLPERF_STUDY_OUTPUTS", str(tmp_path / "outputs"))
    rows = found(replace(cluster, shared_files=True))
    assert rows[f"{cluster.hosts[0]}: outputs/"].status is CheckStatus.OK
    assert list((tmp_path / "outputs").iterdir()) == []


def test_another_interface_than_there_is_is_missing(cluster):
    rows = found(replace(cluster, network_interface="ib0"))
    assert "network_interface ib0 has no IPv4 address here" in rows[f"{cluster.hosts[0]}: address"].detail
    assert rows["ports between nodes"].status is CheckStatus.UNTESTED


def test_ports_of_a_run_that_are_closed_are_told_from_those_that_are_open(cluster, ssh):
    first, second = ssh.hosts[:2]
    rule = ("ipproto", "tcp", "dport", f"{PORTS.start}-{PORTS.stop - 1}", "prohibit")
    subprocess.run(["ip", "-n", first.name, "rule", "add", *rule], check=True)
    try:
        row = found(cluster)["ports between nodes"]
    finally:
        subprocess.run(["ip", "-n", first.name, "rule", "delete", *rule], check=True)
    assert row.status is CheckStatus.MISSING
    assert re.fullmatch(rf"no answer: {second.name} port \d+ from {first.name}", row.detail)
    assert "20000 to 32767" in row.remedy


def test_a_newcomer_gets_from_the_example_to_a_plan(ssh, tmp_path):
    """What docs/clusters.md says to type, with the changes it says to make."""
    text = (PARAMS / "clusters" / "cpu_hosts.yaml").read_text()
    changes = {
        "hosts": f"[{ssh.hosts[0].name}, {ssh.hosts[1].name}]",
        "devices_per_node": "2",
        "device_name": cpu_name(),
        "config_file": str(ssh.config),
    }
    for key, value in changes.items():
        text, count = re.subn(rf"({key}: ).*", rf"\g<1>{value}", text)
        assert count == 1, key
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    checked, planned = (
        typed(command, tmp_path / "outputs", LIMIT_SECONDS)
        for command in (f"make check-cluster CLUSTER={file}", f"make plan STUDY=frameworks CLUSTER={file} QUICK=1")
    )
    assert (checked.returncode, planned.returncode) == (0, 0), checked.stdout + planned.stderr
    assert "nothing is missing" in checked.stdout
    assert "8 of 8 configurations can run here" in planned.stdout


IN_SLURM = """\
launcher: slurm
nodes: 2
devices_per_node: 1
device: cpu
device_name: a CPU
interconnect: Ethernet
network_interface: eth0
slurm: {start_within_seconds: 20}
"""


def in_slurm(slurm: Slurm, folder: Path, *change: str) -> "subprocess.CompletedProcess[str]":
    """Return what the command line says of a cluster file with a change; no job of it is left."""
    file = folder / "queue.yaml"
    file.write_text(IN_SLURM.replace(*change) if change else IN_SLURM)
    ended = subprocess.run(
        [sys.executable, "-m", "dlperf_study", "check-cluster", str(file)],
        env={**os.environ, **slurm.variables, "DLPERF_STUDY_OUTPUTS": str(folder / "outputs")},
        capture_output=True,
        text=True,
    )
    wait_for(lambda: not slurm.jobs(), "the job to end", 30)
    return ended


def test_slurm_is_checked_from_inside_a_job(slurm, tmp_path):
    ended = in_slurm(slurm, tmp_path)
    first, second = (host.name for host in slurm.hosts[:2])
    assert ended.stdout.splitlines()[-1].endswith("queue.yaml: nothing is missing")
    assert re.search(rf"^ok +nodes +{first}, {second}", ended.stdout, re.MULTILINE)
    assert f"{second}: outputs/" in ended.stdout
    assert (ended.returncode, ended.stderr) == (0, WAITS.format(20))


@pytest.mark.parametrize(
    ("change", "row", "remedy"),
    [
        (
            ("slurm: {", "slurm: {partition: nopart, "),
            "partition       slurm.partition is 'nopart'; there are all, two",
            "name one of them",
        ),
        (
            ("nodes: 2", "nodes: 9"),
            "partition       all: jobs of up to 4 nodes and 01:00:00",
            "the cluster file has nodes: 9",
        ),
        (
            ("slurm: {", "slurm: {options: [--constraint=v100], "),
            "nodes           Job submit/allocate failed: Invalid feature specification",
            "slurm.options is ['--constraint=v100']",
        ),
        (
            ("seconds: 20", "seconds: 3, options: [--begin=now+1hour]"),
            "nodes           not started within 3 s: job ",
            "try it by hand: salloc --nodes=2 --begin=now+1hour true",
        ),
    ],
)
def test_what_slurm_will_not_do_is_a_row_and_a_verdict(slurm, tmp_path, change, row, remedy):
    ended = in_slurm(slurm, tmp_path, *change)
    assert (ended.returncode, ended.stderr) == (1, WAITS.format(3 if "seconds: 3" in change[1] else 20))
    assert f"\nmissing  {row}" in ended.stdout
    assert f"-> {remedy}" in ended.stdout
    assert ended.stdout.splitlines()[-1].endswith("queue.yaml: missing: 1")
