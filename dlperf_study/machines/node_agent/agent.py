"""The node agent: the process between a run and its coordinator on each node.

Started as ``python -m dlperf_study.machines.node_agent.agent MARK``. On standard input it receives the requests of its
coordinator: what to prepare, then what to start. Standard input is also the lifeline: when the process at the other end
dies, for whatever reason, it closes, and the node agent ends all that this node runs. On standard output it reports the
state; its last message says how the processes ended.

The process that was started only supervises: it starts the node agent as its child, inherits what the node agent leaves
when it is killed, and ends that too.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from dlperf_study.core import restoring, signals
from dlperf_study.core.cpu_group import GROUP_VARIABLE, remove_abandoned_groups, remove_groups
from dlperf_study.core.errors import RunError
from dlperf_study.core.paths import RunPaths
from dlperf_study.machines.cluster import hardware, software
from dlperf_study.machines.node_agent import messages, node_hardware, node_load, run_folder, telemetry
from dlperf_study.machines.node_agent.installed_packages import installed_packages
from dlperf_study.machines.node_agent.submission import Command, Submission
from dlperf_study.machines.supervision import supervisor
from dlperf_study.machines.supervision.processes import RUN_MARK, end_children, end_marked, ending_words
from dlperf_study.study.environment_variables import VISIBLE_DEVICES
from dlperf_study.study.job import PROGRAM_FOLDER, RunStatus, TaskRole

POLL_SECONDS = 0.05
#: How long a node agent may take to end everything and to report, before it exits in any case.
LAST_SECONDS = 120
LOOPBACK = "127.0.0.1"
#: A process that prints more is ended: its log would fill the disk.
MOST_LOG_BYTES = 1 << 28
#: Variables that say where files of this user are, and nothing about speed: not recorded.
PRIVATE = ("HOME", "PATH", "USER", "TMPDIR", "LD_LIBRARY_PATH")


def main() -> None:
    """Supervise a node agent."""
    sys.exit(supervisor.supervise(_run_agent))


def _run_agent() -> None:
    """Prepare the node, start the commands, watch them, end them, and report."""
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signals.adopt_orphans()
    coordinator = messages.CoordinatorConnection(sys.argv[1])
    agent = _Agent(coordinator)
    with suppress(messages.RunStopped):
        try:
            agent.prepare(coordinator.wait_for("prepare"))
            agent.start(coordinator.wait_for("start"))
            agent.watch()
        except _Terminated:
            coordinator.send("failed", status=RunStatus.KILLED, reason="the node agent was told to end the run")
        except (RunError, OSError) as error:
            coordinator.send("failed", status=RunStatus.FAILED, reason=str(error))
        coordinator.wait_for("end")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # If the connection to the coordinator is cut, nobody empties the pipe.
    signal.alarm(LAST_SECONDS)
    agent.end()


@dataclass
class _Started:
    """A command that was started."""

    command: Command
    process: subprocess.Popen[bytes]


class _Terminated(Exception):
    """The node agent received SIGTERM."""


class _Agent:
    """What runs on this node for one run."""

    def __init__(self, coordinator: messages.CoordinatorConnection) -> None:
        self._coordinator = coordinator
        self._environment: dict[str, str] = {}
        self._submission: Submission | None = None
        self._node: int | None = None
        self._started: list[_Started] = []
        self._ssh_folder: Path | None = None
        self._logs: list[Path] = []
        self._meter: node_load.LoadMeter | None = None
        self._telemetry: telemetry.Telemetry | None = None

    def prepare(self, request: messages.Message) -> None:
        """Wait until this node is idle, and report its facts."""
        submission = restoring.restored(Submission, request["submission"])
        job, cluster, variables = submission.job, submission.cluster, submission.job.variables
        for question in job.requirements:
            answer = software.library_answer((sys.executable, *question), os.environ)
            if "error" in answer:
                raise RunError(answer["error"])
        if missing := [path for path in job.data if not os.path.exists(path)]:
            raise RunError(f"program.data: {', '.join(missing)} is not on {socket.gethostname()}")
        remove_abandoned_groups()
        load = node_load.wait_until_idle(
            cluster.idle_max_busy_cores,
            cluster.idle_wait_seconds,
            check=self._coordinator.check,
            report=lambda busy_processes: self._coordinator.send("waiting", busy_processes=busy_processes),
        )
        self._submission = submission
        passed = variables.passed(os.environ, submission.pass_environment)
        self._environment = passed | dict(cluster.environment)
        gpus = node_hardware.allowed_gpus(cluster.environment)
        devices = node_hardware.first_devices(gpus, job.gpus_per_node)
        uuids = [gpu.uuid for gpu in hardware.usable_gpus(devices)] if job.gpus_per_node else []
        self._telemetry = telemetry.Telemetry(uuids, self._coordinator.mark)
        address, interface = node_hardware.own_address(cluster.network_interface) if job.nodes > 1 else (LOOPBACK, "lo")
        private = (*PRIVATE, *request["unrecorded"])
        public = {name: value for name, value in self._environment.items() if name not in private}
        self._coordinator.send(
            "ready",
            load=asdict(load),
            address=address,
            interface=interface,
            ports=node_hardware.free_ports(request["ports"]),
            devices=devices,
            gpu_support=self._gpu_support(submission, devices),
            hardware=node_hardware.hardware(gpus),
            variables=variables.recorded(public),
            **installed_packages(submission.python, job.packages, code_roots=submission.code_roots),
        )

    def _gpu_support(self, submission: Submission, devices: str) -> messages.Message | None:
        """Return the GPU support of the library that trains."""
        if not submission.job.gpus_per_node or not submission.job.gpu_question:
            return None
        environment = self._environment | {VISIBLE_DEVICES: devices}
        return software.gpu_answer(submission.python, submission.job.gpu_question, environment)

    def start(self, request: messages.Message) -> None:
        """Start the commands of this node."""
        assert self._submission, "a run is prepared before it is started"
        submission = self._submission.filled(request["values"])
        job, scratch = submission.job, RunPaths(Path(submission.folder_there)).scratch
        if submission.node_folder:
            _create_node_folder(Path(submission.node_folder))
            run_folder.write_files(scratch.parent, submission.files)
        self._submission, self._node = submission, request["node"]
        # Launchers of frameworks write the whole environment there: nobody else may read it while it exists.
        scratch.mkdir(mode=0o700, exist_ok=True)
        if request["ssh_commands"]:
            self._ssh_folder = scratch / "bin"
            run_folder.install(self._ssh_folder, request["ssh_commands"])
        run_folder.write_files(scratch, job.files)
        if request["archive"]:
            run_folder.unpack_program(request["archive"], scratch / PROGRAM_FOLDER)
            for path, link in job.data.items():
                if link:
                    run_folder.link_data(Path(path), scratch / PROGRAM_FOLDER / link)
        self._meter = node_load.LoadMeter()
        for command in submission.commands:
            if command.node == self._node:
                self._started.append(_Started(command, self._start_process(command, scratch)))

    def _start_process(self, command: Command, scratch: Path) -> "subprocess.Popen[bytes]":
        marks = dict.fromkeys((RUN_MARK, GROUP_VARIABLE), self._coordinator.mark)
        environment = self._environment | command.environment | marks
        if self._ssh_folder:
            environment["PATH"] = os.pathsep.join((str(self._ssh_folder), environment["PATH"]))
        self._logs.append(Path(command.log))
        with open(command.log, "wb") as log:
            try:
                return subprocess.Popen(
                    command.argv,
                    env=environment,
                    cwd=scratch / command.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=signals.die_with_parent,  # safe: the node agent has one thread
                )
            except OSError as error:
                raise RunError(f"a command could not be started: {error}") from error

    def watch(self) -> None:
        """Report the end of trainers, or a failure."""
        last_state = None
        while True:
            self._coordinator.receive(POLL_SECONDS)
            if self._telemetry:
                self._telemetry.sample_if_due()
            state = self._state()
            if state and state != last_state:
                kind, values = state
                self._coordinator.send(kind, **values)
                last_state = state

    def _state(self) -> tuple[str, messages.Message] | None:
        """Return ``failed`` or ``done`` with its facts, or None."""
        for log in self._logs:
            if log.stat().st_size > MOST_LOG_BYTES:
                reason = f"printed more than {MOST_LOG_BYTES >> 20} MiB"
                return "failed", {"status": RunStatus.FAILED, "task": log.stem, "reason": reason}
        trainer_codes = []
        for started in self._started:
            code = started.process.poll()
            if code not in (None, 0) or (code == 0 and started.command.role == TaskRole.SERVER):
                return "failed", {
                    "status": RunStatus.FAILED,
                    "task": started.command.name,
                    "reason": ending_words(code),
                }
            if started.command.role == TaskRole.TRAINER:
                trainer_codes.append(code)
        if trainer_codes and all(code == 0 for code in trainer_codes):
            return ("done", {})
        return None

    def end(self) -> None:
        """End all that is left here, and report the exits."""
        codes = {started.command.name: started.process.poll() for started in self._started}
        end_children()
        end_marked(RUN_MARK, self._coordinator.mark)
        remove_groups(self._coordinator.mark)
        for started in self._started:
            started.process.wait()
        # What another node starts here, as horovodrun does by ssh, is no child of this process, and so not known.
        busy, kills = None, 0
        if self._meter:
            busy = self._meter.busy_cores() if self._started else None
            kills = self._meter.out_of_memory_kills()
        files = ""
        if self._submission and self._node is not None:
            files = self._files_of_run(self._submission, self._node)
        self._coordinator.send("report", exit_codes=codes, busy_cores=busy, out_of_memory_kills=kills, files=files)

    def _files_of_run(self, submission: Submission, node: int) -> str:
        """Close the files of this node; return those not shared."""
        folder = Path(submission.folder_there)
        # Without telemetry the run counts, and the report says so.
        if self._telemetry:
            with suppress(OSError):
                self._telemetry.close(RunPaths(folder).telemetry(node), node)
        # What a user's program printed may have secrets, which nobody else replaces if the controller is gone.
        if submission.job.archive:
            for log in self._logs:
                with suppress(OSError):
                    submission.job.variables.redact_file(log, self._environment)
        if not submission.node_folder:
            return ""
        run_folder.keep_rank_output(folder, submission.job.rank_output)
        files = run_folder.pack(folder)
        shutil.rmtree(submission.node_folder)
        return files


def _create_node_folder(folder: Path) -> None:
    """Create the node's own work folder, for this user only."""
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        remedy = "name a folder that is local to each node, or set shared_files: true if outputs/ is shared too"
        raise RunError(f"work_folder: {folder} was made by another node of this run; {remedy}") from error
    except OSError as error:
        remedy = "name a work_folder in the cluster file that every node can make and write to"
        raise RunError(f"work_folder: {error.filename or folder}: {error.strerror or error}; {remedy}") from error


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Terminated


if __name__ == "__main__":
    main()
