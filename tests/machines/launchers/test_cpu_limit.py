"""Whatever ends a run, the control groups of its processes are gone; and a launcher says why there can be none."""

import sys
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from dlperf_study.core import cpu_group
from dlperf_study.core.cpu_group import PREFIX, obstacle
from dlperf_study.execution.planning import unsupported_here
from dlperf_study.machines.kubernetes.api import KubernetesSettings
from dlperf_study.machines.launchers import kubernetes, slurm
from dlperf_study.machines.node_agent.submission import Command
from dlperf_study.records.rank_log import read_rank_log
from dlperf_study.study.job import RunStatus
from tests.machines import submissions
from tests.machines.launchers.test_local import _signal_agent, execute_one
from tests.requirements import need
from tests.training.frameworks.launching import CLUSTER, configuration, launch

pytestmark = pytest.mark.timeout(120)
LIMITED = """
import os, pathlib, sys, time
from dlperf_study.core.cpu_group import limited_group
limited_group(0.5)
folder = pathlib.Path(os.environ["FOLDER"])
(folder / "groups").write_text(pathlib.Path("/proc/self/cgroup").read_text())
(folder / "started").touch()
exec(sys.argv[1])
"""


def group_names() -> set[str]:
    tree = cpu_group.TREE if cpu_group.is_second_version() else cpu_group.CPU_TREE
    return {folder.name for folder in tree.glob(f"{PREFIX}*")}


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("pass", RunStatus.COMPLETED),
        ("os.kill(os.getpid(), 9)", RunStatus.FAILED),
        ("time.sleep(600)", RunStatus.TIMEOUT),
        ("time.sleep(601)", RunStatus.KILLED),
    ],
)
def test_no_group_outlives_its_run(tmp_path, script, status):
    if obstacle(0.5):
        need("root")
    before = group_names()
    thread = Thread(target=_signal_agent, args=(tmp_path, 9))
    if status is RunStatus.KILLED:
        thread.start()
    argv = (sys.executable, "-c", LIMITED, script)
    command = Command("one", "trainer", argv, {"FOLDER": str(tmp_path)}, str(tmp_path / "one.log"))
    result = execute_one(
        submissions.submission("local", str(tmp_path), (command,), 0), 5 if status is RunStatus.TIMEOUT else 30
    )
    if thread.is_alive():
        thread.join()
    assert result.status is status, (tmp_path / "one.log").read_text()
    assert PREFIX in (tmp_path / "groups").read_text(), "it was in no group"
    assert group_names() <= before


@pytest.mark.matrix
def test_a_rank_with_a_tenth_of_a_core_says_how_often_it_waited(tmp_path):
    if obstacle(0.1):
        need("root")
    result = launch(configuration(cpu_limit=0.1), tmp_path / "1")
    assert result.status == "completed", result
    log = read_rank_log(tmp_path / "1" / "rank-00000.jsonl")
    counts = log.end["cpu_limit"]
    assert counts["cores"] == pytest.approx(0.1)
    # The part of one period may be left from before the window.
    assert counts["cpu_seconds"] <= 0.1 * (log.windows["training"].seconds + 0.2)
    assert 0 < counts["throttled_periods"] <= counts["periods"]
    assert not any(name.endswith(f".{log.facts['pid']}") for name in group_names())


def test_a_machine_that_can_limit_nothing_says_why(monkeypatch):
    monkeypatch.setattr(cpu_group, "TREE", Path("/nowhere"))
    monkeypatch.setattr(cpu_group, "CPU_TREE", Path("/proc/self"))
    reason = unsupported_here(configuration(cpu_limit=0.3), CLUSTER)
    assert str(reason).startswith("cpu_limit 0.3: no control group")
    assert unsupported_here(configuration(), CLUSTER) is None


def test_slurm_holds_its_jobs_by_groups_of_its_own():
    reason = slurm.LAUNCHER.cpu_limit_obstacle(CLUSTER, configuration(cpu_limit=0.3))
    assert reason.startswith("cpu_limit 0.3: under Slurm a process would leave the control group of its job")


@pytest.mark.parametrize(
    ("resources", "devices", "reason"),
    [
        ({"cpu": "0.3"}, 1, ""),
        ({"cpu": "300m"}, 1, ""),
        (
            {"cpu": "4"},
            1,
            "cpu_limit 0.3 needs resources: {cpu: \"0.3\"} in kubernetes of the cluster file; it has '4'",
        ),
        ({}, 1, 'cpu_limit 0.3 needs resources: {cpu: "0.3"} in kubernetes of the cluster file; it has none'),
        ({"cpu": "0.3"}, 2, "cpu_limit 0.3: a pod has one limit for all its ranks; it needs devices_per_node of 1"),
    ],
)
def test_in_kubernetes_the_limit_is_that_of_the_pods(resources, devices, reason):
    settings = KubernetesSettings(images={"default": "image"}, resources=resources)
    cluster = replace(CLUSTER, launcher="kubernetes", settings=settings)
    limited = configuration(cpu_limit=0.3, devices_per_node=devices)
    assert kubernetes.LAUNCHER.cpu_limit_obstacle(cluster, limited) == reason
