"""Whose processes the kernel killed because memory was full: those of this group, or of another one."""

import subprocess
import sys
from pathlib import Path

from dlperf_study.machines.node_agent import node_load
from dlperf_study.machines.node_agent.node_load import LoadMeter, out_of_memory_kills
from tests.memory_group import memory_group, processes_started_in

FILL = "bytes_held = b'x' * 400_000_000"


def kills_on_the_node() -> int:
    lines = Path("/proc/vmstat").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def test_what_the_kernel_kills_in_another_group_is_no_kill_of_this_one():
    with memory_group(100_000_000) as group:
        meter, before = LoadMeter(), kills_on_the_node()
        with processes_started_in(group):
            filling = subprocess.Popen([sys.executable, "-c", FILL])
        assert filling.wait(60) == -9
        assert kills_on_the_node() > before
        assert meter.out_of_memory_kills() == 0


def test_the_group_of_a_container_is_the_outermost_that_it_sees(tmp_path, monkeypatch):
    """By version 1 and 2; a name that is valid only outside is none. Where no group counts, the node does."""
    monkeypatch.setattr(node_load, "TREE", tmp_path)
    monkeypatch.setattr(node_load, "_GROUPS_OF_THIS_PROCESS", tmp_path / "groups")
    monkeypatch.setattr(node_load, "_COUNTER_OF_NODE", tmp_path / "vmstat")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    (tmp_path / "memory.events").write_text("low 0\noom 4\noom_kill 3\noom_group_kill 0\n")
    (tmp_path / "groups").write_text("4:memory:/outside/5f\n0::/\n")
    (tmp_path / "vmstat").write_text("drop_slab 1\noom_kill 5\nnuma_hit 7\n")
    assert out_of_memory_kills() == 2
    (tmp_path / "groups").write_text("0::/outside/5f\n")
    assert out_of_memory_kills() == 3
    (tmp_path / "memory.events").unlink()
    assert out_of_memory_kills() == 5
    (tmp_path / "vmstat").unlink()
    assert out_of_memory_kills() == 0
