"""Slow lines of a log: stalls are left out and said to be, and lines that are training stay in the throughput."""

import gzip

import pytest

from tests.ingest.conftest import SAMPLES, declare, elapse_lines, slow_down

STEPS = 400
SLOW = (14, 19, 20, 52, 61, 98, 101, 130, 166, 171, 190, 214, 233, 235, 280, 301, 312, 344, 370, 399)


def measured(folder, ingested, factors):
    """Return the row of a run whose steps take so many times as long as others, and the warnings on its throughput."""
    lines = elapse_lines(1, 128, seed=3, steps=STEPS)
    for step, factor in factors.items():
        lines[step] = slow_down(lines[step], factor)
    declare(folder)
    (folder / "run_1.log").write_text("\n".join(lines) + "\n")
    dataset = ingested()
    [run] = dataset.runs.itertuples()
    on_throughput = dataset.diagnostics[dataset.diagnostics["subject"] == "throughput"]
    return run, list(on_throughput["message"])


def test_slow_lines_without_a_period_are_training(folder, ingested):
    """One in twenty lines takes twice as long: 350 samples/s become 333, and no line is left out."""
    run, warnings = measured(folder, ingested, dict.fromkeys(SLOW, 2.0))
    assert run.throughput == pytest.approx(350 / 1.05, rel=0.003)
    assert run.steady_lines == STEPS - 4
    assert f"slow: {len(SLOW)} lines at no regular distance, which count" in run.steady_window
    assert warnings == []


def test_a_periodic_family_is_left_out_and_both_throughputs_are_printed(folder, ingested, snapshot):
    run, warnings = measured(folder, ingested, dict.fromkeys(range(25, STEPS, 25), 2.0))
    assert run.throughput == pytest.approx(350, rel=0.003)
    assert warnings == snapshot
    assert len(warnings) == 1


def test_single_lines_above_three_times_the_median_are_left_out_and_both_throughputs_are_printed(
    folder, ingested, snapshot
):
    run, warnings = measured(folder, ingested, {100: 40.0, 233: 2.9})
    assert run.throughput == pytest.approx(350, rel=0.007)
    assert run.throughput < 349
    assert warnings == snapshot
    assert len(warnings) == 1


def test_a_stall_that_changes_the_throughput_by_less_than_1_per_cent_is_no_warning(folder, ingested):
    run, warnings = measured(folder, ingested, {100: 3.5})
    assert "stalls: 1 line" in run.steady_window
    assert warnings == []


def test_fast_lines_count_unless_they_are_three_times_as_fast(folder, ingested):
    run, warnings = measured(folder, ingested, {**dict.fromkeys(SLOW, 0.5), 350: 0.1})
    assert run.throughput == pytest.approx(350 / 0.975, rel=0.003)
    assert "too fast: 1 line" in run.steady_window
    assert warnings == []


def test_the_validation_and_the_epochs_of_a_real_log_are_left_out_with_both_throughputs(folder, ingested, snapshot):
    declare(folder, devices_per_node=8, precision="amp")
    (folder / "run_1.log").write_bytes(gzip.decompress((SAMPLES / "plsc_2_2_complete_real.log.gz").read_bytes()))
    diagnostics = ingested().diagnostics
    [warning] = diagnostics.loc[diagnostics["subject"] == "throughput", "message"]
    assert warning.startswith("7500.04 samples/s without 87 lines, 6438.25 with them: ")
    assert warning == snapshot
