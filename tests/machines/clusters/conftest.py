"""Clusters for tests. They need root and programs; where these are missing, the tests are skipped."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

import psutil
import pytest

from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.launchers.ssh import SshSettings
from dlperf_study.machines.slurm.script import SlurmSettings
from dlperf_study.machines.supervision.processes import marked
from tests.command_line import PATIENCE_SECONDS, wait_for
from tests.conftest import TESTS, TESTS_MARK
from tests.machines.clusters.namespaces import LOCK, Host, left, made, namespaces
from tests.machines.clusters.slurm import PROGRAMS, Slurm, running_slurm
from tests.machines.clusters.ssh_hosts import SERVER, SshHosts, running_servers
from tests.requirements import ROOT, need

# Where Debian keeps the daemons; the path of a user may be without it.
os.environ["PATH"] += f"{os.pathsep}/usr/sbin"
#: How long what a test has ended may take to go.
LEAVING_SECONDS = 30
#: By what nodes are reached from this machine.
CLIENTS = ("ssh", "srun", "salloc")


@pytest.fixture(scope="session")
def hosts() -> Iterator[tuple[Host, ...]]:
    """Four hosts; their names are the machine's, so only one set of them is up at a time."""
    need(ROOT, "ip", "unshare")
    with open(LOCK, "w") as lock:
        wait_for(lambda: _locked(lock.fileno()), "other tests to be done with the hosts", PATIENCE_SECONDS)
        with namespaces() as hosts:
            yield hosts
        # The kernel takes the cable of a namespace away a moment after it.
        wait_for(lambda: not made(), "the hosts to be gone", LEAVING_SECONDS)


@pytest.fixture(scope="module")
def slurm(hosts: tuple[Host, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A Slurm whose nodes are the hosts, and whose commands work here."""
    need(*PROGRAMS)
    with running_slurm(tmp_path_factory.mktemp("slurm"), hosts) as started, pytest.MonkeyPatch.context() as patch:
        for name, value in started.variables.items():
            patch.setenv(name, value)
        yield started


@pytest.fixture(scope="module")
def ssh(hosts: tuple[Host, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    """The hosts with ssh servers."""
    need(SERVER, "ssh", "ssh-keygen")
    with running_servers(tmp_path_factory.mktemp("ssh"), hosts) as started:
        yield started


@pytest.fixture(scope="module")
def ssh_cluster(ssh: SshHosts) -> Cluster:
    """The hosts as a cluster file names them that don't share files."""
    names = tuple(host.name for host in ssh.hosts)
    return Cluster(
        *("test", len(names), 1, "cpu", "a CPU", "ssh"),
        hosts=names,
        shared_files=False,
        work_folder=str(ssh.work),
        idle_max_busy_cores=1e9,
        idle_wait_seconds=0.0,
        settings=SshSettings(config_file=str(ssh.config)),
    )


@pytest.fixture(scope="module")
def slurm_cluster(slurm: Slurm) -> Cluster:
    """The hosts as a cluster file names the nodes of a queue."""
    return Cluster(
        *("test", len(slurm.hosts), 2, "cpu", "a CPU", "slurm"),
        idle_max_busy_cores=1e9,
        idle_wait_seconds=0.0,
        settings=SlurmSettings(poll_seconds=0.2, start_within_seconds=60),
    )


@pytest.fixture
def busy(slurm: Slurm) -> Iterator[str]:
    """A job of somebody else on all nodes; its number."""
    # One process, which Slurm can't miss when it cancels a job that has just begun.
    options = ("--parsable", "--nodes=4", "--exclusive", "--output=/dev/null")
    number = slurm.command("sbatch", *options, "--wrap=exec sleep 600")
    yield number.strip()
    slurm.command("scancel", number.strip())
    wait_for(lambda: not slurm.jobs(), "the job of somebody else to end")


@pytest.fixture(autouse=True)
def _nothing_is_left_on_a_cluster(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test no process is left on a host, none that reaches one, and no job in a queue."""
    used = {name: request.getfixturevalue(name) for name in ("hosts", "slurm") if name in request.fixturenames}
    yield
    with suppress(AssertionError):
        wait_for(lambda: not left_on(**used), "the cluster to be empty", LEAVING_SECONDS)
    assert left_on(**used) == []


def left_on(hosts: Sequence[Host] = (), slurm: Slurm | None = None) -> list[str]:
    """Return the processes and jobs that tests have left."""
    jobs = slurm.jobs() if slurm else []
    return [*left(hosts), *(clients() if hosts else []), *(f"job {number}" for number in jobs)]


def clients() -> list[str]:
    """Return what these tests have started to reach a node, and still lives."""
    names = []
    for process in marked(TESTS_MARK, TESTS):
        with suppress(psutil.NoSuchProcess):
            names.append(process.name())
    return [name for name in names if name in CLIENTS]


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
