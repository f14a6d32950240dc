"""Collectives by kind and by group, of one run: their bytes, and how long and how fast they are alone."""

from types import SimpleNamespace
from typing import Any

import pytest

from dlperf_study.metrics.collectives import collective_bandwidth, collective_bytes, seconds_alone

LINES = [
    {"kind": "all_reduce", "group": "tensor", "ranks": 4, "calls": 3, "bytes": 300},
    {"kind": "all_gather", "group": "tensor", "ranks": 4, "calls": 1, "bytes": 80},
    {"kind": "all_reduce", "group": "data", "ranks": 2, "calls": 1, "bytes": 1000},
]
SECONDS = {
    "communication": 8.0,
    "communication_all_reduce": 5.0,
    "communication_over_data": 4.0,
    "communication_over_tensor": 3.0,
}


def run(lines: list[dict[str, Any]], *names: str) -> Any:
    windows = {name: SimpleNamespace(mean_seconds=SECONDS[name]) for name in names or SECONDS}
    return SimpleNamespace(ranks=[SimpleNamespace(facts={"collective_operations": lines})], slowest=windows.get)


def test_bytes_are_those_of_a_kind_or_of_a_group():
    assert collective_bytes(run(LINES), "all_reduce") == 1300
    assert collective_bytes(run(LINES), group="tensor") == 380
    assert collective_bytes(run(LINES), group="pipeline") is None


def test_a_link_carries_what_each_group_makes_it_carry():
    carried = 300 * 2 * 3 / 4 + 1000 * 2 * 1 / 2
    assert collective_bandwidth(run(LINES), "all_reduce") == pytest.approx(carried / 5)
    # It was not measured alone.
    assert collective_bandwidth(run(LINES), "all_gather") is None


def test_the_collectives_of_the_only_kind_or_group_are_all():
    assert seconds_alone(run(LINES), group="data") == 4
    assert seconds_alone(run(LINES), group="tensor") == 3
    assert seconds_alone(run(LINES), group="shard") is None
    assert seconds_alone(run(LINES[:2], "communication"), group="tensor") == 8
    assert collective_bandwidth(run(LINES[2:], "communication"), "all_reduce") == pytest.approx(1000 / 8)


def test_logs_of_before_have_no_groups():
    lines = [{name: value for name, value in line.items() if name != "group"} for line in LINES]
    assert seconds_alone(run(lines), group="tensor") is None
    assert collective_bytes(run(lines), "all_gather") == 80
