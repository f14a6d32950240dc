"""The background load that a rank sees during its windows."""

import os
import signal
import subprocess
import sys
import time

import pytest

from dlperf_study.core.background_load import process_times
from dlperf_study.core.cpu_group import GROUP_VARIABLE
from dlperf_study.training.worker import machine_state
from dlperf_study.training.worker.machine_state import BackgroundLoad
from tests.command_line import wait_for

SPIN = "import time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
#: Starts a process without the mark, and waits.
PARENT = "import subprocess, sys, time\nsubprocess.Popen(['sleep', '60'], env={})\ntime.sleep(60)"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(GROUP_VARIABLE, "a-run")


def test_what_a_process_of_others_uses_is_background_load(tmp_path):
    """A niced process that is not below this one; tests beside this one add to the load."""
    load, start = BackgroundLoad(), time.monotonic()
    command = f"nice {sys.executable} -c '{SPIN}' > used.txt 2>&1 &"
    subprocess.run(["sh", "-c", command], env={**os.environ, GROUP_VARIABLE: "another"}, check=True)
    time.sleep(2.0)
    cores, duration = load.cores(), time.monotonic() - start
    wait_for(lambda: (tmp_path / "used.txt").read_text(), "the process to end")
    used = float((tmp_path / "used.txt").read_text()) / duration
    assert cores is not None
    assert cores >= 0.8 * used > 0.05


def test_processes_with_the_mark_and_below_them_are_of_the_run():
    with subprocess.Popen([sys.executable, "-c", PARENT], start_new_session=True) as marked:
        with subprocess.Popen(["sleep", "60"], env={GROUP_VARIABLE: "another"}, start_new_session=True) as other:
            children: list[int] = []
            while not children:
                children = [pid for pid, each in process_times().items() if each.parent == marked.pid]
            # A child of this process is below one of the run: as an orphan it is not.
            times = {pid: each for pid, each in process_times().items() if pid != os.getpid()}
            run = machine_state._run_processes(times)
            other.kill()
        assert {marked.pid, *children} <= run
        assert other.pid not in run
        os.killpg(marked.pid, signal.SIGKILL)


def test_a_process_of_the_run_that_ends_is_no_background_load(monkeypatch):
    """As a server, which the node agent has waited for when the last window ends; here this process is that agent."""
    monkeypatch.setattr(os, "getppid", os.getpid)
    monkeypatch.setattr(machine_state, "_run_processes", lambda times: children & times.keys())
    with subprocess.Popen([sys.executable, "-c", SPIN], stdout=subprocess.DEVNULL) as server:
        children = {server.pid}
        time.sleep(1.0)
        before = machine_state._seconds_of_others()
    after = machine_state._seconds_of_others()
    used_before = 1.0
    assert before is not None
    assert after is not None
    # Without what the server had used before it would be a second more; others may compute meanwhile.
    times = process_times()[os.getpid()]
    assert times.children_seconds >= 0.9 * used_before
    monkeypatch.setattr(machine_state, "_ancestors", lambda times: [])
    without_agent = machine_state._seconds_of_others()
    assert without_agent is not None
    assert without_agent - after >= 0.9 * used_before


def test_the_seconds_of_kernel_threads_do_not_count(monkeypatch):
    load = BackgroundLoad()
    monkeypatch.setattr(machine_state, "kernel_seconds", lambda times: 1e6)
    assert load.cores() == 0.0


def test_where_no_kernel_thread_is_visible_nothing_is_known(monkeypatch):
    monkeypatch.setattr(machine_state, "kernel_seconds", lambda times: None)
    assert BackgroundLoad().cores() is None
