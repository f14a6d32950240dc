"""Hosts, links and node agents that are lost while a run goes on: it ends everywhere, and says what was lost."""

from collections.abc import Callable
from threading import Thread

import pytest

from dlperf_study.machines.node_agent.messages import SILENCE_SECONDS
from dlperf_study.machines.supervision.processes import AGENT
from tests.command_line import LIMIT_SECONDS, wait_for
from tests.machines.clusters.ssh_hosts import SshHosts
from tests.machines.clusters.ssh_runs import DEEP, execute, scripts

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def after_the_start(ssh: SshHosts, change: Callable[[], object]) -> Thread:
    """Change something once both hosts run their command."""

    def wait_and_change() -> None:
        wait_for(lambda: sum("sleep 600" in words for words in ssh.left()) >= 4, "the commands")
        change()

    thread = Thread(target=wait_and_change)
    thread.start()
    return thread


def test_a_host_that_dies_ends_the_run_on_the_others(ssh_cluster, ssh):
    dying = ssh.hosts[1]
    thread = after_the_start(ssh, lambda: ssh.stop(dying))
    try:
        ending = execute(scripts(ssh, ssh.hidden / "died", DEEP, DEEP), ssh_cluster)
    finally:
        thread.join()
        ssh.start(dying)
    assert ending.status == "failed"
    assert ending.reason.startswith(f"{dying.name}: was lost, its ssh exited with code 255")
    assert ending.exit_codes == {"node-0": None, "node-1": None}
    assert (ssh.hidden / "died" / "node-0.log").exists()


def test_a_host_that_is_cut_off_is_noticed_on_both_sides(ssh_cluster, ssh):
    far = ssh.hosts[1]
    thread = after_the_start(ssh, lambda: far.link("down"))
    try:
        ending = execute(scripts(ssh, ssh.hidden / "cut_off", DEEP, DEEP), ssh_cluster, 120)
        wait_for(lambda: not ssh.left(), "the host to notice", 2 * SILENCE_SECONDS)
    finally:
        thread.join()
        far.link("up")
    assert ending.status == "failed"
    assert ending.reason.startswith(f"{far.name}: was lost")


def test_a_guard_that_is_killed_leaves_nothing(ssh_cluster, ssh):
    thread = after_the_start(ssh, lambda: ssh.run(ssh.hosts[1], f"pkill -KILL -f {AGENT}"))
    ending = execute(scripts(ssh, ssh.hidden / "unguarded", DEEP, DEEP), ssh_cluster)
    thread.join()
    assert ending.status == "failed"
    assert ending.reason.startswith(f"{ssh.hosts[1].name}: was lost, its ssh exited with code 255")
