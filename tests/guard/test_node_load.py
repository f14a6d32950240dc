"""How long a node waits until it is quiet."""

import subprocess
import sys

import pytest

from dlperf_study.machines.guard import node_load
from dlperf_study.machines.guard.messages import RunStopped
from dlperf_study.machines.guard.node_load import wait_until_idle


def unheard(*_: object) -> None:
    """Nobody asks to stop, or reads the report."""


def cut() -> None:
    raise RunStopped


def test_a_quiet_node_is_not_waited_for_and_not_reported():
    load = wait_until_idle(1000.0, 60.0, unheard, unheard)
    assert load.waited_seconds < 1
    assert load.busy_cores_before >= 0
    wait_until_idle(1000.0, 60.0, unheard, pytest.fail)


@pytest.fixture
def busy() -> object:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield process
        process.kill()


def test_a_busy_node_is_waited_for_but_not_for_ever(busy):
    load = wait_until_idle(0.05, 0.5, unheard, unheard)
    assert load.waited_seconds >= 0.5
    assert load.busy_cores_before > 0.05


def test_a_wait_is_reported_once_with_the_process_that_causes_it(busy, monkeypatch):
    # This machine may have other busy processes.
    monkeypatch.setattr(node_load, "MOST_NAMED", 1000)
    reports: list[str] = []
    wait_until_idle(0.05, 2.0, unheard, reports.append)
    [report] = reports
    assert f"(process {busy.pid}, " in report


def test_a_run_that_is_over_is_not_waited_for(busy):
    with pytest.raises(RunStopped):
        wait_until_idle(0.05, 60.0, cut, unheard)
