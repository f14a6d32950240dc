"""Energy and clocks of the repetitions of a configuration."""

from dlperf_study.dataset.dataset import collect
from tests.evidence_factory import Planned, Recipe, configuration, write_plan, write_run
from tests.telemetry_factory import gpu, sample, with_telemetry

ASKED = configuration(measured_steps=40)


def test_repetitions_have_an_interval_and_clocks_that_vary_are_diagnosed(paths, snapshot):
    for repetition, (watts, clock) in enumerate(((300, 1400), (306, 1401), (312, 1330)), 1):
        run = write_run(paths, ASKED, repetition, Recipe(compute_seconds=0.25, device="gpu"))
        samples = [sample(seconds, [gpu(watts, seconds, sm_clock_mhz=clock)]) for seconds in range(9)]
        with_telemetry(run, sample(-9, [gpu(utilisation=0.0)]), samples)
    write_plan(paths, [Planned(ASKED)])
    dataset = collect(paths)
    [row] = dataset.configurations.itertuples()
    assert row.mean_power_low < row.mean_power < row.mean_power_high
    assert round(row.mean_power) == 306
    energies = dataset.runs["mean_power"] / dataset.runs["throughput"]
    assert dataset.runs["energy_per_sample"].tolist() == energies.tolist()
    assert row.peak_device_bytes == 30 * 2**30
    [message] = dataset.diagnostics.loc[dataset.diagnostics["subject"] == "sm_clock", "message"]
    assert message == snapshot
