"""Real hosts behind real ssh servers: what runs there, what comes back, and what is refused before it starts."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import files, version
from pathlib import Path

import pytest

from dlperf_study.machines.launchers.ssh import SshSettings
from tests.command_line import LIMIT_SECONDS
from tests.machines import submissions
from tests.machines.clusters.ssh_hosts import SshHosts
from tests.machines.clusters.ssh_runs import DEEP, execute, scripts

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def test_every_node_runs_its_own_command_and_its_files_come_back(ssh_cluster, ssh):
    folder = ssh.hidden / "run"
    text = "hostname; cat ../asked.txt; echo {port_0} {host_1} {interface_1} > ../ports-of-$(hostname).txt"
    ending = execute(scripts(ssh, folder, text, text, ports=1, files={"asked.txt": "twice\n"}), ssh_cluster)
    assert (ending.status, ending.reason, ending.exit_codes) == ("completed", "", {"node-0": 0, "node-1": 0})
    assert [node["hardware"]["host"] for node in ending.nodes] == list(ssh_cluster.hosts[:2])
    for k, host in enumerate(ssh.hosts[:2]):
        assert (folder / f"node-{k}.log").read_text().splitlines()[0] == host.name
    lines = {(folder / f"ports-of-{host.name}.txt").read_text() for host in ssh.hosts[:2]}
    [(port, address, interface)] = [line.split() for line in lines]
    assert (address, interface) == (ssh.hosts[1].address, "eth0")
    assert int(port) > 1023


def test_with_shared_files_every_node_writes_into_the_folder_of_the_run(ssh, ssh_cluster):
    folder = ssh.folder / "shared"
    submission = scripts(ssh, folder, "hostname", "hostname > ../by-node-1.txt")
    commands = tuple(replace(command, log=str(folder / f"{command.name}.log")) for command in submission.commands)
    ending = execute(submissions.changed(submission, commands=commands, node_folder=""), ssh_cluster)
    assert ending.status == "completed", ending
    assert (folder / "node-0.log").read_text() == f"{ssh_cluster.hosts[0]}\n"
    assert (folder / "by-node-1.txt").read_text() == f"{ssh_cluster.hosts[1]}\n"
    assert not (folder / "scratch").exists()


def test_a_failure_names_task_and_host_and_ends_the_others(ssh_cluster, ssh):
    ending = execute(scripts(ssh, ssh.hidden / "failed", DEEP, "sleep 1; echo why; exit 3"), ssh_cluster)
    assert (ending.status, ending.reason) == ("failed", f"node-1 on {ssh_cluster.hosts[1]} exited with code 3")
    assert ending.exit_codes == {"node-0": None, "node-1": 3}
    assert (ssh.hidden / "failed" / "node-1.log").read_text() == "why\n"


def test_a_wrong_key_is_said_before_anything_starts(ssh_cluster, ssh):
    locked_out = replace(ssh_cluster, settings=SshSettings(config_file=str(ssh.config_with_wrong_key)))
    ending = execute(scripts(ssh, ssh.hidden / "locked_out", "touch started"), locked_out)
    assert (ending.status, ending.seconds, ending.exit_codes) == ("failed", None, {})
    assert ending.reason.startswith(f"{ssh_cluster.hosts[0]}: was lost, its ssh exited with code 255: root@")
    assert "Permission denied" in ending.reason


def test_a_python_that_is_not_there_is_said_before_anything_starts(ssh_cluster, ssh):
    nowhere = replace(ssh_cluster, python={"default": "/nowhere/python"})
    ending = execute(scripts(ssh, ssh.hidden / "nowhere", "touch started"), nowhere)
    assert (ending.status, ending.seconds) == ("failed", None)
    assert "/nowhere/python" in ending.reason
    missing = scripts(ssh, ssh.hidden / "no_trainer", "touch started", python=("/no/trainer",))
    assert "/no/trainer does not run" in execute(missing, ssh_cluster).reason


@pytest.fixture
def other_version(ssh: SshHosts, tmp_path: Path) -> Iterator[None]:
    """The second host sees another version of protobuf."""
    [file] = [file for file in files("protobuf") or () if file.name == "METADATA"]
    here = Path(str(file.locate())).resolve()
    other = tmp_path / "METADATA"
    other.write_text(here.read_text().replace(f"Version: {version('protobuf')}", "Version: 0.0.1"))
    ssh.stop(ssh.hosts[1])
    ssh.start(ssh.hosts[1], before=f"mount --bind {other} {here}")
    yield
    ssh.stop(ssh.hosts[1])
    ssh.start(ssh.hosts[1])


def test_a_host_with_other_packages_is_said(ssh_cluster, ssh, other_version):
    ending = execute(scripts(ssh, ssh.hidden / "other_version", "true", "true"), ssh_cluster)
    assert (ending.status, ending.seconds) == ("failed", None)
    assert ending.reason == f"protobuf is 0.0.1 on {ssh_cluster.hosts[1]}, but {version('protobuf')} on this machine"
