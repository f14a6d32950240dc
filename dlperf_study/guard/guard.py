"""The process that stands on a node between a run and everything that may go wrong with its driver.

Started as ``python -m dlperf_study.guard.guard MARK``. On standard input it hears from its coordinator,
first what to prepare for, then what to start; standard input is also the lifeline: when whoever holds the
other end dies, for whatever reason, it closes, and the guard ends all that this node runs. On standard
output it says how things stand; its last act is to say how the processes ended.
"""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from dlperf_study.cluster.environment_variables import SLURM_VARIABLES, passed_environment, recorded_environment
from dlperf_study.errors import RunError
from dlperf_study.guard.installed_packages import installed_packages
from dlperf_study.guard.messages import CoordinatorConnection, Message, RunStopped
from dlperf_study.guard.node_hardware import allowed_gpus, first_devices, free_ports, hardware, own_address
from dlperf_study.guard.node_load import LoadMeter, wait_until_idle
from dlperf_study.guard.remote_shell import install
from dlperf_study.guard.run_folder import keep_rank_output, pack, write_files
from dlperf_study.lifeline import die_with_parent
from dlperf_study.paths import RunPaths
from dlperf_study.study.job import Outcome, TaskRole
from dlperf_study.supervision.processes import RUN_MARK, end_marked, ending_words

POLL_SECONDS = 0.05
#: How long a guard may take to end everything and to say so, before it goes whatever is left to say.
LAST_SECONDS = 120
LOOPBACK = "127.0.0.1"
#: Say where files of this person or of the queue are, and nothing about speed.
PRIVATE = ("HOME", "PATH", "USER", "TMPDIR", "LD_LIBRARY_PATH", *SLURM_VARIABLES)


def main() -> None:
    """Prepare the node, start the commands, watch them, end them, and say how it went."""
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    conversation = CoordinatorConnection(sys.argv[1])
    guard = _Guard(conversation)
    with suppress(RunStopped):
        try:
            guard.prepare(conversation.wait_for("prepare"))
            guard.start(conversation.wait_for("start"))
            guard.watch()
        except _Terminated:
            conversation.say("failed", outcome=Outcome.KILLED, reason="the guard was asked to end the run")
        except (RunError, OSError) as error:
            conversation.say("failed", outcome=Outcome.FAILED, reason=str(error))
        conversation.wait_for("end")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Whoever should hear the ending may be cut off, and then nobody empties the pipe.
    signal.alarm(LAST_SECONDS)
    guard.end()


@dataclass
class _Started:
    name: str
    role: str
    process: subprocess.Popen[bytes]


class _Terminated(Exception):
    """Somebody asked the guard to end."""


class _Guard:
    """What runs on this node for one run."""

    def __init__(self, conversation: CoordinatorConnection) -> None:
        self._conversation = conversation
        self._environment: dict[str, str] = {}
        self._order: Message = {}
        self._started: list[_Started] = []
        self._meter: LoadMeter | None = None

    def prepare(self, asked: Message) -> None:
        """Wait until this node is idle, and say what it is."""
        load = wait_until_idle(asked["idle_max_busy_cores"], asked["idle_wait_seconds"], self._conversation.check)
        self._environment = passed_environment(further=asked["pass_environment"]) | asked["environment"]
        gpus = allowed_gpus(asked["environment"])
        address, interface = own_address(asked["network_interface"]) if asked["has_peers"] else (LOOPBACK, "lo")
        self._conversation.say(
            "ready",
            load=asdict(load),
            address=address,
            interface=interface,
            ports=free_ports(asked["ports"]),
            devices=first_devices(gpus, asked["gpus_per_node"]),
            hardware=hardware(gpus),
            variables=recorded_environment({k: v for k, v in self._environment.items() if k not in PRIVATE}),
            **installed_packages(asked["python"]),
        )

    def start(self, order: Message) -> None:
        """Start the commands of this node."""
        scratch = RunPaths(Path(order["folder"])).scratch
        if order["apart"]:
            _make_apart(Path(order["apart"]))
            write_files(scratch.parent, order["files"])
        self._order = order
        # Launchers write the whole environment there: for nobody else to read, as long as it lasts.
        scratch.mkdir(mode=0o700, exist_ok=True)
        if order["reach"]:
            install(scratch / "bin", order["reach"])
            self._environment["PATH"] = os.pathsep.join((str(scratch / "bin"), self._environment["PATH"]))
        self._meter = LoadMeter()
        for command in order["commands"]:
            self._started.append(self._start(command, scratch))

    def watch(self) -> None:
        """Say when the trainers of this node are done or a process failed, until told to end."""
        said = None
        while True:
            self._conversation.hear(POLL_SECONDS)
            verdict = self._verdict()
            if verdict and verdict != said:
                kind, values = verdict
                self._conversation.say(kind, **values)
                said = verdict

    def end(self) -> None:
        """End all that is left of the run on this node, and say how its processes ended."""
        codes = {one.name: one.process.poll() for one in self._started}
        end_marked(RUN_MARK, self._conversation.mark)
        for one in self._started:
            one.process.wait()
        # What others start here, as horovodrun does by ssh, is no child of this process: not told from a stranger.
        busy = self._meter.busy_cores() if self._meter and self._started else None
        kills = self._meter.out_of_memory_kills() if self._meter else 0
        files = self._pack() if self._order.get("apart") else ""
        self._conversation.say("ending", exit_codes=codes, busy_cores=busy, out_of_memory_kills=kills, files=files)

    def _start(self, command: dict[str, Any], scratch: Path) -> _Started:
        with open(command["log"], "wb") as log:
            try:
                process = subprocess.Popen(
                    command["argv"],
                    env=self._environment | command["environment"] | {RUN_MARK: self._conversation.mark},
                    cwd=scratch,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=die_with_parent,  # safe: the guard has one thread
                )
            except OSError as error:
                raise RunError(f"a command could not be started: {error}") from error
        return _Started(command["name"], command["role"], process)

    def _verdict(self) -> tuple[str, Message] | None:
        """Return what there is to say of the processes: one failed, or the trainers of this node are done."""
        codes = [(one, one.process.poll()) for one in self._started]
        for one, code in codes:
            if code not in (None, 0) or (code == 0 and one.role == TaskRole.SERVER):
                return "failed", {"outcome": Outcome.FAILED, "task": one.name, "reason": ending_words(code)}
        trainers = [code for one, code in codes if one.role == TaskRole.TRAINER]
        return ("done", {}) if trainers and all(code == 0 for code in trainers) else None

    def _pack(self) -> str:
        """Return what the run wrote on this node, and remove it here."""
        folder = Path(self._order["folder"])
        keep_rank_output(folder, self._order["rank_output"])
        files = pack(folder)
        shutil.rmtree(self._order["apart"])
        return files


def _make_apart(folder: Path) -> None:
    """Make the run's folder below the node's own work folder. Nodes that share one would remove each other's files."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        remedy = "name one that is each node's own, or, where outputs/ is shared as well, shared_files: true"
        raise RunError(f"work_folder: {folder} was made by another node of this run; {remedy}") from error
    except OSError as error:
        remedy = "name another work_folder in the cluster file, one that every node can make and write to"
        raise RunError(f"work_folder: {error.filename or folder}: {error.strerror or error}; {remedy}") from error


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Terminated


if __name__ == "__main__":
    main()
