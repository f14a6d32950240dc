"""Energy, memory and clocks, against runs on a GPU that takes 300 W."""

import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.findings import resources
from dlperf_study.findings.resources import Energy, LimitedClocks, NoEnergy, PeakMemory
from dlperf_study.report import tables
from tests.evidence_factory import Planned, Recipe, configuration, write_plan, write_run
from tests.report.tables.cells import labels
from tests.telemetry_factory import gpu, sample, with_telemetry

SMALL, LARGE = configuration(measured_steps=40, batch_per_device=8), configuration(measured_steps=40)
NO_COUNTER = "the kernel shows no energy counter of a processor in /sys/class/powercap"


def study(paths: StudyPaths, **changes: object) -> Dataset:
    """Measure two configurations on a GPU that takes 300 W, three runs each of 10 s."""
    for requested, gibibytes in ((SMALL, 10), (LARGE, 40)):
        for repetition in (1, 2, 3):
            run = write_run(paths, requested, repetition, Recipe(compute_seconds=0.25, noise=0.0, device="gpu"))
            state = {"memory_used_bytes": gibibytes * 2**30, **changes}
            samples = [sample(s, [gpu(300 + repetition, s, **state)]) for s in range(9)]
            with_telemetry(run, sample(-9, [gpu(utilisation=0.0)]), samples)
    write_plan(paths, [Planned(SMALL), Planned(LARGE)])
    return collect(paths)


def test_energy_memory_and_clocks(paths):
    least, most, memory, clocks = resources.page(study(paths))
    # From 301 to 303 W, and 32 or 8 samples in 0.25 s.
    for energy, requested in ((least, LARGE), (most, SMALL)):
        assert isinstance(energy, Energy)
        assert energy.subject == requested.configuration_id
        assert energy.energy.value == pytest.approx(302 * 0.25 / requested.batch_per_device, rel=0.01)
        assert energy.energy.low < energy.energy.value < energy.energy.high
    assert memory == PeakMemory(LARGE.configuration_id, 40 * 2**30, "peak_device_bytes")
    assert clocks == LimitedClocks(0, 6, 0.0)


def test_limited_clocks_are_counted(paths):
    *_, clocks = resources.page(study(paths, clock_limits=0x20))
    assert clocks == LimitedClocks(6, 6, 1.0)


def test_without_a_counter_there_is_the_reason_and_the_memory(paths):
    for repetition in (1, 2, 3):
        run = write_run(paths, LARGE, repetition, Recipe(compute_seconds=0.25))
        samples = [sample(seconds, []) for seconds in range(9)]
        with_telemetry(run, sample(-9, []), samples, [], {"cpu_energy": NO_COUNTER})
    write_plan(paths, [Planned(LARGE)])
    dataset = collect(paths)
    reason, memory = resources.page(dataset)
    assert reason == NoEnergy((NO_COUNTER,))
    assert isinstance(memory, PeakMemory)
    assert memory.column == "peak_process_bytes"
    assert (tables.energy(dataset).is_empty, tables.devices(dataset).is_empty) == (True, True)
    peaks = [label for label in labels(tables.memory(dataset)) if "Peak" in label]
    assert peaks == ["Peak of the process", "Peak of the host"]


def test_tables_have_energy_with_its_interval_and_the_state_of_gpus(paths):
    dataset = study(paths, temperature_celsius=None)
    assert {"Energy per sample", "Power", "Throughput"} <= set(labels(tables.energy(dataset)))
    devices = labels(tables.devices(dataset))
    assert {"GPU busy", "SM clock", "Clock limited"} <= set(devices)
    assert "Temperature" not in devices
    assert len(tables.telemetry(dataset).rows) == 6
