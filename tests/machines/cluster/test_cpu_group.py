"""A share of a core, by the control groups of this machine's own kernel."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dlperf_study.core import cpu_group
from dlperf_study.core.cpu_group import (
    PREFIX,
    CpuGroup,
    CpuUsage,
    container_group,
    obstacle,
    remove_abandoned_groups,
    remove_groups,
)
from tests.requirements import need

#: Busy for two seconds, in this process and in one that it started before it was limited.
BUSY = """
import json, os, subprocess, sys, time
from dlperf_study.core.cpu_group import limited_group
loop = "import time; end = time.monotonic() + 2\\nwhile time.monotonic() < end: pass"
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.readline()\\n" + loop], stdin=subprocess.PIPE)
group = limited_group(0.3)
start, before = time.monotonic(), group.usage()
child.communicate(b"\\n") if "child" in sys.argv else exec(loop)
seconds = time.monotonic() - start
child.kill()
child.wait()
times = os.times()
used = times.children_user + times.children_system if "child" in sys.argv else time.process_time()
usage = group.usage().since(before)
print(json.dumps([group.cores(), used / seconds, usage.periods, usage.throttled_periods, usage.throttled_seconds]))
"""
WAITING = """
import time
from dlperf_study.core.cpu_group import limited_group
limited_group(0.5)
print("limited", flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def groups() -> Iterator[None]:
    if obstacle(0.3):
        need("root")
        pytest.skip(obstacle(0.3))
    yield
    remove_abandoned_groups()
    assert left() == []


def left() -> list[str]:
    """Return the groups that processes of this test made."""
    tree = cpu_group.TREE if cpu_group.is_second_version() else cpu_group.CPU_TREE
    return [folder.name for folder in tree.glob(f"{PREFIX}test-*")]


def program(script: str, *arguments: str, name: str = "test-one") -> "subprocess.Popen[str]":
    environment = os.environ | {cpu_group.GROUP_VARIABLE: name}
    argv = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True)


def wait_until_limited(process: "subprocess.Popen[str]") -> None:
    assert process.stdout
    assert process.stdout.readline() == "limited\n"


@pytest.mark.parametrize("who", ["itself", "child"])
def test_a_busy_loop_gets_three_tenths_of_a_core(who):
    output, _ = program(BUSY, who).communicate(timeout=60)
    cores, used, periods, throttled, seconds = json.loads(output)
    assert cores == pytest.approx(0.3)
    # The start of its Python, before the limit, is in the CPU time of a child.
    assert 0.2 < used < (0.36 if who == "itself" else 0.45)
    assert 0 < throttled <= periods
    assert seconds > 0


def test_the_groups_of_a_run_are_removed_and_those_of_another_are_not():
    other = program(WAITING, name="test-other")
    ended = program(WAITING)
    for process in (other, ended):
        wait_until_limited(process)
    ended.kill()
    ended.communicate()
    assert len(left()) == 2
    remove_groups("test-one")
    remove_abandoned_groups()
    assert left() == [f"{PREFIX}test-other.{other.pid}"]
    other.kill()
    other.communicate()
    remove_abandoned_groups()
    assert left() == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_process_leaves_is_removed_by_the_next_run(number):
    process = program(WAITING)
    wait_until_limited(process)
    process.send_signal(number)
    process.communicate()
    assert len(left()) == 1
    remove_abandoned_groups()
    assert left() == []


def test_what_the_kernel_refuses_is_an_obstacle_with_its_reason(monkeypatch):
    assert "Invalid argument" in obstacle(0.001)
    monkeypatch.setattr(cpu_group, "TREE", Path("/nowhere"))
    monkeypatch.setattr(cpu_group, "CPU_TREE", Path("/proc/self"))
    message = obstacle(0.3)
    assert message.startswith("cpu_limit 0.3: no control group can limit the cores (/proc/self")
    assert message.endswith("; run as root on a machine with writable control groups, or with resources in Kubernetes")


@pytest.mark.parametrize(
    ("second", "files", "cores", "usage"),
    [
        (
            True,
            {"cpu.max": "30000 100000\n", "cpu.stat": "nr_periods 7\nnr_throttled 5\nthrottled_usec 2500000\n"},
            0.3,
            CpuUsage(7, 5, 2.5),
        ),
        (True, {"cpu.max": "max 100000\n", "cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"}, 0, None),
        (
            False,
            {
                **{"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"},
                "cpu.stat": "nr_periods 4\nnr_throttled 1\nthrottled_time 1500000000\n",
            },
            0,
            CpuUsage(4, 1, 1.5),
        ),
    ],
)
def test_both_versions_of_the_interface_are_read(tmp_path, second, files, cores, usage):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    group = CpuGroup(tmp_path, second)
    assert group.cores() == pytest.approx(cores)
    if usage:
        assert group.usage() == usage
    group.limit(0.25)
    assert group.cores() == 0.25


def test_a_container_with_the_limit_is_left_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "cpu.max").write_text("30000 100000\n")
    monkeypatch.setattr(cpu_group, "TREE", tmp_path)
    assert container_group().cores() == pytest.approx(0.3)
    assert cpu_group.limited_group(0.3).cores() == pytest.approx(0.3)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
