import os

import pytest

from dlperf_study.machines.cluster.hardware import cpu_name, usable_cpus

ALLOWED = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("quota", "cpus"),
    [("max 100000\n", ALLOWED), ("100000 100000\n", 1), ("30000 100000\n", 1), ("90000000 100000\n", ALLOWED)],
)
def test_a_containers_quota_limits_the_cpus(tmp_path, quota, cpus):
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    assert usable_cpus(file) == cpus


def test_without_a_quota_the_affinity_counts(tmp_path):
    assert usable_cpus(tmp_path / "none") == ALLOWED


def test_the_cpu_has_the_name_its_maker_gives_it(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nmodel name\t: A CPU @ 2.10GHz\n\nprocessor\t: 1\nmodel name\t: A CPU @ 2.10GHz\n")
    assert cpu_name(file) == "A CPU @ 2.10GHz"
