"""A user's own program as what a run starts: its processes on each node, and what it needs there."""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from shutil import which
from typing import Any

from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.wording import all_reasons
from dlperf_study.programs.program_files import kept_program
from dlperf_study.record import REQUEST_VARIABLE, Request, steps_to_take
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import PROGRAM_FOLDER, Job, Task, TaskRole
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.program import FIRST_NODE, OWN_PROGRAM, PER_NODE, PER_RANK, Program, find_placeholders
from dlperf_study.training.frameworks._base import ClusterView
from dlperf_study.training.frameworks._processes import gpu_environment, gpus_per_node, network_environment
from dlperf_study.training.questions import passed_variables

#: The host file of launchers such as mpirun and deepspeed, below the scratch folder of a run.
HOST_FILE = "hostfile"
#: Ports that a command may name, as {port_0}.
PORTS = 4


def command_obstacles(configuration: Configuration, cluster: ClusterView) -> str:
    """Return why a program can't run with a configuration, or nothing."""
    obstacles = [
        f"{name} is {getattr(configuration, name)}, which your script must limit itself"
        for name in ("memory_limit_mib", "cpu_limit")
        if getattr(configuration, name)
    ]
    if configuration.parameter_servers:
        obstacles.append(
            f"parameter_servers is {configuration.parameter_servers}, but your script starts its servers itself"
        )
    return all_reasons(obstacles)


def untold_processes(program: Program, configuration: Configuration) -> str:
    """Return that a program on CPUs is not told how many processes train.

    On GPUs it may count those that it sees. On CPUs the one process of a smaller configuration would train again.
    """
    if program.launch == PER_RANK or configuration.world_size == 1 or program.tells_processes:
        return ""
    return (
        f"it is started once and not told that {configuration.world_size} processes train: name {{processes}} or "
        "{devices_per_node} in program.command or program.environment, or write launch: per-rank"
    )


def untold_nodes(program: Program, configuration: Configuration) -> str:
    """Return that nothing tells a program of the other nodes that start it."""
    # The recorder counts the ranks itself.
    is_counted = program.records_steps or program.launch != PER_NODE
    if is_counted or configuration.nodes == 1 or program.tells_nodes:
        return ""
    return (
        f"{configuration.nodes} nodes start it, and nothing in it names the others: write {{nodes}}, {{node}} and "
        "{host_0} in program.command, for torchrun as --nnodes {nodes} --node-rank {node} --master-addr {host_0} "
        "--master-port {port_0}"
    )


def missing_command(program: Program) -> str:
    """Return that this machine lacks the executable of a program's command."""
    name = shlex.split(program.command)[0]
    if any(find_placeholders(name)) or "PATH" in program.environment:
        return ""
    if "/" in name and not Path(program.folder, name).exists():
        return f"{name} does not exist in {program.folder}"
    if "/" in name or which(name):
        return ""
    executable, remedy = Path(sys.executable).parent / name, "install it"
    if executable.exists():
        remedy = f"activate the environment that has it, {executable.parent.parent}"
    return f"{name} is not found on PATH: {remedy}, or write its path in program.command"


@dataclass(frozen=True)
class CommandRun:
    """One run of a user's program: the program as its study keeps it, and the configuration that it trains."""

    program: Program
    archive: Path
    configuration: Configuration

    @classmethod
    def of(cls, configuration: Configuration) -> "CommandRun":
        """Return that of a configuration; raises StudyFileError where its study keeps no such program."""
        paths = StudyPaths.of(configuration.study)
        return cls(*kept_program(paths, configuration.program_hash), configuration)

    def job(self, cluster: ClusterView, code: str, repetition: int) -> Job:
        """Return its processes, by where the program starts its command.

        ``code``: the digest of the benchmark code, which the logs of ranks name.
        """
        configuration = self.configuration
        tasks = tuple(self._tasks(cluster, f"{configuration.configuration_id}/{repetition}", code))
        slots = configuration.devices_per_node
        hosts = "".join(f"{{host_{node}}} slots={slots}\n" for node in range(configuration.nodes))
        return Job(
            tasks,
            nodes=configuration.nodes,
            ports=PORTS,
            gpus_per_node=gpus_per_node(configuration, cluster),
            starts_other_nodes=self.program.launch == FIRST_NODE,
            framework=OWN_PROGRAM,
            variables=passed_variables(),
            python=cluster.agent_python,
            archive=str(self.archive),
            files={HOST_FILE: hosts},
            data=self.program.data_links,
            pass_environment=self.program.pass_environment,
        )

    def record(self) -> dict[str, Any]:
        """Return what the record of a run says of its program."""
        values = self.configuration.program_values
        amounts = {name: self.program.amount(name, values) for name in ("tokens_per_step", "flops_per_sample")}
        return self.program.facts | amounts

    def _tasks(self, cluster: ClusterView, run: str, code: str) -> Iterator[Task]:
        nodes = 1 if self.program.launch == FIRST_NODE else self.configuration.nodes
        ranks = self.configuration.devices_per_node if self.program.launch == PER_RANK else 1
        for node, local_rank in product(range(nodes), range(ranks)):
            rank = node * self.configuration.devices_per_node + local_rank
            values = self._values(cluster) | {"node": node, "rank": rank, "local_rank": local_rank}
            name = f"rank-{rank}" if self.program.launch == PER_RANK else f"node-{node}"
            environment = gpu_environment(cluster, node) | network_environment(self.configuration, cluster, node)
            environment["PYTHONUNBUFFERED"] = "1"
            if self.program.records_steps:
                devices = self.configuration.devices_per_node
                environment[REQUEST_VARIABLE] = Request(run, code, "{run}", devices, *self._steps).as_json()
            for variable, value in self.program.environment.items():
                environment[variable] = self.program.filled(value, values)
            if self.program.launch == PER_RANK:
                environment |= self._rank_environment(rank, local_rank)
            argv = self.program.argv(values)
            yield Task(name, TaskRole.TRAINER, node, argv, environment, PROGRAM_FOLDER)

    def _values(self, cluster: ClusterView) -> dict[str, Scalar]:
        configuration, slots = self.configuration, self.configuration.devices_per_node
        values = configuration.program_values
        hosts = ",".join(f"{{host_{node}}}:{slots}" for node in range(configuration.nodes))
        python = cluster.python_for(OWN_PROGRAM)
        values["steps"] = steps_to_take(*self._steps)
        return values | {"hostfile": f"{{run}}/scratch/{HOST_FILE}", "hosts": hosts, "python": python}

    @property
    def _steps(self) -> tuple[int, int, int]:
        """The steps of warm-up, of the measured window, and without communication."""
        measured = self.configuration.measured_steps
        return self.configuration.warmup_steps, measured, sum(self.configuration.computation_halves(measured))

    def _rank_environment(self, rank: int, local_rank: int) -> dict[str, str]:
        """Return the variables by which PyTorch's processes find each other."""
        return {
            "RANK": str(rank),
            "LOCAL_RANK": str(local_rank),
            "WORLD_SIZE": str(self.configuration.world_size),
            "MASTER_ADDR": "{host_0}",
            "MASTER_PORT": "{port_0}",
        }
