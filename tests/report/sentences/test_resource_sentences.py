"""What the page on resources says first, and what its tables hold."""

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.report import sentences, tables
from tests.evidence_factory import Planned, Recipe, configuration, write_plan, write_run
from tests.report.tables.cells import labels
from tests.telemetry_factory import gpu, sample, with_telemetry

SMALL, LARGE = configuration(measured_steps=40, batch_per_device=8), configuration(measured_steps=40)
NO_COUNTER = "the kernel shows no energy counter of a processor in /sys/class/powercap"


def study(paths: StudyPaths, **changes: object) -> Dataset:
    """Measure two configurations on a GPU that takes 300 W, three runs each of 10 s."""
    for asked, gibibytes in ((SMALL, 10), (LARGE, 40)):
        for repetition in (1, 2, 3):
            run = write_run(paths, asked, repetition, Recipe(computation_seconds=0.25, noise=0.0, device="gpu"))
            state = {"memory_used_bytes": gibibytes * 2**30, **changes}
            samples = [sample(s, [gpu(300 + repetition, s, **state)]) for s in range(9)]
            with_telemetry(run, sample(-9, [gpu(utilisation=0.0)]), samples)
    write_plan(paths, [Planned(SMALL), Planned(LARGE)])
    return collect(paths)


def test_energy_memory_and_clocks_come_first(paths, snapshot):
    shown = sentences.resources(study(paths)).sentences
    assert shown == snapshot
    # From 301 to 303 W, and 32 or 8 samples in 0.25 s.
    for joules in (302 * 0.25 / 32, 302 * 0.25 / 8):
        assert f"{round(joules, 2):.2f}" in shown[0].replace("2.359", "2.36")


def test_limited_clocks_are_counted(paths, snapshot):
    assert sentences.resources(study(paths, clock_limits=0x20)).sentences[2] == snapshot


def test_without_a_counter_the_reason_is_said_once_and_memory_is_there(paths, snapshot):
    for repetition in (1, 2, 3):
        run = write_run(paths, LARGE, repetition, Recipe(computation_seconds=0.25))
        samples = [sample(seconds, []) for seconds in range(9)]
        with_telemetry(run, sample(-9, []), samples, [], {"cpu_energy": NO_COUNTER})
    write_plan(paths, [Planned(LARGE)])
    dataset = collect(paths)
    assert sentences.resources(dataset).sentences == snapshot
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
