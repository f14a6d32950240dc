"""Energy, memory, clocks and other processes of a run, from telemetry whose truth is known."""

import re
from statistics import fmean
from typing import Any

import pytest

from dlperf_study.core.errors import Severity
from dlperf_study.core.paths import PROJECT, RunPaths, StudyPaths
from dlperf_study.dataset.run_table import run_diagnostics, run_row
from dlperf_study.metrics.energy import NodeWindow, node_watts, training_windows
from dlperf_study.metrics.gpu_state import clock_limits, limits_text, other_processes
from dlperf_study.records.run import Run, read_run
from dlperf_study.records.telemetry import read_telemetry
from tests.evidence_factory import Recipe, configuration, write_run
from tests.telemetry_factory import UUID, gpu, sample, state_beginning, with_telemetry

#: Forty steps of 0.25 s: a window of 10 s.
RECIPE = {"compute_seconds": 0.25, "noise": 0.0}


@pytest.fixture
def paths(tmp_path) -> RunPaths:
    return _written(tmp_path, "gpu")


@pytest.fixture
def cpu_paths(tmp_path) -> RunPaths:
    return _written(tmp_path, "cpu")


def _written(folder, device: str) -> RunPaths:
    asked = configuration(measured_steps=40)
    return write_run(StudyPaths(folder), asked, 1, Recipe(device=device, **RECIPE))


def sampled(paths: RunPaths, before: dict[str, Any] | None = None, **changes: Any) -> Run:
    """Return a run of a GPU that takes 300 W in the window of 10 s, and 50 W before and after."""
    idle = gpu(50.0, **({"utilisation": 0.0} | (before or {})))
    samples = [sample(-0.5, [gpu(300, -0.5)])]
    samples += [sample(seconds + 0.5, [gpu(300, seconds + 0.5, **changes)]) for seconds in range(10)]
    samples.append(sample(10.5, [gpu(50, 0.0, energy_joules=8100.0, memory_used_bytes=79 * 2**30)]))
    return with_telemetry(paths, sample(-9, [idle]), samples)


def diagnosed(run: Run) -> dict[str, tuple[Severity, str]]:
    return {diagnostic.subject: (diagnostic.severity, diagnostic.message) for diagnostic in run_diagnostics(run)}


def test_energy_is_of_the_window_alone_and_per_sample(paths):
    run = sampled(paths)
    assert diagnosed(run) == {}
    columns = run_row(run)
    assert columns["mean_power"] == pytest.approx(300.0)
    assert columns["energy_per_sample"] == pytest.approx(300.0 / columns["throughput"])
    assert columns["energy_of"] == "GPU boards"
    assert columns["telemetry_samples"] == 10
    assert columns["sampling_seconds"] == pytest.approx(0.002)
    # After the window more memory was in use.
    assert columns["peak_device_bytes"] == 30 * 2**30
    state = ("gpu_utilisation", "sm_clock", "memory_clock", "gpu_temperature", "other_processes")
    assert [columns[name] for name in state] == pytest.approx([0.9, 1400, 1593, 60, 0])
    assert (columns["clock_limited_share"], columns["clock_limits"]) == (0.0, None)


def test_the_counter_of_a_real_gpu_agrees_with_its_readings_of_power():
    """An H100 that multiplied matrices for six seconds, sampled by the code of the node agent: two instruments."""
    telemetry = read_telemetry(PROJECT / "tests" / "records" / "samples" / "telemetry-h100.jsonl")
    window = NodeWindow(telemetry, telemetry.between(49_800_000_000, 53_900_000_000))
    [(_, samples)] = window.group_by_gpu()
    assert len(samples) == 5
    assert node_watts(window) == pytest.approx(fmean(each["power_watts"] for each in samples), rel=0.01)
    assert limits_text(clock_limits(samples) or {}) == "power cap 100 %"
    # It was no run: nothing tells whose process it was.
    assert other_processes(window) is None


def test_the_power_of_two_gpus_is_added_and_one_without_a_counter_leaves_none(paths, snapshot):
    gpus = [{"uuid": UUID}, {"uuid": "GPU-two"}]
    pairs = [sample(s, [gpu(300, s), gpu(100, s)]) for s in range(5)]
    run = with_telemetry(paths, sample(-9, [gpu(), gpu()]), pairs, gpus)
    assert run_row(run)["mean_power"] == pytest.approx(400.0)
    pairs = [sample(s, [gpu(300, s), gpu(100, s, energy_joules=None)]) for s in range(5)]
    reasons = {"GPU-two": {"energy_joules": "Not Supported"}}
    columns = run_row(with_telemetry(paths, sample(-9, [gpu(), gpu()]), pairs, gpus, not_reported=reasons))
    assert (columns["mean_power"], columns["energy_per_sample"]) == (None, None)
    assert columns["energy_obstacle"] == snapshot


def test_a_mig_device_has_its_memory_and_nothing_else(paths):
    device = {"memory_used_bytes": 5 * 2**30, "process_ids": [], "run_process_ids": []}
    run = with_telemetry(paths, sample(-9, [device]), [sample(s, [device]) for s in range(5)])
    columns = run_row(run)
    assert columns["peak_device_bytes"] == 5 * 2**30
    nothing = ("mean_power", "gpu_utilisation", "sm_clock", "gpu_temperature", "clock_limited_share")
    assert [columns[name] for name in nothing] == [None] * 5


def test_processors_count_all_their_packages(cpu_paths):
    samples = [sample(s, [], {"package-0": 60.0 * s, "package-1": 40.0 * s}) for s in range(10)]
    run = with_telemetry(cpu_paths, sample(-9, []), samples, [])
    columns = run_row(run)
    assert columns["mean_power"] == pytest.approx(100.0)
    assert columns["energy_per_sample"] == pytest.approx(100.0 / columns["throughput"])
    assert columns["energy_of"] == "CPU packages"
    assert columns["peak_host_bytes"] == 4 * 2**30 + 9
    assert columns["peak_device_bytes"] is None


NO_COUNTER = "the kernel shows no energy counter of a processor in /sys/class/powercap"
NO_NVML = "NVML: Controller Not Loaded"


@pytest.mark.parametrize(
    ("device", "obstacles", "diagnosed_as"),
    [
        ("cpu", {"cpu_energy": NO_COUNTER}, {}),
        ("gpu", {"gpus": NO_NVML}, {"telemetry": (Severity.NOTE, f"its GPUs were not sampled: {NO_NVML}")}),
    ],
)
def test_without_a_counter_its_obstacle_is_the_reason(tmp_path, device, obstacles, diagnosed_as):
    samples = [sample(s, []) for s in range(5)]
    run = with_telemetry(_written(tmp_path, device), sample(-9, []), samples, [], obstacles)
    columns = run_row(run)
    assert (columns["mean_power"], columns["energy_obstacle"]) == (None, *obstacles.values())
    assert diagnosed(run) == diagnosed_as


def test_a_short_window_has_no_power(paths, snapshot):
    run = with_telemetry(paths, sample(-9, [gpu()]), [sample(s, [gpu(300, s)]) for s in (-1, 4, 9, 14)])
    columns = run_row(run)
    assert columns["energy_obstacle"] == snapshot
    assert (columns["mean_power"], columns["telemetry_samples"]) == (None, 2)


def test_a_value_that_is_sometimes_not_reported_is_none(paths):
    """A maximum or a mean of the other samples would look like one of all."""
    missing = {"clock_limits": None, "memory_used_bytes": None, "utilisation": None, "process_ids": None}
    samples = [sample(s, [gpu(300, s, **(missing if s == 2 else {}))]) for s in range(5)]
    columns = run_row(with_telemetry(paths, sample(-9, [gpu()]), samples))
    nothing = ("clock_limited_share", "peak_device_bytes", "gpu_utilisation", "other_processes")
    assert [columns[name] for name in nothing] == [None] * 4
    assert columns["mean_power"] == pytest.approx(300.0)


def test_a_node_without_telemetry_leaves_no_power_of_the_run(tmp_path):
    """The power of one of two nodes is not that of the run."""
    asked = configuration(nodes=2, measured_steps=40)
    run = sampled(write_run(StudyPaths(tmp_path), asked, 1, Recipe(device="gpu", **RECIPE)))
    assert [node.node for node in run.telemetry] == [0]
    assert training_windows(run) == ()
    assert (run_row(run)["mean_power"], run_row(run)["energy_per_sample"]) == (None, None)


def test_telemetry_without_the_time_of_the_window_says_nothing_of_it(paths):
    sampled(paths)
    for log in paths.folder.glob("rank-*.jsonl"):
        log.write_text(re.sub(r', "begin_ns": \d+', "", log.read_text()))
    assert training_windows(read_run(paths)) == ()


def test_evidence_from_before_there_was_telemetry_is_read(paths, snapshot):
    run = read_run(paths)
    assert (training_windows(run), diagnosed(run)) == ((), {})
    assert run_row(run)["energy_obstacle"] == snapshot


def test_telemetry_that_is_lost_or_damaged_is_said_and_the_run_counts(paths):
    state_beginning(paths)
    lost = read_run(paths)
    assert lost.completed
    assert diagnosed(lost)["telemetry"][1].endswith("telemetry-00000.jsonl: is missing")
    sampled(paths)
    text = paths.telemetry(0).read_text()
    paths.telemetry(0).write_text(text[: len(text) // 2])
    assert "telemetry-00000.jsonl: line" in diagnosed(read_run(paths))["telemetry"][1]


def test_a_gpu_in_use_before_the_run_is_diagnosed(paths, snapshot):
    diagnostics = diagnosed(sampled(paths, before={"process_ids": [41, 42], "utilisation": 0.8}))
    assert diagnostics["other_processes"][1] == snapshot
    assert diagnostics["gpu_utilisation"][1] == snapshot


def test_a_process_that_comes_during_the_run_is_told_from_those_of_the_run(paths):
    run = sampled(paths, process_ids=[7, 99], run_process_ids=[7])
    assert run_row(run)["other_processes"] == 1
    message = "1 other process used its GPUs in the training window: 99"
    assert diagnosed(run)["other_processes"] == (Severity.WARNING, message)
    # In a container the controller has other IDs, and accuses nobody.
    in_container = sampled(paths, process_ids=[7000])
    assert run_row(in_container)["other_processes"] is None
    assert diagnosed(in_container) == {}


def test_a_power_cap_is_a_note_heat_a_warning_and_idle_no_limit(paths):
    capped = sampled(paths, clock_limits=0x4)
    assert run_row(capped)["clock_limits"] == "power cap 100 %"
    assert diagnosed(capped)["clock_limited_share"][0] is Severity.NOTE
    hot = sampled(paths, clock_limits=0x24)
    assert run_row(hot)["clock_limited_share"] == 1.0
    text = f"the clock of {UUID} was limited in the training window: power cap 100 %, temperature, by software 100 %"
    assert diagnosed(hot)["clock_limited_share"] == (Severity.WARNING, text)
    assert diagnosed(sampled(paths, clock_limits=0x1)) == {}
    set_by_user = sampled(paths, clock_limits=0x2)
    assert run_row(set_by_user)["clock_limited_share"] == 0.0
    assert "is set by a user" in diagnosed(set_by_user)["sm_clock"][1]


def test_a_lowered_power_limit_is_diagnosed(paths, snapshot):
    facts = {"uuid": UUID, "power_limit_watts": 250.0, "default_power_limit_watts": 400.0}
    run = with_telemetry(paths, sample(-9, [gpu()]), [sample(s, [gpu(250, s)]) for s in range(5)], [facts])
    assert diagnosed(run)["mean_power"][1] == snapshot


@pytest.mark.parametrize(
    ("state", "is_low"),
    [({}, False), ({"sm_clock_mhz": 900}, True), ({"sm_clock_mhz": 900, "utilisation": 0.3}, False),
     ({"sm_clock_mhz": 900, "clock_limits": 0x4}, False)],
)  # fmt: skip
def test_a_low_clock_without_a_reason_is_diagnosed(paths, state, is_low):
    samples = [sample(s, [gpu(250, s, **state)]) for s in range(5)]
    facts = {"uuid": UUID, "largest_sm_clock_mhz": 1410}
    run = with_telemetry(paths, sample(-9, [gpu(utilisation=0.0)]), samples, [facts])
    message = f"the clock of {UUID} was at most 900 MHz of 1410 while it was busy"
    assert diagnosed(run).get("sm_clock", (None, ""))[1].startswith(message) == is_low
