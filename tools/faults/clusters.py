"""Where faults are performed: this machine, hosts reached by ssh, and a Slurm, all of this machine."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.command_line import workplace
from tests.machines.clusters.namespaces import LOCK, Host, namespaces
from tests.machines.clusters.slurm import Slurm, running_slurm
from tests.machines.clusters.ssh_hosts import SshHosts, running_servers
from tools.faults.scene import Scene

STUDY = """\
title: A fault
about: One rank a node, which trains a few steps.
sections: [scaling]
scaling: weak
constants: {{model: mobilenet_v2, image_size: 32, classes: 10, batch_per_device: 4, {fixed}}}
factors: {{framework: [{framework}]}}
baseline: {{framework: {framework}}}
measurement:
  {{warmup_steps: 1, max_warmup_seconds: 0, measured_steps: 3, measured_seconds: {training_seconds},
   compute_only_steps: 2, communication_only_steps: 2, repetitions: 1, timeout_seconds: {timeout_seconds}}}
"""
CLUSTER = """\
launcher: {launcher}
device: cpu
device_name: a CPU
idle: {{max_busy_cores: 1000, wait_seconds: 0}}
"""
LOCAL = "interconnect: loopback\nnodes: 1\ndevices_per_node: 2\n"
SSH = "interconnect: veth\nhosts: [{hosts}]\ndevices_per_node: 1\nshared_files: false\nwork_folder: {work}\n"
SSH += "ssh: {{config_file: {config}}}\n"
SLURM = "interconnect: veth\nnodes: 4\ndevices_per_node: 1\nslurm: {poll_seconds: 0.5, start_within_seconds: 120}\n"
#: How long a run may take, and how long where it hangs.
TIMEOUT_SECONDS, HANGING_SECONDS = 120, 25

#: Makes the scene of one fault in an empty folder, given the framework, the timeout and the seconds of training.
MakeScene = Callable[[Path, str, int, int], Scene]


@contextmanager
def _hosts() -> Iterator[tuple[Host, ...]]:
    """Yield the hosts, when no test uses them: there is one set of them on a machine."""
    with open(LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with namespaces() as hosts:
            yield hosts


@contextmanager
def local(folder: Path) -> Iterator[MakeScene]:
    """Yield what makes scenes on this machine."""
    yield partial(_scene, fixed="devices_per_node: 1", cluster=CLUSTER.format(launcher="local") + LOCAL)


@contextmanager
def ssh(folder: Path) -> Iterator[MakeScene]:
    """Yield what makes scenes on hosts that share no files."""
    with _hosts() as hosts, running_servers(folder, hosts) as servers:
        names = ", ".join(host.name for host in hosts[:2])
        section = SSH.format(hosts=names, work=servers.work, config=servers.config)
        cluster = CLUSTER.format(launcher="ssh") + section
        yield partial(_scene, fixed="nodes: 2", cluster=cluster, hosts=hosts, ssh=servers)


@contextmanager
def slurm(folder: Path) -> Iterator[MakeScene]:
    """Yield what makes scenes under a Slurm."""
    with _hosts() as hosts, running_slurm(folder, hosts) as started:
        os.environ.update(started.variables)
        cluster = CLUSTER.format(launcher="slurm") + SLURM
        yield partial(_scene, fixed="nodes: 2", cluster=cluster, hosts=hosts, slurm=started)


CLUSTERS = {"local": local, "ssh": ssh, "slurm": slurm}


def study_text(framework: str, timeout_seconds: int, training_seconds: int, fixed: str) -> str:
    """Return the study file: one configuration, one run."""
    strategy = "strategy: async, parameter_servers: 1" if framework == "paddle_ps" else "strategy: all_reduce"
    return STUDY.format(
        framework=framework,
        fixed=f"{fixed}, {strategy}",
        timeout_seconds=timeout_seconds,
        training_seconds=training_seconds,
    )


def _scene(
    folder: Path,
    framework: str,
    timeout_seconds: int,
    training_seconds: int,
    *,
    fixed: str,
    cluster: str,
    hosts: tuple[Host, ...] = (),
    ssh: SshHosts | None = None,
    slurm: Slurm | None = None,
) -> Scene:
    text = study_text(framework, timeout_seconds, training_seconds, fixed)
    scene = Scene(workplace(folder, text, cluster), hosts, ssh, slurm)
    # A timeout makes no other configuration: the study is continued with one that it can keep.
    patient = study_text(framework, TIMEOUT_SECONDS, training_seconds, fixed)
    scene.undo.append(partial(scene.workplace.study_file.write_text, patient))
    return scene
