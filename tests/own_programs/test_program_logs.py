"""What a rate in the log of a program counts in a step."""

from types import SimpleNamespace
from typing import Any

from dlperf_study.execution import program_log
from dlperf_study.metrics.columns import COLUMNS
from tests.evidence_factory import configuration


def test_a_step_has_the_samples_of_all_processes():
    series: Any = SimpleNamespace(unit=COLUMNS["throughput"].unit, metric=COLUMNS["throughput"])
    requested = configuration(nodes=2, devices_per_node=3, batch_per_device=8)
    program: Any = None  # Only a rate in tokens asks it.
    assert program_log._work_of_step(series, requested, program) == 48
