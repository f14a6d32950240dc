"""Exit codes in words, and processes that are told by their start as well as by their id."""

import os
import shutil
import subprocess
import sys
import time

import psutil
import pytest

from dlperf_study.core.errors import RunError
from dlperf_study.machines.supervision import processes
from dlperf_study.machines.supervision.processes import (
    CONTROLLER_MARK,
    end,
    ending_words,
    is_running,
    new_mark,
    this_process,
)
from tests.command_line import wait_for
from tests.orphans import require_end_of_orphan


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (255, "exited with code 255"),
        (-9, "was ended by signal SIGKILL"),
        (137, "exited with code 137: a process of its own was ended by SIGKILL"),
        (245, "exited with code 245: a process of its own was ended by SIGSEGV"),
    ],
)
def test_how_a_process_ended_in_words(code, words):
    assert ending_words(code) == words


def test_a_process_that_has_the_id_of_a_dead_one_is_another():
    pid, _, started = this_process().partition("-")
    assert is_running(f"{pid}-{started}")
    assert not is_running(f"{pid}-{int(started) - 1}")
    assert is_running(pid)


def test_the_name_of_a_command_may_contain_anything(tmp_path):
    """The system puts it, in parentheses, before the start time."""
    program = tmp_path / "a) 1 (b"
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([program, "60"]) as process:
        wait_for(lambda: psutil.Process(process.pid).name() == program.name, "the program to have its name")
        ticks_per_second = os.sysconf("SC_CLK_TCK")
        started = int(psutil.Process(process.pid).create_time() - psutil.boot_time())
        possible_ticks = range((started - 2) * ticks_per_second, (started + 3) * ticks_per_second)
        assert not is_running(f"{process.pid}-1")
        assert any(is_running(f"{process.pid}-{ticks}") for ticks in possible_ticks)
        process.kill()


def test_a_survivor_is_ended_when_another_process_has_the_id_of_its_owner():
    name, _, host = new_mark().rpartition("@")
    pid, started, unique = name.split("-")
    mark = f"{pid}-{int(started) - 1}-{unique}@{host}"
    require_end_of_orphan(CONTROLLER_MARK, mark)


def test_a_survivor_that_can_not_be_ended_is_an_error(monkeypatch):
    with subprocess.Popen(["sleep", "60"]) as waiting:
        monkeypatch.setattr(processes, "marked", lambda variable: [psutil.Process(waiting.pid)])
        monkeypatch.setattr(processes, "_is_orphan", lambda process, variable: True)
        monkeypatch.setattr(processes, "end", lambda orphans: [])
        with pytest.raises(RunError, match=f"cannot be killed: {waiting.pid}"):
            processes.end_orphans()
        waiting.kill()


def test_only_a_process_that_was_still_there_is_named_as_ended():
    """Two controllers may find the same survivor; the one that comes too late has ended nothing."""
    with subprocess.Popen(["sleep", "60"]) as sleeping, subprocess.Popen(["sleep", "61"]) as killed:
        found = [psutil.Process(each.pid) for each in (killed, sleeping)]
        killed.kill()
        killed.wait()
        assert end(found) == [f"{sleeping.pid}: sleep"]


#: A process of a parent that has ended, with a session and an environment of its own: no mark finds it.
DAEMON = """
import subprocess, psutil
from dlperf_study.core.signals import adopt_orphans
from dlperf_study.machines.supervision.processes import end_children
adopt_orphans()
subprocess.run(["sh", "-c", "setsid sleep 100 &"], env={"PATH": "/usr/bin:/bin"})
[daemon] = psutil.Process().children()
print(len(end_children()), psutil.Process().children()[0].status() if daemon.is_running() else "ended")
"""


def test_a_daemon_is_adopted_and_ended():
    done = subprocess.run([sys.executable, "-c", DAEMON], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) in (("1 zombie", ""), ("1 ended", ""))


#: Leaves a process that forks and ends all the time: it has another id whenever one looks.
COMET = """
import os, sys, time
from dlperf_study.machines.supervision.supervisor import supervise

def leave_a_comet():
    if os.fork() == 0:
        os.setsid()
        while True:
            if os.fork():
                os._exit(0)
            open(sys.argv[1], "a").write("x")
            time.sleep(0.001)
    time.sleep(0.3)

sys.exit(supervise(leave_a_comet))
"""


def test_a_process_that_forks_and_ends_all_the_time_is_ended(tmp_path):
    trace = tmp_path / "trace"
    done = subprocess.run([sys.executable, "-c", COMET, str(trace)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    size = trace.stat().st_size
    time.sleep(0.3)
    assert size == trace.stat().st_size > 0
