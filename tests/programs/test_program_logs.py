"""What a rate in the log of a program counts in a step, and which lines are the windows."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dlperf_study.core.errors import LogError
from dlperf_study.dataset.run_table import step_rows
from dlperf_study.execution import program_log
from dlperf_study.execution.program_log import PrintedSteps
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.records.rank_log import Window
from tests.evidence_factory import configuration


def test_a_step_has_the_samples_of_all_processes():
    series: Any = SimpleNamespace(unit=COLUMNS["throughput"].unit, metric=COLUMNS["throughput"])
    requested = configuration(nodes=2, devices_per_node=3, batch_per_device=8)
    program: Any = None  # Only a throughput in tokens asks it.
    assert program_log._work_of_step(series, requested, program) == 48


@pytest.mark.parametrize(("has_whole_first", "warmup", "first"), [(True, 10, 0), (True, 0, 1), (False, 10, 1)])
def test_a_first_line_of_whole_steps_is_warm_up_and_never_measured(has_whole_first, warmup, first):
    requested = configuration(warmup_steps=warmup, measured_steps=20)
    seconds = np.arange(1.0, 7.0)
    windows = list(program_log._windows(PrintedSteps(seconds, 10, has_whole_first), requested))
    values = np.concatenate([window["step_seconds"] for window in windows])
    assert values.tolist() == seconds[first : first + warmup // 10 + 2].tolist()
    assert [window["steps"] for window in windows] == [warmup, 20]


def test_a_log_that_ends_early_says_how_many_steps_it_has(refused):
    printed = PrintedSteps(np.ones(3), 10, has_whole_first=True)
    with refused(LogError):
        list(program_log._windows(printed, configuration(warmup_steps=10, measured_steps=30)))


def test_one_time_for_ten_steps_is_one_row_of_the_table_of_steps():
    times = np.array([0.1, 0.2, 0.3])
    window = Window("training", 30, 6.0, times, np.zeros(0), np.zeros(3), steps_per_value=10)
    run: Any = SimpleNamespace(
        configuration_id="mine", repetition=1, ranks=[SimpleNamespace(rank=0, windows={"training": window})]
    )
    rows = step_rows(run).to_pandas()
    assert rows["seconds"].tolist() == times.tolist()
    assert rows["step"].tolist() == [0, 10, 20]
    assert rows["loss"].isna().all()
