"""Children of a user's program that no mark finds: whatever ends a run ends them too."""

import signal
import sys
from pathlib import Path

import psutil
import pytest

from dlperf_study.machines.supervision.processes import AGENT
from tests.command_line import CLUSTER, LIMIT_SECONDS, Workplace, finish, wait_for, workplace
from tests.conftest import left_over

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)

STUDY = """\
title: Orphans
about: A rank starts children that its parent processes can't find by their environment.
sections: [scaling]
scaling: weak
program:
  name: toy
  folder: repository
  command: "{python} train.py --width {width}"
  launch: per-rank
constants: {batch_per_device: 16, devices_per_node: 2}
factors: {width: [1]}
baseline: [{values: {}}]
measurement: {warmup_steps: 5, measured_steps: 4000, repetitions: 1, timeout_seconds: 100}
"""
#: The processes above a rank, from its parent on.
PROCESSES = ("node agent", "its supervisor", "kernel", "notebook", "the notebook's supervisor")
#: One child overwrites its environment, as setproctitle does; the other is a daemon without one.
PROGRAM = '''
import os, subprocess, sys, time
from pathlib import Path
from dlperf_study.record import Recorder

OVERWRITTEN = """
import ctypes, os, time
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
start, end = int(fields[47]), int(fields[48])
ctypes.memset(start, 0, end - start)
open(FILE, "w").write(str(os.getpid()))
time.sleep(600)
"""
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    open(FILE, "w").write(str(os.getpid()))
    time.sleep(600)
"""
recorder = Recorder()
if os.environ["RANK"] == "0":
    for name, code in (("overwritten", OVERWRITTEN), ("daemon", DAEMON)):
        file = os.path.join("FOLDER", name)
        subprocess.Popen([sys.executable, "-c", code.replace("FILE", repr(file))], env={})
while recorder.step(0.5):
    time.sleep(0.05)
'''


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "train.py").write_text(PROGRAM.replace("FOLDER", str(tmp_path)))
    return workplace(tmp_path, STUDY, CLUSTER, shares_machine=True)


def children(place: Workplace) -> list[psutil.Process]:
    """Return the two children of the rank, once both have said who they are."""
    files = [place.folder / name for name in ("overwritten", "daemon")]
    wait_for(lambda: all(file.exists() and file.read_text() for file in files), "both children")
    started = [psutil.Process(int(file.read_text())) for file in files]
    for file in files:
        file.unlink()
    return started


def above(process: psutil.Process, name: str) -> psutil.Process:
    """Return a process above a child of the program, by its name in ``PROCESSES``."""
    rank = next(each for each in process.parents() if "--width" in each.cmdline())
    parents = rank.parents()
    first = next(index for index, each in enumerate(parents) if AGENT in each.cmdline())
    return parents[first + PROCESSES.index(name)]


def end_nothing_below(place: Workplace, how: str) -> None:
    """Interrupt a command that measures, or kill a process above the rank."""
    controller = place.start("run --no-report")
    overwritten, daemon = children(place)
    assert overwritten.environ() == {}
    if how in ("SIGINT", "SIGTERM", "SIGKILL"):
        controller.send_signal(signal.Signals[how])
    else:
        above(overwritten, how).kill()
    ended = finish(controller)
    wait_for(lambda: not (overwritten.is_running() or daemon.is_running()), f"the children to end after {how}", 25)
    assert not left_over()
    if how in ("SIGINT", "SIGTERM"):
        assert ended.returncode == 130
        assert "interrupted; no training process is left on this machine." in ended.stderr
    elif how != "SIGKILL":
        assert ended.returncode == 1, ended.stderr
        assert "1/1" in ended.stdout
        assert sys.executable not in ended.stderr


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "SIGKILL", *PROCESSES])
def test_children_that_no_mark_finds_end_with_their_run(place, how):
    end_nothing_below(place, how)
