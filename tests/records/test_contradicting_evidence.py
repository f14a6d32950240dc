"""Evidence that contradicts itself does not count, and what was changed after a run is told from what it left."""

import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import RunPaths, StudyPaths
from dlperf_study.records import rank_agreement
from dlperf_study.records.lines import TRAINING, WARMUP
from dlperf_study.records.run import read_run
from dlperf_study.records.run_record import write
from dlperf_study.study.job import RunStatus
from tests.evidence_factory import FLOPS_PER_SAMPLE, Recipe, change, configuration, edit_log, write_run
from tests.telemetry_factory import gpu, sample, with_telemetry

ASKED = configuration(devices_per_node=2)
SECOND = 10**9

Facts = dict[str, Any]
Edit = Callable[[Facts], Any]


@pytest.fixture
def paths(tmp_path):
    """Return a run with telemetry and with the times of its windows, whose files agree."""
    paths = write_run(StudyPaths(tmp_path), ASKED, 1)
    paths.configuration_file.write_text(json.dumps(ASKED.as_dict(), indent=1))
    hardware = {"host": "host-a", "cpu_model": "Constructed CPU", "cores": 64}
    change(paths, nodes=[{"name": "", "hardware": hardware}])
    assert with_telemetry(paths, sample(0, [gpu()]), [sample(1, [gpu()])]).reason == ""
    return paths


def edit_logs(paths: RunPaths, edit: Edit, line_number: int) -> None:
    """Change a line of the logs of all ranks: a program that writes wrong lines does so on each."""
    for file in paths.folder.glob("rank-*.jsonl"):
        edit_log(file, lambda lines: edit(lines[line_number]))


def reason(paths: RunPaths) -> str:
    run = read_run(paths)
    assert (run.status, run.ranks) == (RunStatus.FAILED, ())
    return run.reason


def set_value(name: str, value: Any) -> Edit:
    return lambda line: line.update({name: value})


def shift(seconds: float) -> Edit:
    return lambda line: line.update(begin_ns=line["begin_ns"] + round(seconds * SECOND))


@pytest.mark.parametrize(
    ("edit", "line_number", "message"),
    [
        (shift(-0.5), 3, "window training of rank 0 begins before window computation_before ends"),
        (shift(1000), -2, r"window communication ends 1\d\d\d s after rank 0 had begun, of the run's 600 s"),
        (set_value("begin_ns", SECOND // 2), 1, "window warmup of rank 0 begins 0.5 s before rank 0 had begun"),
        (set_value("host", "host-b"), 0, "rank 0 ran on host-b, but its node is host-a"),
        (set_value("library_version", "3.0.1+cpu"), 0, "rank 0 trained with paddle 3.0.1.cpu, but run.json says 3.0.0"),
        (set_value("flops_per_sample", 2e15), 0, r"rank 0 would compute .*e\+1\d FLOP/s: its flops_per_sample"),
    ],
)
def test_logs_that_contradict_themselves_or_the_record_do_not_count(paths, edit, line_number, message):
    edit_logs(paths, edit, line_number)
    assert re.search(message, reason(paths))


@pytest.mark.parametrize(("device", "most"), [("cpu", 64 * 1e13), ("gpu", 5e16)])
@pytest.mark.parametrize(("share", "counts"), [(0.9, True), (1.1, False)])
def test_a_rank_computes_at_most_what_its_cores_or_its_one_gpu_can(tmp_path, device, most, share, counts):
    """64 cores of a node, or one GPU, however many cores its node has."""
    paths = write_run(StudyPaths(tmp_path), ASKED, 1, Recipe(device=device, cores=64))
    seconds = read_run(paths).ranks[0].windows[TRAINING].mean_seconds
    edit_logs(paths, set_value("flops_per_sample", share * most * seconds / ASKED.batch_per_device), 0)
    assert read_run(paths).completed == counts


def test_windows_count_in_the_order_in_which_they_are_measured_only(paths, snapshot):
    """Each with its own time or without: a log of an earlier version has no times."""

    def swap_windows(lines):
        for window in lines:
            window.pop("begin_ns", None)
        lines[2], lines[3] = lines[3], lines[2]

    for file in paths.folder.glob("rank-*.jsonl"):
        edit_log(file, swap_windows)
    paths.telemetry(0).unlink()
    assert reason(paths) == snapshot


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"exit_codes": {"server-0": None}}, "not every trainer has an exit code (those of none)"),
        ({"exit_codes": {"rank-0": 0}}, "not every trainer has an exit code (those of rank-0)"),
        ({"exit_codes": {"rank-0": 0, "rank-1": None}}, "exit codes of trainers are not 0 (rank-1: None)"),
        ({"seconds": 1e9}, "it lasted 1e+09 s, longer than the timeout of 600 s and 300 s to start and to end"),
        ({"reason": "rank-1 exited with code 1"}, "status is completed in run.json, but reason is 'rank-1 exited"),
        ({"round": 7}, "round is 7 in run.json, but round 1 measures repetition 1"),
    ],
)
def test_a_record_that_contradicts_itself_does_not_count(paths, values, message):
    change(paths, **values)
    assert message in reason(paths)


def test_the_configuration_that_the_ranks_read_is_the_recorded_one(paths, snapshot):
    paths.configuration_file.write_text(json.dumps(ASKED.as_dict() | {"batch_per_device": 999}))
    assert reason(paths) == snapshot


@pytest.mark.parametrize("name", ["batch_per_device", "new"])
@pytest.mark.parametrize("is_of_this_version", [True, False])
def test_a_parameter_is_missing_in_neither_file_of_one_version(paths, name, is_of_this_version):
    """An earlier version may have left no digest, and not have written all parameters."""
    requested = ASKED.as_dict() | {"new": 1}
    if name != "new":
        requested = {key: value for key, value in ASKED.as_dict().items() if key != name}
    paths.configuration_file.write_text(json.dumps(requested))
    if is_of_this_version:
        write(json.loads(paths.run_file.read_text()), paths)
        missing_in = "run.json" if name == "new" else "configuration.json"
        assert f"{name} is missing in {missing_in}" in reason(paths)
    else:
        assert read_run(paths).completed


def recorded(paths: RunPaths) -> RunPaths:
    """Return a run whose record was written as a controller does."""
    write(json.loads(paths.run_file.read_text()), paths)
    assert read_run(paths).completed
    return paths


def test_one_digit_of_any_file_tells_that_it_was_changed(paths):
    files = {file.name: file for file in recorded(paths).evidence_files}
    assert sorted(files) == ["configuration.json", "rank-00000.jsonl", "rank-00001.jsonl", "telemetry-00000.jsonl"]
    for name, file in files.items():
        left = file.read_text()
        *_, last_digit = re.finditer(r"\d", left)
        other_digit = str((int(last_digit[0]) + 1) % 10)
        file.write_text(left[: last_digit.start()] + other_digit + left[last_digit.end() :])
        assert name in reason(paths)
        file.unlink()
        assert name in reason(paths)
        file.write_text(left)
    assert read_run(paths).completed


@pytest.mark.parametrize("changes", [{"seconds": 599.0}, {"files": {}}, {"new": 1}], ids=["seconds", "files", "new"])
def test_a_record_that_was_edited_is_told_from_the_one_that_was_left(paths, changes, refused):
    change(recorded(paths), **changes)
    with refused(RecordError):
        read_run(paths)


@pytest.mark.parametrize(("seconds_ahead", "counts"), [(30, True), (90, False)])
def test_clocks_may_be_a_minute_apart_and_no_more(paths, seconds_ahead, counts):
    """A run whose end is still to come was recorded by a clock that is ahead, or was edited."""
    started = datetime.now(UTC) - timedelta(seconds=700)
    change(paths, started=started.isoformat(), seconds=700.0 + seconds_ahead)
    assert read_run(paths).completed == counts
    assert counts or "which is not over yet: set the clock" in read_run(paths).reason


@pytest.mark.parametrize(("seconds", "counts"), [(900, True), (901, False)])
def test_a_run_lasts_as_long_as_it_may_however_long_ago_it_was(paths, seconds, counts):
    """The processes of a run are ended after its timeout."""
    assert ASKED.timeout_seconds == 600
    change(paths, started="2001-01-01T00:00:00+00:00", seconds=float(seconds))
    assert read_run(paths).completed == counts


@pytest.mark.parametrize(("factor", "counts"), [(1, True), (1 + 1e-12, True), (1.001, False), (1000, False)])
def test_the_work_of_a_sample_is_that_of_the_model_however_slow_the_machine(paths, factor, counts):
    """A thousand times the work is possible where a step takes long."""
    change(paths, flops_per_sample=FLOPS_PER_SAMPLE)
    edit_logs(paths, set_value("flops_per_sample", FLOPS_PER_SAMPLE * factor), 0)
    run = read_run(paths)
    assert run.completed == counts
    assert counts or "flops_per_sample of rank 0 is" in run.reason


@pytest.mark.parametrize("name", ["a\0b", "\udce9", "", "..", "/dev/zero", "x" * 300])
def test_a_record_that_names_a_file_that_can_not_be_is_one_reason(paths, name):
    """An edited record may have lost its own digest, and name anything."""
    facts = json.loads(recorded(paths).run_file.read_text())
    del facts["digest"]
    facts["files"] |= {name: "0" * 64}
    paths.run_file.write_text(json.dumps(facts))
    if name == "\udce9":
        with pytest.raises(RecordError, match=r"run\.json: .*not text"):
            read_run(paths)
    else:
        assert "name" in reason(paths) or "was there when the run ended" in reason(paths)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["device", "pipe"])
@pytest.mark.parametrize("name", ["run.json", "configuration.json", "rank-00001.jsonl", "telemetry-00000.jsonl"])
def test_a_file_of_evidence_that_has_no_end_is_not_read(paths, name, kind, refused, snapshot):
    file = recorded(paths).folder / name
    file.unlink()
    if kind == "device":
        file.symlink_to("/dev/zero")
    else:
        os.mkfifo(file)
    if name == "run.json":
        with refused(RecordError):
            read_run(paths)
    else:
        assert reason(paths) == snapshot


@pytest.mark.parametrize("scope", ["rank", "job"])
def test_a_program_may_run_in_a_container_and_its_log_be_read_by_the_driver(paths, scope):
    """Then the host of its log is that of the container, or of the controller, and no node's."""
    log = {"recorded_by": "log" if scope == "job" else "recorder", "scope": scope, "host": "a-container"}
    edit_logs(paths, lambda line: line.update(log), 0)
    if scope == "job":
        paths.rank_log(1).unlink()
        change(paths, ranks_seen=[0])
    assert read_run(paths).reason == ""


@pytest.mark.parametrize(
    ("printed", "package", "counts"),
    [
        ("2.4.2", "2.4.2.post112", True),
        ("2.13.0+cpu", "2.13.0", True),
        ("2.13.0", "2.13.0+cu126", True),
        ("0.28.1 with torch 2.13.0", "0.28.1", True),
        ("2.4.2", "2.4.20", False),
        ("", "2.4.2", False),
    ],
)
def test_a_library_has_its_version_in_any_build(paths, printed, package, counts):
    environment = json.loads(paths.run_file.read_text())["environment"]
    change(paths, environment=environment | {"software": {"paddlepaddle-gpu": package}})
    edit_logs(paths, set_value("library_version", printed), 0)
    assert read_run(paths).completed == counts


def test_a_log_without_a_window_is_no_log_of_a_run(paths):
    def remove_warmup(lines: list[Facts]) -> None:
        lines[:] = [line for line in lines if line.get("name") != WARMUP]
        lines[-1]["windows"] -= 1

    for file in paths.folder.glob("rank-*.jsonl"):
        edit_log(file, remove_warmup)
    assert reason(paths).endswith("rank-00000.jsonl: has no window warmup")


def test_what_nobody_expected_of_a_run_is_an_error_of_that_run_alone(paths, monkeypatch):
    def fail(*arguments: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(rank_agreement, "complete_logs", fail)
    with pytest.raises(RecordError, match=r"unexpected error \(KeyError: 'surprise', in line \d+ of test_"):
        read_run(paths)


def copy_times(paths: RunPaths) -> None:
    first, second = sorted(paths.folder.glob("rank-*.jsonl"))
    times: list[Facts] = []
    edit_log(first, times.extend)

    def take(lines: list[Facts]) -> None:
        for line, other in zip(lines, times, strict=True):
            if line["kind"] == "window":
                line |= {name: other[name] for name in ("step_seconds", "seconds", "input_seconds") if name in other}

    edit_log(second, take)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (copy_times, "ranks 0 and 1 have the same times in each step: one log is a copy"),
        (
            lambda paths: edit_second(paths, lambda lines: lines[0].update(pid=4000, wall_anchor=anchor(paths))),
            "one process",
        ),
        (lambda paths: edit_second(paths, begin_later), "wait for each other in each step, but began"),
        (lambda paths: edit_second(paths, lambda lines: lines[0].update(cuda="12.9")), "different values of cuda"),
        (lambda paths: edit_logs(paths, lambda line: line.update(initial_checksum=""), -1), "has no checksum"),
        (
            lambda paths: edit_second(paths, lambda lines: lines[-1].update(initial_checksum="x")),
            "began with different",
        ),
        (lambda paths: edit_second(paths, lose_losses), "all losses of rank 1 are 0"),
        (lambda paths: change_cluster(paths, devices_per_node=1), "has devices_per_node 2, but the cluster 1"),
        (lambda paths: change_cluster(paths, nodes=0), "has nodes 1, but the cluster 0"),
    ],
)
def test_what_ranks_that_trained_together_can_not_have_left(paths, damage, message):
    damage(paths)
    assert message in reason(paths)


def test_a_record_of_this_version_without_its_digest_was_changed(paths):
    change(paths, cache_key_definition=1, cache_key_parts={}, code_modules={})
    with pytest.raises(RecordError, match="has no digest"):
        read_run(paths)


@pytest.mark.parametrize(
    ("change_of_first", "message"),
    [
        (lambda line: line.update(host="host-b"), "is of host-b, but rank 0 ran on host-a"),
        (lambda line: line.update(wall_anchor={"unix_ns": 0, "clock_ns": 0}), "at another time than its run"),
    ],
)
def test_telemetry_of_another_host_or_time_is_not_that_of_the_run(paths, change_of_first, message):
    edit_log(paths.telemetry(0), lambda lines: change_of_first(lines[0]))
    run = read_run(paths)
    assert run.completed
    assert run.telemetry == ()
    assert any(message in diagnostic.message for diagnostic in run.diagnostics)


def edit_second(paths: RunPaths, edit: Callable[[list[Facts]], object]) -> None:
    edit_log(sorted(paths.folder.glob("rank-*.jsonl"))[1], edit)


def anchor(paths: RunPaths) -> Any:
    return json.loads(sorted(paths.folder.glob("rank-*.jsonl"))[0].read_text().splitlines()[0])["wall_anchor"]


def begin_later(lines: list[Facts]) -> None:
    for line in lines:
        if "begin_ns" in line:
            line["begin_ns"] += 3 * SECOND


def lose_losses(lines: list[Facts]) -> None:
    for line in lines:
        if line.get("losses"):
            line["losses"] = [0.0] * len(line["losses"])


def change_cluster(paths: RunPaths, **values: object) -> None:
    change(paths, cluster=json.loads(paths.run_file.read_text())["cluster"] | values)
