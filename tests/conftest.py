"""A tiny study, measured once for all tests that read it, and a watch over the processes that tests start."""

import gc
import os
import shutil
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, settings

from dlperf_study.core.errors import BusyError
from dlperf_study.core.paths import OUTPUTS_VARIABLE
from dlperf_study.machines.supervision.locks import machine_lock
from dlperf_study.machines.supervision.processes import CONTROLLER_MARK, RUN_MARK, end, marked
from tests.command_line import PATIENCE_SECONDS, Workplace, first_in_line, wait_for, workplace
from tests.message_snapshots import refused, snapshot  # noqa: F401  (fixtures)
from tests.requirements import (  # noqa: F401  (hooks)
    need,
    pytest_make_collect_report,
    pytest_runtest_makereport,
    pytest_runtest_setup,
    pytest_terminal_summary,
)
from tests.run_fixtures import hand_made_run, make_run, paths  # noqa: F401  (fixtures)
from tests.tiers import (  # noqa: F401  (hooks)
    pytest_collection_modifyitems,
    pytest_ignore_collect,
    pytest_runtest_protocol,
    pytest_xdist_make_scheduler,
)

#: Only what these tests start is theirs to judge, on a machine that others use too. Its prefix is one of those
#: that training processes of every library inherit.
TESTS_MARK, TESTS = "GLOO_dlperf_study_tests", uuid.uuid4().hex
os.environ[TESTS_MARK] = TESTS
#: Is in the environment of the command that measures the tiny study, and must be nowhere else.
SECRET = "s3cret-of-the-tests"
#: With all that the tests import, the collector would take a sixth of the processor time to find next to nothing.
gc.set_threshold(100_000, 20, 100)
#: Beside other tests any example may take long, and no test here is one of speed.
settings.register_profile("any_speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any_speed")

#: How Python reports that it starts a process.
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn"}
started_processes = 0


def count_start(event: str, _: object) -> None:
    """Count the processes that the tests start."""
    global started_processes
    started_processes += event in STARTS


sys.addaudithook(count_start)


def left_over() -> list[psutil.Process]:
    """Return the processes of runs and controllers that these tests started and that still live."""
    ours = {process.pid: process for process in marked(TESTS_MARK, TESTS)}
    of_runs = (
        {process.pid for variable in (RUN_MARK, CONTROLLER_MARK) for process in marked(variable)} if ours else set()
    )
    return [process for pid, process in ours.items() if pid in of_runs]


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Look at all processes of the machine, after a test that started one."""
    before = started_processes
    yield
    if started_processes > before and (orphans := left_over()):
        pytest.fail("the test left processes: " + "; ".join(end(orphans)))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """A folder with a study file, a cluster file and empty outputs."""
    made = workplace(tmp_path)
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(made.outputs))
    return made


@pytest.fixture
def machine() -> Iterator[None]:
    """Keep everybody else on this machine from measuring meanwhile; for tests that launch without a controller."""
    with ExitStack() as stack:

        def free() -> bool:
            try:
                stack.enter_context(machine_lock("the tests of dlperf_study"))
            except BusyError:
                return False
            return True

        with first_in_line():
            wait_for(free, "the machine to be free", PATIENCE_SECONDS)
        yield


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """The tiny study, measured by the command line. Look, don't touch: copy it to change it."""
    made = workplace(tmp_path_factory.mktemp("measured"))
    made.first = made.command("run --no-report", SECRET_TOKEN=SECRET)
    assert made.first.returncode == 0, made.first.stderr
    return made


@pytest.fixture
def signals_are_not_ignored() -> Iterator[None]:
    """Let what a test starts take SIGHUP and SIGQUIT, also where ``nohup`` or a background job started the tests."""
    with changed_signals(signal.SIG_DFL, signal.SIGHUP, signal.SIGQUIT):
        yield


@contextmanager
def changed_signals(handler: Any, *numbers: signal.Signals) -> Iterator[None]:
    """Handle signals so meanwhile; what is started then inherits which are ignored."""
    earlier = {number: signal.signal(number, handler) for number in numbers}
    yield
    for number in numbers:
        signal.signal(number, earlier[number])


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless browser."""
    executable = shutil.which("chromium-browser") or shutil.which("google-chrome") or shutil.which("chromium")
    if executable is None:
        need("chromium")
    from playwright import sync_api

    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()
