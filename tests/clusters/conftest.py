"""Clusters for tests. They need root and packages; where they must not be skipped, that is a failure."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters.namespaces import Host, namespaces
from tests.clusters.slurm import PROGRAMS, Slurm, running_slurm
from tests.clusters.ssh_hosts import SERVER, SshHosts, running_servers
from tests.command_line import PATIENCE_SECONDS, wait_for

LOCK = Path("/tmp/dlperf_cluster_fixture.lock")
REQUIRED = "REQUIRE_CLUSTERS"


def needs(*programs: str) -> None:
    """Skip the test where hosts can't be made, or a program is missing."""
    lacking = [] if os.geteuid() == 0 else ["root"]
    lacking += [f"the program {name}" for name in programs if not shutil.which(name)]
    if lacking:
        (pytest.fail if os.environ.get(REQUIRED) == "1" else pytest.skip)(f"a cluster needs {', '.join(lacking)}")


@pytest.fixture(scope="session")
def hosts() -> Iterator[tuple[Host, ...]]:
    """Four hosts; their names are the machine's, so only one set of them is up at a time."""
    needs("ip", "unshare")
    with open(LOCK, "w") as lock:
        wait_for(lambda: _locked(lock.fileno()), "other tests to be done with the hosts", PATIENCE_SECONDS)
        with namespaces() as made:
            yield made


@pytest.fixture(scope="module")
def slurm(hosts: tuple[Host, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A Slurm whose nodes are the hosts."""
    needs(*PROGRAMS)
    with running_slurm(tmp_path_factory.mktemp("slurm"), hosts) as started:
        yield started


@pytest.fixture(scope="module")
def ssh(hosts: tuple[Host, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    """The hosts with ssh servers."""
    needs(SERVER, "ssh", "ssh-keygen")
    with running_servers(tmp_path_factory.mktemp("ssh"), hosts) as started:
        yield started


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
