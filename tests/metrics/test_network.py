"""What the network carried before and during a run, from counters whose growth is known."""

from typing import Any

import pytest

from dlperf_study.metrics.network import busiest_throughput, network_throughput, network_throughput_before
from tests.evidence_factory import configuration, write_run
from tests.telemetry_factory import sample, with_telemetry

MB = 10**6


def counted(seconds: float, eth0: float, docker0: float = 0.0) -> dict[str, Any]:
    """Return a sample with counters that began at 5 MB, of an interface with so many MB/s and of another."""
    sent = {"eth0": round(5 * MB + (seconds + 9) * eth0 * MB), "docker0": round((seconds + 9) * docker0 * MB)}
    return sample(seconds, [], network_bytes=sent)


def test_the_throughputs_are_those_of_the_busiest_interface_before_and_in_the_window(paths):
    run = write_run(paths, configuration(devices_per_node=1, warmup_steps=20, measured_steps=100), 1)
    # The warm-up begins less than 2 s before the training window, which takes 8 s.
    before = [counted(seconds, 2.0) for seconds in (-8, -7, -6, -5, -4)]
    fast = [counted(seconds, 30.0, docker0=12.0) for seconds in range(8)]
    measured = with_telemetry(run, counted(-9, 2.0), [*before, *fast], [])
    assert network_throughput(measured) == pytest.approx(30 * MB)
    assert network_throughput_before(measured) == pytest.approx(2 * MB)


def test_without_counters_or_time_there_is_no_throughput(paths):
    run = write_run(paths, configuration(devices_per_node=1), 1)
    uncounted = with_telemetry(run, sample(-9, []), [sample(seconds, []) for seconds in range(3)], [])
    assert (network_throughput(uncounted), network_throughput_before(uncounted)) == (None, None)
    assert busiest_throughput((counted(0.0, 1.0), counted(0.5, 1.0))) is None
    assert busiest_throughput((counted(0.0, 1.0),)) is None
    assert busiest_throughput((counted(9.0, 1.0), sample(11.0, [], network_bytes={"eth0": 0}))) is None
