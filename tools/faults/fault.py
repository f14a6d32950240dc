"""The faults, a row each: where, what, and when."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tests.small_disk import fill, mount_disk, unmount_disk
from tools.faults.clusters import HANGING_SECONDS, TIMEOUT_SECONDS
from tools.faults.scene import Scene

Action = Callable[[Scene], None]
#: How long a process is stopped: longer than a node agent waits for its coordinator.
STOPPED_SECONDS = 25.0
#: How long ranks train where Slurm notices a fault only when it looks again.
LATE_SECONDS = 75
#: How long a link is cut, so that connections outlive it.
SHORT_CUT_SECONDS = 4.0
#: What trains. On one node nothing of Paddle is above its ranks; PyTorch has its launcher there, torchrun.
PADDLE, PADDLE_SERVERS, PYTORCH = "paddle_collective", "paddle_ps", "torch_ddp"
#: While ranks train, before the command starts, or when the run has completed.
TRAINING, BEFORE, COMPLETED = "training", "before", "completed"


@dataclass(frozen=True)
class Fault:
    """What is done to a study, where and when; ``hangs``: the run may only end by its timeout.

    ``prepare`` is done before the command starts. ``training_seconds``: how long ranks train at least, where a fault
    takes effect late. ``framework`` is the one that trains.
    """

    cluster: str
    title: str
    action: Action
    moment: str = TRAINING
    prepare: Action | None = None
    hangs: bool = False
    framework: str = PADDLE
    training_seconds: int = 0

    @property
    def timeout_seconds(self) -> int:
        """How long the run may take."""
        return HANGING_SECONDS if self.hangs else TIMEOUT_SECONDS


def send(role: str, *signals: signal.Signals, which: int = 0) -> Action:
    """Return what sends signals to a process with a role; ``which``: of several, counted from 0, −1 the last."""

    def action(scene: Scene) -> None:
        victim = scene.victims(role)[which]
        for number in signals:
            victim.send_signal(number)

    return action


def stop_for_a_while(role: str) -> Action:
    """Return what stops a process, and lets it go on later."""

    def action(scene: Scene) -> None:
        victim = scene.victims(role)[0]
        victim.suspend()
        time.sleep(STOPPED_SECONDS)
        victim.resume()

    return action


def stop_for_good(role: str, which: int = 0) -> Action:
    """Return what stops a process."""
    return send(role, signal.SIGSTOP, which=which)


def kill_all(scene: Scene) -> None:
    """Kill every process of the study on this machine in the same moment."""
    processes = scene.processes()
    for process in processes:
        process.suspend()
    for process in processes:
        process.kill()


def make_disk_small(scene: Scene) -> None:
    """Put the outputs on a disk of 32 MB."""
    mount_disk(scene.workplace.outputs, "32m")
    scene.cleanup.callback(unmount_disk, scene.workplace.outputs)


def fill_disk(scene: Scene) -> None:
    """Leave no space on the disk of the outputs."""
    filler = scene.workplace.outputs / "filler"
    fill(filler)
    scene.undo.append(filler.unlink)


def fill_node_disk(scene: Scene) -> None:
    """Leave no space where the second host writes."""
    assert scene.ssh
    host, filler = scene.hosts[1], f"{scene.ssh.work}/filler"
    scene.ssh.run(host, f"mount -o remount,size=1m {scene.ssh.work}; head -c 2000000 /dev/zero > {filler}")
    undo = f"rm -f {filler}; mount -o remount,size=50% {scene.ssh.work}"
    scene.undo.append(partial(scene.ssh.run, host, undo))


def truncate_rank_log(scene: Scene) -> None:
    """Cut a rank log of a completed run in the middle."""
    log = scene.run.rank_log(0)
    os.truncate(log, log.stat().st_size // 2)


def truncate_record(scene: Scene) -> None:
    """Cut the record of a completed run in the middle."""
    os.truncate(scene.run.run_file, scene.run.run_file.stat().st_size // 2)


def remove_rank_log(scene: Scene) -> None:
    """Remove the rank log of a completed run."""
    scene.run.rank_log(0).unlink()


def remove_run(scene: Scene) -> None:
    """Remove the folder of the run while ranks write to it."""
    shutil.rmtree(scene.run.folder)


def start_second_command(scene: Scene) -> None:
    """Start the same command a second time."""
    second = scene.workplace.command("run", busy=True)
    assert second.returncode == 1, second.stdout
    assert "is measuring" in second.stderr, second.stderr


def lose_host(scene: Scene) -> None:
    """Let the second host die, with all that runs on it."""
    assert scene.ssh
    scene.ssh.stop(scene.hosts[1])
    scene.undo.append(partial(scene.ssh.start, scene.hosts[1]))


def cut_link(scene: Scene) -> None:
    """Take the network of the second host away."""
    scene.hosts[1].link("down")
    scene.undo.append(partial(scene.hosts[1].link, "up"))


def cut_link_shortly(scene: Scene) -> None:
    """Take the network of the second host away for a moment."""
    scene.hosts[1].link("down")
    time.sleep(SHORT_CUT_SECONDS)
    scene.hosts[1].link("up")


def cancel_job(scene: Scene) -> None:
    """Cancel the job from outside."""
    assert scene.slurm
    scene.slurm.command("scancel", *scene.slurm.jobs())


def end_time_limit(scene: Scene) -> None:
    """Let the time limit of the job end now."""
    assert scene.slurm
    [job] = scene.slurm.jobs()
    scene.slurm.command("scontrol", "update", f"JobId={job}", "EndTime=now+2")


def lose_node(scene: Scene) -> None:
    """Kill the daemon of the second node, as a node that fails does."""
    assert scene.slurm
    scene.slurm.kill_node(scene.hosts[1])
    scene.undo += [scene.slurm.wait_until_idle, partial(scene.slurm.start_node, scene.hosts[1])]


def _local_faults() -> Iterator[Fault]:
    signals = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        for role in ("controller", "agent", "rank"):
            yield Fault("local", f"{number.name} to the {role}", send(role, number))
    for role in ("controller", "notebook", "kernel", "agent", "rank"):
        for number in signals:
            yield Fault("local", f"{number.name} to the {role}", send(role, number))
    for number in signals:
        yield Fault("local", f"{number.name} to torchrun", send("launcher", number), framework=PYTORCH)
    for role in ("controller", "notebook", "kernel"):
        title = f"SIGSTOP to the {role}, SIGCONT after {STOPPED_SECONDS:.0f} s"
        yield Fault("local", title, stop_for_a_while(role))
    for role in ("agent", "rank"):
        yield Fault("local", f"SIGSTOP to the {role}", stop_for_good(role), hangs=True)
    yield Fault("local", "SIGSTOP to torchrun", stop_for_good("launcher"), hangs=True, framework=PYTORCH)
    for number in (signal.SIGKILL, signal.SIGTERM):
        yield Fault("local", f"{number.name} to the server", send("server", number), framework=PADDLE_SERVERS)
    stop = stop_for_good("server")
    yield Fault("local", "SIGSTOP to the server", stop, hangs=True, framework=PADDLE_SERVERS)
    at_once = send("controller", signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT)
    yield Fault("local", "SIGINT and SIGTERM at once to the controller", at_once)
    yield Fault("local", "SIGKILL to all processes at once", kill_all)
    yield Fault("local", "a second command for the same study", start_second_command)
    yield Fault("local", "the disk is full at the start", fill_disk, BEFORE, make_disk_small)
    yield Fault("local", "the disk fills up during the run", fill_disk, prepare=make_disk_small)
    yield Fault("local", "the folder of the run is removed", remove_run)
    yield Fault("local", "a rank log of a completed run is truncated", truncate_rank_log, COMPLETED)
    yield Fault("local", "a rank log of a completed run is removed", remove_rank_log, COMPLETED)
    yield Fault("local", "the record of a completed run is truncated", truncate_record, COMPLETED)


def _ssh_faults() -> Iterator[Fault]:
    for role in ("controller", "kernel", "ssh"):
        yield Fault("ssh", f"SIGKILL to the {role}", send(role, signal.SIGKILL))
    yield Fault("ssh", "SIGINT to the controller", send("controller", signal.SIGINT))
    for number in (signal.SIGKILL, signal.SIGTERM):
        yield Fault("ssh", f"{number.name} to the agent of the second host", send("agent", number, which=-1))
    yield Fault("ssh", "SIGKILL to the launcher on the second host", send("launcher", signal.SIGKILL, which=-1))
    yield Fault("ssh", "SIGKILL to the rank on the second host", send("rank", signal.SIGKILL, which=-1))
    yield Fault("ssh", "SIGSTOP to the rank on the second host", stop_for_good("rank", -1), hangs=True)
    yield Fault("ssh", "the second host dies", lose_host)
    yield Fault("ssh", "the link of the second host is cut", cut_link)
    yield Fault("ssh", f"the link of the second host is cut for {SHORT_CUT_SECONDS:.0f} s", cut_link_shortly)
    yield Fault("ssh", "the disk of the second host fills up during the run", fill_node_disk)


def _slurm_faults() -> Iterator[Fault]:
    for role in ("controller", "kernel", "job program"):
        yield Fault("slurm", f"SIGKILL to the {role}", send(role, signal.SIGKILL))
    yield Fault("slurm", "SIGINT to the controller", send("controller", signal.SIGINT))
    yield Fault("slurm", "SIGTERM to the job program", send("job program", signal.SIGTERM))
    yield Fault("slurm", "SIGKILL to the agent of the second node", send("agent", signal.SIGKILL, which=-1))
    yield Fault("slurm", "SIGKILL to the rank on the second node", send("rank", signal.SIGKILL, which=-1))
    yield Fault("slurm", "SIGSTOP to the rank on the second node", stop_for_good("rank", -1), hangs=True)
    yield Fault("slurm", "scancel", cancel_job)
    yield Fault("slurm", "the time limit of the job ends", end_time_limit, training_seconds=LATE_SECONDS)
    yield Fault("slurm", "the daemon of the second node is killed", lose_node, training_seconds=LATE_SECONDS)


FAULTS = (*_local_faults(), *_ssh_faults(), *_slurm_faults())
