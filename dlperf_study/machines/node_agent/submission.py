"""A submission: the commands of one run on each of its nodes, a job rendered for one launcher. Pure."""

import json
import shlex
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dlperf_study.core.paths import RunPaths
from dlperf_study.core.restoring import restored
from dlperf_study.machines.cluster import Cluster, software
from dlperf_study.study.environment_variables import start_up_environment
from dlperf_study.study.job import Job, JobResult


@dataclass(frozen=True)
class Command:
    """One process to start on one node, and its log."""

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
    """A job rendered for one launcher on one cluster.

    ``commands`` are the tasks of the job as they are started; ``{host_N}`` and the other placeholders of a task are
    filled in at the start. ``folder`` is the folder of the evidence. When nodes don't share files, each creates
    ``node_folder``, the same path everywhere, writes below it, and removes it. ``python`` is the argv of the Python
    that trains, for the list of its installed packages. ``code`` is the digest of the code that must measure the run,
    which is all that the modules ``code_roots`` import. ``files`` are texts by name, written into the folder of the run
    on every node before the start.
    """

    launcher: str
    folder: str
    commands: tuple[Command, ...]
    job: Job
    cluster: Cluster
    node_folder: str = ""
    python: tuple[str, ...] = ()
    cache_key: str = ""
    code: str = ""
    code_roots: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def pass_environment(self) -> tuple[str, ...]:
        """The names of further variables that reach its commands."""
        return (*self.cluster.pass_environment, *self.job.pass_environment)

    @property
    def preparing_seconds(self) -> float:
        """How long a node may take until it is ready."""
        import_seconds = software.IMPORT_SECONDS if self.job.gpus_per_node else 0.0
        return self.cluster.ready_seconds + self.cluster.idle_wait_seconds + import_seconds

    @property
    def paths(self) -> RunPaths:
        """The paths of the evidence."""
        return RunPaths(Path(self.folder))

    @property
    def folder_there(self) -> str:
        """The run's folder on its nodes; its name is the same."""
        if self.node_folder:
            return f"{self.node_folder}/{Path(self.folder).name}"
        return self.folder

    def filled(self, values: Mapping[str, str]) -> "Submission":
        """Return it with the placeholders of these values replaced."""
        files = {name: fill(content, values) for name, content in self.job.files.items()}
        return replace(
            self,
            folder=fill(self.folder, values),
            node_folder=fill(self.node_folder, values),
            commands=tuple(command.filled(values) for command in self.commands),
            job=replace(self.job, files=files),
        )

    def changed_cluster(self, **changes: Any) -> "Submission":
        """Return the same for a cluster with other values."""
        return replace(self, cluster=replace(self.cluster, **changes))

    def message(self, environment: Mapping[str, str]) -> dict[str, Any]:
        """Return it for JSON, with these variables of the cluster."""
        return asdict(self.changed_cluster(environment=dict(environment)))

    def as_json(self) -> str:
        """Return the text that is kept as evidence, without ``files``."""
        # Values that may be secret are not in it: the process that executes it must have these variables itself.
        values = self.message(self.job.variables.recorded(self.cluster.environment))
        del values["files"]
        return json.dumps(values, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Submission":
        """Return what ``as_json`` wrote, without its files."""
        return restored(cls, json.loads(text))


@dataclass(frozen=True)
class Node:
    """A machine of a cluster; ``reach`` is the command prefix there.

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
        # -P: it imports nothing from the folder in which it starts.
        return self.command(self.python, "-P", *arguments)

    def command(self, *argv: str) -> tuple[str, ...]:
        """Return the argv that runs a command there."""
        if self.shell:
            return (*self.reach, shlex.join(argv))
        return (*self.reach, *argv)

    def shell_argv(self) -> tuple[str, ...]:
        """Return the command prefix that runs a shell line there."""
        if self.shell:
            return self.reach
        return (*self.reach, "sh", "-c")


#: Run submissions, each within so many seconds; yield one result per submission, in order.
Execute = Callable[[Sequence[Submission], Cluster, float], Generator[JobResult]]


def render_submission(launcher: str, job: Job, cluster: Cluster, folder: Path, node_folder: str = "") -> Submission:
    """Return the commands of a job, each with its log.

    ``node_folder`` is the folder of nodes that don't share files with this machine.
    """
    python = (*cluster.container, job.python or job.tasks[0].argv[0])
    # The tasks are in the commands, and the settings of the launcher are in what it rendered.
    facts = (replace(job, tasks=()), replace(cluster, settings=None))
    submission = Submission(launcher, str(folder), (), *facts, node_folder=node_folder, python=python)
    # Servers have the address of their node, unless the launcher gives them nodes of their own.
    values = {f"server_host_{node}": f"{{host_{node}}}" for node in range(job.nodes)}
    values |= {"run": submission.folder_there, "repetition": folder.name}
    limits = start_up_environment(cluster.meet_seconds, cluster.collective_seconds)
    commands = []
    for task in job.tasks:
        log = f"{submission.folder_there}/{task.name}.log"
        environment = task.environment | limits
        command = Command(task.name, task.role, task.argv, environment, log, task.node, task.folder).filled(values)
        commands.append(replace(command, argv=(*cluster.container, *command.argv)))
    return replace(submission, commands=tuple(commands))


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template with ``{name}`` replaced by its value, for each name."""
    for name, value in values.items():
        template = template.replace("{" + name + "}", value)
    return template
