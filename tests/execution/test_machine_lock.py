"""Who may measure, and what is ended first."""

import os
import shutil
import subprocess
import sys
from socket import gethostname

import psutil
import pytest

from dlperf_study.core.errors import BusyError
from dlperf_study.core.paths import PROJECT
from dlperf_study.machines.supervision.locks import machine_lock
from dlperf_study.machines.supervision.processes import AGENT, CONTROLLER_MARK, RUN_MARK, end_orphans, new_mark
from tests.command_line import LIMIT_SECONDS, PATIENCE_SECONDS, machine_is_free, wait_for
from tests.orphans import require_end_of_orphan
from tests.requirements import ROOT, need
from tests.shell_program import program

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)

HOLD = """
import sys, time
from dlperf_study.machines.supervision.locks import machine_lock
with machine_lock("a test"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lock_is_for_one_and_free_under_a_driver(machine, monkeypatch):
    with pytest.raises(BusyError, match=f"process {os.getpid()} is measuring the tests of dlperf_study"):
        machine_lock("another").__enter__()
    monkeypatch.setenv(CONTROLLER_MARK, "1-driver@here")
    with machine_lock("a kernel"):
        pass


def test_the_lock_goes_when_its_holder_is_killed():
    wait_for(machine_is_free, "the machine to be free", PATIENCE_SECONDS)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD], stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BusyError, match=f"process {holder.pid} is measuring a test on this machine"):
            machine_lock("another").__enter__()
        holder.kill()
    wait_for(machine_is_free, "the lock to go", PATIENCE_SECONDS)


@pytest.mark.parametrize(("arguments", "is_set_up"), [((), False), (("WAIT=1",), True), (("CLUSTER=hosts",), True)])
def test_a_refusal_comes_before_the_minutes_of_a_set_up(machine, tmp_path, arguments, is_set_up):
    """The set-up itself ends at once, with a Python that makes no environment."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(PROJECT / name, tmp_path)
    for name in ("locks", "tools"):
        shutil.copytree(PROJECT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    python = program(tmp_path, f'case "$*" in "-m venv"*) exit 1;; esac; exec {sys.executable} "$@"', "python")
    environment = {name: text for name, text in os.environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
    done = subprocess.run(
        ["make", "study", *arguments],
        cwd=tmp_path,
        env={**environment, "PYTHON_FOR_SETUP": python},
        capture_output=True,
        text=True,
    )
    holder = f"process {os.getpid()} is measuring the tests of dlperf_study"
    assert (holder in done.stderr, "set-up 1/3" in done.stdout) == (not is_set_up, is_set_up)


@pytest.mark.parametrize("variable", [RUN_MARK, CONTROLLER_MARK])
def test_survivors_of_the_dead_are_ended_and_named(variable):
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    require_end_of_orphan(variable, f"{dead.pid}-x@{gethostname()}")


@pytest.mark.parametrize("variable", [RUN_MARK, CONTROLLER_MARK])
def test_processes_of_the_living_are_left_alone(variable):
    with subprocess.Popen(["sleep", "60"], env={**os.environ, variable: new_mark()}) as process:
        assert not any(name.startswith(f"{process.pid}:") for name in end_orphans())
        assert process.poll() is None
        process.kill()


def test_processes_of_a_container_with_our_name_are_left_alone():
    need(ROOT, "unshare")
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    mark = f"{CONTROLLER_MARK}={dead.pid}-x@{gethostname()}"
    apart = ["unshare", "--pid", "--fork", "--kill-child", "env", mark]
    with subprocess.Popen([*apart, "sleep", "61"]) as container:
        wait_for(lambda: _commands_below(container.pid) == [["sleep", "61"]], "the container")
        (sleeper,) = psutil.Process(container.pid).children()
        assert not any("sleep 61" in name for name in end_orphans())
        container.kill()
        # The kernel ends what is in the container after the command that started it.
        sleeper.wait(PATIENCE_SECONDS)


def test_what_another_machine_runs_here_lives_as_long_as_its_guard():
    mark = "1-x@elsewhere"
    agent = subprocess.Popen([sys.executable, "-c", "input()", AGENT, mark], stdin=subprocess.PIPE)
    with agent, subprocess.Popen(["sleep", "60"], env={**os.environ, RUN_MARK: mark}) as process:
        assert not any(name.startswith(f"{process.pid}:") for name in end_orphans())
        agent.kill()
        agent.wait()
        # The controller of another test may end it before this process does.
        end_orphans()
        assert process.wait(5) == -9


def _commands_below(pid: int) -> list[list[str]]:
    return [child.cmdline() for child in psutil.Process(pid).children()]
