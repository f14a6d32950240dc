"""A study that is being measured on a cluster, its processes by what they do, and how a fault ended for it."""

import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from dlperf_study.core.paths import RunPaths
from dlperf_study.core.wording import counted
from dlperf_study.machines.supervision.processes import AGENT, marked
from tests.command_line import Workplace, finish, wait_for
from tests.machines.clusters.namespaces import DAEMONS, Host
from tests.machines.clusters.slurm import Slurm
from tests.machines.clusters.ssh_hosts import SshHosts

#: In the environment of the command and of what it starts on this machine; training processes inherit its prefix.
MARK = "GLOO_dlperf_study_fault"
#: How long the training may take to begin, and all processes of a study to end after a fault.
BEGIN_SECONDS, SILENCE_SECONDS = 180, 240
POLL_SECONDS = 0.1

#: What is in the arguments of each process of a study, from the command down to the training.
_ARGUMENTS: dict[str, Callable[[Sequence[str]], bool]] = {
    "controller": lambda argv: "dlperf_study" in argv and "run" in argv,
    "agent": lambda argv: AGENT in argv and "python" in Path(argv[0]).name,
    "ssh": lambda argv: Path(argv[0]).name == "ssh",
    "launcher": lambda argv: bool({"paddle.distributed.launch", "torch.distributed.run"} & set(argv)),
    "rank": lambda argv: list(argv[1:]) == ["-u", "-m", "dlperf_study.training.worker"],
    "job program": lambda argv: "dlperf_study.machines.slurm.allocation" in argv,
}


#: How far below the controller the processes are that were forked, and whose arguments say nothing.
_DEPTHS = {"notebook": 2, "kernel": 3}


@dataclass
class Scene:
    """A study and what it is measured on.

    ``undo`` is called, last entry first, before the study is continued, and ``cleanup`` is closed after that.
    """

    workplace: Workplace
    hosts: tuple[Host, ...] = ()
    ssh: SshHosts | None = None
    slurm: Slurm | None = None
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    command: "subprocess.Popen[str] | None" = None
    undo: list[Callable[[], object]] = field(default_factory=list)
    cleanup: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Start the command, when nobody else measures on this machine."""
        self.command = self.workplace.start("run", busy=self.slurm is not None, **{MARK: self.mark})

    def wait_for_training(self) -> None:
        """Wait until a rank has started; raises AssertionError, with its errors, when the command ends before that."""
        command = self.command
        assert command
        wait_for(lambda: self.victims("rank") or command.poll() is not None, "the training to begin", BEGIN_SECONDS)
        assert command.poll() is None, finish(command).stderr

    def processes(self) -> list[psutil.Process]:
        """Return what lives of the study, on this machine and on the hosts."""
        alive = {process.pid: process for process in marked(MARK, self.mark)}
        for host in self.hosts:
            alive |= {process.pid: process for process in host.processes()}
        return [process for process in alive.values() if _is_of_study(process)]

    def victims(self, role: str) -> list[psutil.Process]:
        """Return the processes with a role, those of the first host first; a server is a rank of its own kind."""
        if role in _DEPTHS:
            return self._below_controller(_DEPTHS[role])
        wanted = "rank" if role == "server" else role
        victims = []
        for process in self.processes():
            with suppress(psutil.NoSuchProcess, IndexError):
                is_server = process.environ().get("TRAINING_ROLE") == "PSERVER"
                if _ARGUMENTS[wanted](process.cmdline()) and is_server == (role == "server"):
                    victims.append(process)
        return sorted(victims, key=lambda process: (self._host_number(process), process.pid))

    def _below_controller(self, depth: int) -> list[psutil.Process]:
        """Return what the controller's server of notebooks has forked: the notebook, or from that, the kernel."""
        processes = self.victims("controller")
        for level in range(depth):
            processes = [child for process in processes for child in process.children()]
            if level == 0:
                processes = [process for process in processes if "forkserver" in " ".join(process.cmdline())]
        return processes

    def _host_number(self, process: psutil.Process) -> int:
        numbers = [host.number for host in self.hosts if process in host.processes()]
        return numbers[0] if numbers else 0

    def seconds_to_silence(self) -> float | None:
        """Wait until no process of the study lives; return how long that took, None if some still do."""
        start = time.monotonic()
        while time.monotonic() < start + SILENCE_SECONDS:
            if not self.processes():
                return time.monotonic() - start
            time.sleep(POLL_SECONDS)
        return None

    @property
    def run(self) -> RunPaths:
        """The only run of the study."""
        return self.workplace.configuration("n").run(1)

    def facts(self) -> dict[str, Any]:
        """Return the run record; empty where there is none."""
        folders = list(self.workplace.study.configurations.glob("*"))
        return self.workplace.run_facts("n") if folders and self.run.run_file.exists() else {}

    def evidence(self) -> str:
        """Return what is on disk of the run."""
        if not list(self.workplace.study.configurations.glob("*")) or not self.run.folder.exists():
            return "nothing"
        return ", ".join(_evidence(self.run)) or "an empty folder"


def _evidence(run: RunPaths) -> Iterator[str]:
    if run.run_file.exists():
        yield "record"
    if rank_logs := list(run.folder.glob("rank-*.jsonl")):
        yield counted(len(rank_logs), "rank log")
    if run.process_logs:
        yield counted(len(run.process_logs), "process log")


def _is_of_study(process: psutil.Process) -> bool:
    try:
        command = " ".join(process.cmdline())
        is_dead = process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid()
    except psutil.NoSuchProcess:
        return False
    return bool(command) and not is_dead and not any(daemon in command for daemon in DAEMONS)
