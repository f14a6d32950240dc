"""The command line as a user calls it, on a study small enough for a test."""

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from dlperf_study.core.paths import OUTPUTS_VARIABLE, PROJECT, ConfigurationPaths, StudyPaths
from dlperf_study.machines.supervision.locks import machine_lock_file
from dlperf_study.machines.supervision.processes import CONTROLLER_MARK, RUN_MARK, marked, new_mark

STUDY = """\
title: Tiny
about: Made for tests.
sections: [scaling]
scaling: weak
constants: {framework: paddle_collective, strategy: all_reduce, model: mobilenet_v2}
factors:
  devices_per_node: [1, 2]
  image_size: [32]
  classes: [10]
  batch_per_device: [4]
include:
  - framework: paddle_ps
    strategy: async
    parameter_servers: 1
    devices_per_node: 2
    image_size: 32
    classes: 10
    batch_per_device: 4
baseline:
  - {where: {framework: paddle_collective}, values: {devices_per_node: 1}}
  - {values: {}}
measurement:
  {warmup_steps: 1, max_warmup_seconds: 0, measured_steps: 3, compute_only_steps: 2, communication_only_steps: 2,
   repetitions: 1, timeout_seconds: 120}
"""
CLUSTER = """\
launcher: local
nodes: 1
devices_per_node: 2
device: cpu
device_name: a CPU
interconnect: loopback
idle: {max_busy_cores: 1000, wait_seconds: 0}
# horovodrun waits so long for a rank that was killed before it met the others.
start_up: {meet_seconds: 40}
"""
#: How long to wait for others who measure on this machine, and how long a test may last, such a wait included.
PATIENCE_SECONDS, LIMIT_SECONDS = 600, 900
ONE, TWO, SERVED = "1n1d-b4", "1n2d-b4", "1n2d1s"


@dataclass
class Workplace:
    """A study file, a cluster file and an outputs folder; ``first`` is how the study was measured there.

    ``shares_machine``: its commands measure beside those of other tests, because no time of theirs is judged.
    """

    folder: Path
    cluster_file: Path
    first: subprocess.CompletedProcess[str] | None = None
    shares_machine: bool = False

    @property
    def study_file(self) -> Path:
        return self.folder / "tiny.yaml"

    @property
    def outputs(self) -> Path:
        return self.folder / "outputs"

    @property
    def study(self) -> StudyPaths:
        return StudyPaths(self.outputs / "tiny")

    def configuration(self, part: str) -> ConfigurationPaths:
        """Return where the only configuration is that has ``part`` in its name."""
        [folder] = (self.study.folder / "configurations").glob(f"*{part}*")
        return ConfigurationPaths(folder)

    def run_facts(self, part: str, repetition: int = 1) -> dict[str, Any]:
        return dict(json.loads(self.configuration(part).run(repetition).run_file.read_text()))

    def start(self, command: str, busy: bool = False, **variables: str) -> "subprocess.Popen[str]":
        """Start a command; one that measures, when nobody else measures on this machine, unless ``busy`` is wanted."""
        if busy or self.shares_machine or not command.startswith("run"):
            return self._start(command, **variables)
        with first_in_line():
            wait_for(machine_is_free, "the machine to be free", PATIENCE_SECONDS)
            controller = self._start(command, **variables)
            wait_for(lambda: controller.poll() is not None or not machine_is_free(), "the machine to be taken")
        return controller

    def _start(self, command: str, **variables: str) -> "subprocess.Popen[str]":
        name, *options = command.split()
        if name != "report":
            options += ["--cluster", str(self.cluster_file)]
        shared = shared_machine() if self.shares_machine else {}
        return subprocess.Popen(
            [sys.executable, "-m", "dlperf_study", name, str(self.study_file), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, OUTPUTS_VARIABLE: str(self.outputs), **shared, **variables},
        )

    def command(self, command: str, busy: bool = False, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        return finish(self.start(command, busy, **variables))

    def copy(self, folder: Path, without: str | None = None) -> "Workplace":
        """Copy files and evidence, less one configuration. The cluster file stays: its path is its name."""
        copy = replace(self, folder=folder, first=None)
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        if without:
            shutil.rmtree(copy.configuration(without).folder)
        return copy

    def first_rank(self) -> psutil.Process:
        """Wait until ranks train here; return the first."""
        return wait_for(lambda: ranks(self.outputs), f"a rank for {self.outputs}")[0]


def shared_machine() -> dict[str, str]:
    """Return the variable of a command that needs no lock of this machine: it takes this process for its controller."""
    return {CONTROLLER_MARK: new_mark()}


def workplace(folder: Path, study: str = STUDY, cluster: str = CLUSTER, shares_machine: bool = False) -> Workplace:
    """Write the files of a workplace."""
    made = Workplace(folder, folder / "cluster.yaml", shares_machine=shares_machine)
    made.study_file.write_text(study)
    made.cluster_file.write_text(cluster)
    made.outputs.mkdir()
    return made


def typed(command: str, outputs: Path, timeout: float = 120) -> "subprocess.CompletedProcess[str]":
    """Run a command as a reader types it in the project's folder, in this environment, with the outputs elsewhere."""
    binaries = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "VIRTUAL_ENV": sys.prefix,
        OUTPUTS_VARIABLE: str(outputs),
    }
    return subprocess.run(
        shlex.split(command), cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=timeout
    )


def finish(process: "subprocess.Popen[str]", timeout: float = 240) -> "subprocess.CompletedProcess[str]":
    """Wait for a command; return how it ended and what it printed."""
    stdout, stderr = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """Wait until ``condition`` returns something, and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds:.0f} s for {what}")


@contextmanager
def first_in_line() -> Iterator[None]:
    """Keep other tests on this machine from measuring between a look whether it is free and the use of it."""
    with open(Path("/tmp") / f"dlperf_study-tests-{os.getuid()}.line", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def machine_is_free() -> bool:
    with open(machine_lock_file(), "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def ranks(outputs: Path) -> list[psutil.Process]:
    """Return the ranks that train for this outputs folder, in order of rank."""
    processes = []
    for process in marked(RUN_MARK):
        try:
            environment, words = process.environ(), process.cmdline()
        except psutil.Error:
            continue
        is_rank = words[1:] == ["-u", "-m", "dlperf_study.training.worker"]
        if is_rank and environment.get("DLPERF_STUDY_RUN", "").startswith(str(outputs)):
            processes.append((environment.get("PADDLE_TRAINER_ID", "-1"), process))
    return [process for _, process in sorted(processes, key=lambda pair: pair[0])]
