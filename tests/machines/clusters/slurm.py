"""A real Slurm on this machine: a controller, and a slurmd on each of the hosts. No accounting."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from dlperf_study.machines.supervision.processes import end_marked
from tests.command_line import wait_for
from tests.machines.clusters.namespaces import GATEWAY, Host

#: In the environment of its daemons.
MARK = "DLPERF_STUDY_TEST_SLURM"
#: What Slurm needs of this machine.
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
CONFIGURATION = """\
ClusterName=dlperf
SlurmctldHost={name}({gateway})
SlurmUser=root
SlurmdUser=root
SlurmctldPort=26827
SlurmdPort=26828
SrunPortRange=27100-27999
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MinJobAge=300
KillWait=2
SlurmdTimeout=10
FirstJobId={first}
AccountingStorageType=accounting_storage/none
GresTypes=gpu
PropagateResourceLimits=NONE
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
PartitionName=two Nodes={pair} MaxTime=60 State=UP
"""
NODE = "NodeName={name} NodeAddr={address} CPUs={cpus} RealMemory={megabytes} Gres=gpu:2 State=UNKNOWN\n"


@dataclass(frozen=True)
class Slurm:
    """A running Slurm; its partitions are ``all`` and ``two``, the second with two nodes only."""

    folder: Path
    hosts: tuple[Host, ...]

    @property
    def variables(self) -> dict[str, str]:
        """What its commands need in their environment."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def start(self, *argv: str) -> None:
        """Start a daemon that carries the mark."""
        subprocess.run(argv, check=True, capture_output=True, env={**os.environ, **self.variables, MARK: "1"})

    def command(self, *argv: str) -> str:
        """Run one of Slurm's commands; return what it prints."""
        done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **self.variables})
        assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr}"
        return done.stdout

    def jobs(self) -> list[str]:
        """Return the ids of the jobs that wait or run."""
        return self.command("squeue", "--noheader", "--format=%i").split()

    def state(self, number: str) -> str:
        """Return the state of a job in Slurm's words."""
        return self.command("squeue", "--noheader", "--states=all", "--jobs", number, "--format=%T").strip()

    def idle(self) -> list[str]:
        """Return the names of the nodes that wait for work."""
        return self.command("sinfo", "--noheader", "--Node", "--partition=all", "--states=idle", "--format=%N").split()

    def start_node(self, host: Host) -> None:
        """Start the slurmd of a host."""
        self.start(*host.argv("slurmd", "-N", host.name))

    def kill_node(self, host: Host) -> None:
        """Kill the slurmd of a host, as a host that dies does; what it had started goes on."""
        psutil.Process(int((self.folder / f"slurmd-{host.name}.pid").read_text())).kill()

    def wait_until_idle(self) -> None:
        wait_for(lambda: len(self.idle()) == len(self.hosts), "all nodes to be idle", 60)


@contextmanager
def running_slurm(folder: Path, hosts: Sequence[Host]) -> Iterator[Slurm]:
    """Start Slurm; at the end nothing of it is left."""
    _stop()
    slurm = Slurm(folder, tuple(hosts))
    _write(slurm)
    try:
        _start_munge(slurm, folder / "munge")
        slurm.start("slurmctld", "-i")
        for host in hosts:
            slurm.start_node(host)
        slurm.wait_until_idle()
        yield slurm
    finally:
        _stop()


def _write(slurm: Slurm) -> None:
    for name in ("munge", "state", *(f"spool/{host.name}" for host in slurm.hosts)):
        (slurm.folder / name).mkdir(parents=True)
    values = {
        "name": socket.gethostname().partition(".")[0],
        "gateway": GATEWAY,
        "folder": slurm.folder,
        "first": int(time.time()) % 10_000_000,
        "pair": ",".join(host.name for host in slurm.hosts[:2]),
    }
    megabytes = int(psutil.virtual_memory().total / 2**20 / 2 / len(slurm.hosts))
    nodes = "".join(
        NODE.format(name=host.name, address=host.address, cpus=os.cpu_count(), megabytes=megabytes)
        for host in slurm.hosts
    )
    lines = CONFIGURATION.format(**values).splitlines(keepends=True)
    (slurm.folder / "slurm.conf").write_text("".join([*lines[:-2], nodes, *lines[-2:]]))
    # Files that are there stand for GPUs: Slurm only counts them.
    (slurm.folder / "gres.conf").write_text("Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n")
    (slurm.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")


def _start_munge(slurm: Slurm, folder: Path) -> None:
    key = folder / "munge.key"
    key.touch(0o600)
    key.write_bytes(os.urandom(128))
    options = {"key-file": key, "socket": folder / "socket"} | {
        name: folder / name for name in ("pid-file", "log-file", "seed-file")
    }
    slurm.start("munged", "--force", *(f"--{name}={value}" for name, value in options.items()))


def _stop() -> None:
    """End the daemons and what they started, also those of tests that were killed: only one Slurm is up at a time."""
    end_marked(MARK, "1")
