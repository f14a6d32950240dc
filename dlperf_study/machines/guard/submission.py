"""A submission: the commands of one run on each of its nodes, a job rendered for one launcher. Pure."""

import json
import shlex
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from dlperf_study.core.paths import RunPaths
from dlperf_study.machines.cluster import Cluster
from dlperf_study.machines.cluster.software import IMPORT_SECONDS
from dlperf_study.study.environment_variables import COMMON_VARIABLES, PassedVariables, start_up_environment
from dlperf_study.study.gpu_support import GpuQuestion
from dlperf_study.study.job import Job, JobResult, tuples_of_lists


@dataclass(frozen=True)
class Command:
    """One process to start on one node; its log is a file in the run's folder there."""

    name: str
    role: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    log: str
    node: int = 0
    folder: str = ""

    def filled(self, values: Mapping[str, str]) -> "Command":
        """Return the command with the placeholders of these values replaced."""
        argv = tuple(fill(argument, values) for argument in self.argv)
        environment = {name: fill(value, values) for name, value in self.environment.items()}
        return replace(self, argv=argv, environment=environment, log=fill(self.log, values))


@dataclass(frozen=True)
class Submission:
    """A job rendered for one launcher; ``{host_N}`` and the other placeholders of a task are filled in at the start.

    ``folder`` is the folder of the evidence. When nodes don't share files, each creates ``node_folder``, the same path
    everywhere, writes below it, and removes it. ``python`` is the argv of the Python that trains, for the list of its
    installed packages. ``code`` is the digest of the code that must measure the run, which is all that the modules
    ``code_roots`` import. ``device_name`` and ``link`` are those of the cluster file, with which nodes are compared
    before anything starts; what else they are asked, and get, ``Job`` explains: ``archive``, ``scratch_files`` and
    ``data``. ``files`` are texts by name, written into the folder of the run on every node before the start.
    """

    launcher: str
    folder: str
    commands: tuple[Command, ...]
    ports: int
    rank_output: str = ""
    nodes: int = 1
    gpus_per_node: int = 0
    starts_other_nodes: bool = False
    device_name: str = ""
    link: str = ""
    node_folder: str = ""
    python: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    pass_environment: tuple[str, ...] = ()
    network_interface: str = ""
    idle_max_busy_cores: float = 1e9
    idle_wait_seconds: float = 0.0
    ready_seconds: float = 180.0
    gpu_question: GpuQuestion | None = None
    variables: PassedVariables = COMMON_VARIABLES
    libraries: Mapping[str, Sequence[str]] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    requirements: tuple[tuple[str, ...], ...] = ()
    fingerprint: str = ""
    code: str = ""
    code_roots: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    archive: str = ""
    scratch_files: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)

    @property
    def preparing_seconds(self) -> float:
        """How long a node may take until it is ready: idle, its packages listed, a library for GPUs imported."""
        return self.ready_seconds + self.idle_wait_seconds + (IMPORT_SECONDS if self.gpus_per_node else 0.0)

    @property
    def paths(self) -> RunPaths:
        """The paths of the evidence."""
        return RunPaths(Path(self.folder))

    @property
    def folder_there(self) -> str:
        """The run's folder on its nodes; the same name as here, because the logs of ranks contain it."""
        return f"{self.node_folder}/{Path(self.folder).name}" if self.node_folder else self.folder

    def as_json(self) -> str:
        """Return the text that is kept as evidence and shown in the notebook; ``files`` are next to it.

        Values that may be secret are not in it: the process that executes it must have these variables itself.
        """
        values = asdict(self) | {"environment": self.variables.recorded(self.environment)}
        del values["files"]
        return json.dumps(values, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Submission":
        """Return what ``as_json`` wrote, without its files."""
        values = tuples_of_lists(json.loads(text))
        values["commands"] = tuple(Command(**tuples_of_lists(command)) for command in values["commands"])
        values["requirements"] = tuple(map(tuple, values["requirements"]))
        values["variables"] = PassedVariables.of(values["variables"])
        if values["gpu_question"]:
            values["gpu_question"] = GpuQuestion.of(values["gpu_question"])
        return cls(**values)


@dataclass(frozen=True)
class Node:
    """A machine of a cluster: ``reach`` is the command prefix that runs a command there, empty for this machine.

    ``shell``: a shell at the other end splits the command again. ``address`` is the one that other nodes use; left
    empty, the node reports it.
    """

    name: str = ""
    reach: tuple[str, ...] = ()
    python: str = sys.executable
    shell: bool = False
    address: str = ""

    @property
    def title(self) -> str:
        """Its name in messages; this machine may have none."""
        return self.name or "this machine"

    def argv(self, *arguments: str) -> tuple[str, ...]:
        """Return the argv that runs the node's Python with these arguments there."""
        return self.command(self.python, *arguments)

    def command(self, *argv: str) -> tuple[str, ...]:
        """Return the argv that runs a command there."""
        return (*self.reach, shlex.join(argv)) if self.shell else (*self.reach, *argv)

    def shell_argv(self) -> tuple[str, ...]:
        """Return the command prefix that runs a shell line there."""
        return self.reach if self.shell else (*self.reach, "sh", "-c")


#: Run submissions, each within so many seconds; yield one result per submission, in order.
Execute = Callable[[Sequence[Submission], Cluster, float], Generator[JobResult]]


def submission_of(launcher: str, job: Job, cluster: Cluster, folder: Path, node_folder: str = "") -> Submission:
    """Return the commands of a job, each with its log.

    ``node_folder`` is the folder of nodes that don't share files with this machine.
    """
    empty = Submission(launcher, str(folder), (), job.ports, nodes=job.nodes, node_folder=node_folder)
    # Servers have the address of their node, unless the launcher gives them nodes of their own.
    values = {f"server_host_{node}": f"{{host_{node}}}" for node in range(job.nodes)}
    values |= {"run": empty.folder_there, "repetition": folder.name}
    limits = start_up_environment(cluster.meet_seconds, cluster.collective_seconds)
    commands = []
    for task in job.tasks:
        log = f"{empty.folder_there}/{task.name}.log"
        environment = task.environment | limits
        command = Command(task.name, task.role, task.argv, environment, log, task.node, task.folder).filled(values)
        commands.append(replace(command, argv=(*cluster.container, *command.argv)))
    return replace(
        empty,
        commands=tuple(commands),
        rank_output=job.rank_output,
        gpu_question=job.gpu_question,
        variables=job.variables,
        libraries=job.libraries,
        packages=job.packages,
        requirements=job.requirements,
        gpus_per_node=job.gpus_per_node,
        starts_other_nodes=job.starts_other_nodes,
        device_name=cluster.device_name,
        link=cluster.link,
        python=(*cluster.container, job.python or job.tasks[0].argv[0]),
        environment=dict(cluster.environment),
        pass_environment=(*cluster.pass_environment, *job.pass_environment),
        network_interface=cluster.network_interface,
        idle_max_busy_cores=cluster.idle_max_busy_cores,
        idle_wait_seconds=cluster.idle_wait_seconds,
        ready_seconds=cluster.ready_seconds,
        archive=job.archive,
        scratch_files=job.files,
        data=job.data,
    )


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template with ``{name}`` replaced by its value, for each name."""
    for name, value in values.items():
        template = template.replace("{" + name + "}", value)
    return template
