"""How long a node waits until it is quiet."""

import subprocess
import sys
import time

import pytest

from dlperf_study.machines.node_agent import node_load
from dlperf_study.machines.node_agent.messages import RunStopped
from dlperf_study.machines.node_agent.node_load import LoadMeter, wait_until_idle


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


def test_what_a_niced_process_of_others_uses_is_background_load_and_what_a_child_uses_is_not():
    """The other process is no child of this one: it was started by a shell that is gone."""
    spin = "import time\nend = time.monotonic() + 2.0\nwhile time.monotonic() < end: pass"
    meter = LoadMeter()
    subprocess.run(["sh", "-c", f"nice {sys.executable} -c '{spin}' >/dev/null 2>&1 &"], check=True)
    time.sleep(2.2)
    of_others = meter.busy_cores()
    meter = LoadMeter()
    subprocess.run([sys.executable, "-c", spin], check=True)
    with_child = meter.busy_cores()
    assert of_others is not None
    # Tests beside this one only add to the first; the child has a core of its own.
    assert of_others > 0.4
    assert with_child is not None


def test_in_a_container_the_load_of_the_node_is_not_known(monkeypatch):
    monkeypatch.setattr(node_load, "process_times", dict)
    assert LoadMeter().busy_cores() is None
