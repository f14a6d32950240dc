"""What a node agent samples of its node: GPUs by NVML, processors by RAPL, and why something is not reported."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dlperf_study.machines.node_agent import telemetry as cpu_energy
from dlperf_study.machines.node_agent.telemetry import CpuEnergy, GpuTelemetry, Telemetry, network_bytes
from dlperf_study.machines.supervision.processes import RUN_MARK
from tests.machines.node_agent.nvml import GIB, MIG_UUID, UNSUPPORTED_BY_MIG, Gpu, Library, load, pynvml
from tests.nvidia_smi import A100, UUIDS


def zone(powercap: Path, folder: str, name: str, microjoules: int) -> Path:
    """Write a zone of the kernel's powercap files; return the file of its counter."""
    path = powercap / folder
    path.mkdir(parents=True)
    (path / "name").write_text(f"{name}\n")
    (path / "max_energy_range_uj").write_text("262143328850\n")
    (path / "energy_uj").write_text(f"{microjoules}\n")
    return path / "energy_uj"


def lines_of(telemetry: Telemetry, path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """Return what is written: the first line, the samples, and the last line."""
    telemetry.close(path, 0)
    first, *samples, last = map(json.loads, path.read_text().splitlines())
    return first, samples, last


def test_an_a100_reports_everything_in_the_units_of_its_names(monkeypatch):
    load(Library(Gpu(process_ids=(7,)), Gpu(UUIDS[1], percent=3)), monkeypatch)
    gpus = GpuTelemetry([UUIDS[0], UUIDS[1]])
    assert gpus.obstacle == ""
    assert gpus.facts()[0] == {
        "uuid": UUIDS[0],
        "name": A100,
        "memory_bytes": 80 * GIB,
        "power_limit_watts": 400.0,
        "default_power_limit_watts": 400.0,
        "largest_sm_clock_mhz": 1410,
        "largest_memory_clock_mhz": 1593,
    }
    first, second = gpus.sample()
    assert first == {
        "utilisation": 0.97,
        "memory_used_bytes": 30 * GIB,
        "power_watts": 400.0,
        "energy_joules": 9_000_000.0,
        "sm_clock_mhz": 1410,
        "memory_clock_mhz": 1593,
        "temperature_celsius": 61,
        "clock_limits": 0,
        "process_ids": [7],
    }
    assert (second["utilisation"], second["process_ids"]) == (0.03, [])
    assert gpus.not_reported == {}


def test_what_a_mig_device_does_not_support_is_not_reported_and_never_zero(monkeypatch):
    load(Library(Gpu(MIG_UUID, unsupported=UNSUPPORTED_BY_MIG)), monkeypatch)
    gpus = GpuTelemetry([MIG_UUID])
    assert gpus.facts() == [{"uuid": MIG_UUID, "name": A100, "memory_bytes": 80 * GIB}]
    assert gpus.sample() == [{"memory_used_bytes": 30 * GIB, "process_ids": []}]
    assert gpus.not_reported[MIG_UUID]["energy_joules"] == "Not Supported"
    assert len(gpus.not_reported[MIG_UUID]) == 11


def test_a_driver_without_the_newer_functions_is_asked_by_the_older_name(monkeypatch):
    lacks = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetComputeRunningProcesses_v3")
    load(Library(Gpu(limits=4), lacks=lacks), monkeypatch)
    gpus = GpuTelemetry(UUIDS[:1])
    [sample] = gpus.sample()
    assert sample["clock_limits"] == 4
    assert "process_ids" not in sample
    assert gpus.not_reported == {UUIDS[0]: {"process_ids": "Function Not Found"}}


@pytest.mark.parametrize(
    ("library", "obstacle"),
    [
        (Library(initialised=pynvml.NVML_ERROR_DRIVER_NOT_LOADED), "NVML: Driver Not Loaded"),
        (Library(Gpu(UUIDS[1])), "NVML: Not Found"),
    ],
)
def test_no_driver_and_no_such_gpu_are_said(library, obstacle, monkeypatch):
    load(library, monkeypatch)
    gpus = GpuTelemetry(UUIDS[:1])
    assert (gpus.obstacle, gpus.facts(), gpus.sample()) == (obstacle, [], [])


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="there is a driver here")
def test_no_library_is_said(snapshot):
    assert GpuTelemetry(UUIDS[:1]).obstacle == snapshot


def test_no_package_is_said(monkeypatch, snapshot):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert GpuTelemetry(UUIDS[:1]).obstacle == snapshot


def test_a_run_without_gpus_loads_no_library(monkeypatch):
    library = load(Library(Gpu()), monkeypatch)
    assert (GpuTelemetry([]).obstacle, library.calls) == ("", [])


@pytest.fixture
def process_of_the_run() -> Iterator[int]:
    with subprocess.Popen(["sleep", "60"], env={**os.environ, RUN_MARK: "mark"}) as process:
        yield process.pid
        process.kill()


def test_samples_tell_the_processes_of_the_run_from_others(process_of_the_run, tmp_path, monkeypatch):
    gpu = Gpu(process_ids=(os.getpid(),))
    load(Library(gpu), monkeypatch)
    telemetry = Telemetry(UUIDS[:1], "mark")
    gpu.process_ids = (os.getpid(), process_of_the_run)
    _, samples, last = lines_of(telemetry, tmp_path / "telemetry.jsonl")
    assert [sample["kind"] for sample in samples] == ["before", "sample"]
    before, during = (sample["gpus"][0] for sample in samples)
    assert (before["process_ids"], before["run_process_ids"]) == ([os.getpid()], [])
    assert during["process_ids"] == sorted(gpu.process_ids)
    assert during["run_process_ids"] == [process_of_the_run]
    assert last == {"kind": "end", "samples": 2, "not_reported": {}}


def test_a_sample_is_taken_each_second_and_missed_ones_are_not_made_up(tmp_path):
    times = iter([0.0, 0.0, 0.05, 0.99, 1.04, 2.0, 5.5, 5.55, 6.1])
    telemetry = Telemetry([], "mark", lambda: next(times))
    taken = [telemetry.sample_if_due() for _ in range(8)]
    assert taken == [True, False, False, True, True, True, False, True]
    _, samples, _ = lines_of(telemetry, tmp_path / "telemetry.jsonl")
    assert len(samples) == 1 + 5 + 1
    assert all(sample["sampling_seconds"] > 0 for sample in samples)


def test_bytes_of_the_network_are_counted_by_interface_and_without_loopback():
    before, kernel = network_bytes(), psutil.net_io_counters(pernic=True)
    assert before.keys() == kernel.keys() - {"lo"}
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        with accepted:
            client.sendall(bytes(10**6))
    assert all(network_bytes()[name] - sent < 10**6 for name, sent in before.items())


def test_joules_are_of_packages_and_continue_when_a_counter_begins_again(tmp_path):
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 262_143_000_000)
    zone(tmp_path, "intel-rapl:0:0", "core", 5)
    zone(tmp_path, "intel-rapl:1", "psys", 5)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 5)
    energy = CpuEnergy(tmp_path)
    assert energy.joules() == {"package-0": 0.0}
    counter.write_text("262143328850")
    assert energy.joules()["package-0"] == pytest.approx(0.32885)
    counter.write_text("1000000")
    assert energy.joules()["package-0"] == pytest.approx(1.32885)
    assert energy.obstacle == ""


def test_a_counter_that_disappears_is_missing_and_not_zero(tmp_path):
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 1)
    energy = CpuEnergy(tmp_path)
    counter.unlink()
    assert energy.joules() == {}


def test_no_counter_and_one_that_only_root_reads_are_said(tmp_path, monkeypatch, snapshot):
    assert CpuEnergy(tmp_path).obstacle == snapshot
    zone(tmp_path, "intel-rapl:0", "package-0", 1)

    def refuse(self: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cpu_energy._Counter, "_read", refuse)
    assert CpuEnergy(tmp_path).obstacle == snapshot
