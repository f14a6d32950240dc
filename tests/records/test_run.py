import json
import re
from dataclasses import replace

import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.records.run import DuplicateRuns, read_run
from dlperf_study.study.job import RunStatus
from tests.evidence_factory import Recipe, change, configuration, rank_lines, run_json, write_lines, write_run

ASKED = configuration(devices_per_node=2)
RECORD = run_json(ASKED, 1, Recipe())
#: The windows of transfers with their bytes: from 4 KiB to all gradients, each 5.6 times the one before.
COMMUNICATIONS = {f"communication_{size}": size for size in (4096, 22896, 128000, 715540)} | {
    "communication": 4_000_000
}
#: The lines of a log: the rank, the windows, of which the fourth is training, and the end.
TRAINING, AFTER, PART, COMMUNICATION_ALONE, END = 3, 4, 5, 9, 10


@pytest.fixture
def paths(tmp_path):
    return write_run(StudyPaths(tmp_path), ASKED, 1)


def lines(rank=0, asked=ASKED):
    return rank_lines(asked, rank, 1, Recipe())


def test_a_complete_run_is_read_and_only_its_exchange_has_bytes(paths):
    run = read_run(paths)
    assert (run.configuration_id, run.repetition, run.status) == (ASKED.configuration_id, 1, RunStatus.COMPLETED)
    assert [log.rank for log in run.ranks] == [0, 1]
    computation = ["computation_before", "training", "computation_after"]
    assert list(run.ranks[0].windows) == ["warmup", *computation, *COMMUNICATIONS]
    windows = read_run(paths).ranks[0].windows
    assert {name: window.bytes for name, window in windows.items() if window.bytes} == COMMUNICATIONS


def test_a_record_of_an_older_format_is_refused_as_that_and_not_for_what_it_lacks(paths, refused):
    record = json.loads(paths.run_file.read_text())
    for key in ("order", "round", "position", "diagnostics"):
        del record[key]
    paths.run_file.write_text(json.dumps(record | {"format": 1, "complaints": []}))
    with refused(RecordError):
        read_run(paths)


@pytest.mark.parametrize("key", ["of_a_later_version", "worker_code", "cache_key_definition"])
def test_a_record_of_another_version_counts_with_what_only_that_version_knows(paths, key):
    change(paths, **{key: 3 if key == "cache_key_definition" else "later"})
    assert read_run(paths).completed
    assert key in read_run(paths).facts


def test_a_parameter_of_a_later_version_is_named_as_such_and_one_of_this_version_has_its_default(paths):
    record = json.loads(paths.run_file.read_text())
    earlier = {name: value for name, value in record["configuration"].items() if name != "input_only_steps"}
    change(paths, configuration=earlier)
    assert read_run(paths).completed
    change(paths, configuration=earlier | {"sharding": "full"})
    with pytest.raises(RecordError, match=r"unknown sharding.*a later version"):
        read_run(paths)


def test_a_parameter_of_an_earlier_version_is_left_out(paths):
    record = json.loads(paths.run_file.read_text())
    configuration_id = read_run(paths).configuration_id
    change(paths, configuration=record["configuration"] | {"trace_steps": 4})
    run = read_run(paths)
    assert (run.completed, run.configuration_id) == (True, configuration_id)


def test_a_run_is_held_to_the_windows_of_its_repetition(tmp_path, snapshot):
    """A run that trains alone has no further window, and one that is broken down lacks none."""
    paths, repeated = StudyPaths(tmp_path), configuration(devices_per_node=2, repetitions=6, breakdown_from=2)
    assert repeated.configuration_id == ASKED.configuration_id
    alone, broken_down = (write_run(paths, repeated, repetition) for repetition in (1, 2))
    assert list(read_run(alone).ranks[0].windows) == ["warmup", "training"]
    computation = ["computation_before", "training", "computation_after"]
    assert list(read_run(broken_down).ranks[0].windows) == ["warmup", *computation, *COMMUNICATIONS]
    for rank in (0, 1):
        write_lines(alone.rank_log(rank), rank_lines(ASKED, rank, 1, Recipe()))
    assert read_run(alone).reason == snapshot


def test_a_completed_run_without_the_log_of_a_rank_has_failed(paths):
    paths.rank_log(1).unlink()
    run = read_run(paths)
    assert (run.status, run.ranks) == (RunStatus.FAILED, ())
    assert "rank-00001.jsonl: is missing" in run.reason


def test_a_log_of_another_run_is_not_counted(paths, snapshot):
    write_lines(paths.rank_log(1), lines(rank=1, asked=configuration(devices_per_node=2, measured_steps=19)))
    assert read_run(paths).reason == snapshot


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"order": "random"}, "order is 'random'; the choices are 'interleaved', 'sequential' or 'by hand'"),
        ({"round": 0}, "round is 0; it must be at least 1"),
        ({"position": None}, "order is 'interleaved', but round is 1 and position None"),
        ({"order": "sequential"}, "order is 'sequential', but round is 1 and position 1"),
        ({"status": "fine"}, "status is 'fine'; the choices are 'completed', 'failed'"),
        ({"load": None}, "load is null, which is not a mapping"),
        ({"load": {}}, "load.waited_seconds is missing; 3 more of its values are wrong"),
        ({"repetition": 2}, "is run 2 of"),
        ({"configuration_id": "another"}, "is run 1 of another"),
        ({"configuration": {}}, "missing study"),
        ({"configuration": ASKED.as_dict() | {"seed": 9}}, "but its parameters make it paddle_collective-"),
        ({"diagnostics": [{"subject": "x"}]}, r"diagnostics\[0\].message is missing"),
        ({"started": "yesterday"}, "started is 'yesterday'; it must be a time as in 2024"),
        ({"started": "2024-05-01T10:00:00"}, "started is '2024-05-01T10:00:00'; it must have a time zone"),
        (
            {"started": "2999-01-01T00:00:00+00:00"},
            "started is '2999-.*'; it must be after 2000-01-01 and not in the future",
        ),
        ({"started": None}, "started is null, but the run completed"),
        ({"seconds": -3.0}, "seconds is -3.0; it must be at least 0"),
        ({"repetition": True}, "repetition is true, which is not an integer"),
        ({"repetition": 10**30}, "repetition is 10+; it must be at most"),
        (
            {"configuration": ASKED.as_dict() | {"repetitions": 10**400}},
            "repetitions is 10+, which is not a number up to",
        ),
        ({"reason": "\ud800"}, r"reason is '\\ud800', which is not text"),
        ({"nodes": [{"name": "a", "address": 5}]}, r"nodes\[0\].address is 5, which is not a string"),
        ({"exit_codes": None}, "exit_codes is null"),
        ({"environment": {"hardware": 5}}, r"run\.json: environment"),
        ({"load": RECORD["load"] | {"busy_cores_during": -0.5}}, "busy_cores_during is -0.5; it must be at least 0"),
        ({"cluster": RECORD["cluster"] | {"device_peak_flops": 0}}, "peak_flops is 0; it must be at least 1000000"),
        ({"cluster": RECORD["cluster"] | {"device_peak_flops": float("inf")}}, "peak_flops is inf, which is not a"),
    ],
)
def test_a_run_file_that_contradicts_itself_is_refused(paths, values, message):
    change(paths, **values)
    with pytest.raises(RecordError, match=message):
        read_run(paths)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "\x00"])
def test_a_missing_or_unreadable_run_file_is_refused(paths, text):
    paths.run_file.unlink()
    if text is not None:
        paths.run_file.write_text(text)
    with pytest.raises(RecordError, match=r"run\.json: is missing" if text is None else r"run\.json"):
        read_run(paths)


@pytest.mark.parametrize(
    ("line", "values", "message"),
    [
        (COMMUNICATION_ALONE, {"bytes": 40_000_000}, "transferred 40000000 bytes, but the gradients have 4000000"),
        (PART, {"bytes": 8192}, "window communication_4096 transferred 8192 bytes, so that is not its name"),
        (
            PART,
            {"steps": 1, "seconds": 0.01, "step_seconds": [0.01]},
            "communication_4096 has 1 steps; requested were 10",
        ),
        (TRAINING, {"seconds": float("inf")}, "line 4: seconds is inf, which is not a finite number"),
        (TRAINING, {"losses": [2.0] * 19 + [float("nan")]}, "not finite (rank 1: loss 19 of window training is nan)"),
        (AFTER, {"losses": [float("-inf")] * 5}, "not finite (rank 1: loss 0 of window computation_after is -inf)"),
        (AFTER, {"steps": 1, "seconds": 0.08, "step_seconds": [0.08], "losses": [2.0]}, "has 1 steps; requested were"),
        (0, {"host": "host-b"}, "the ranks of node 0 ran on host-a, host-b: a node is one host"),
        (0, {"node": 1, "local_rank": 0}, "is local rank 0 of node 1; rank 1 is local rank 1 of node 0"),
        (0, {"device": "gpu"}, "trained on cpu, gpu, but the cluster file has device: cpu"),
        (0, {"gradient_bytes": 8, "communication": "push_pull"}, "8"),
        (0, {"library": "torch"}, "different values of library (paddle, torch)"),
        (0, {"library_version": "2.0"}, "rank 1 trained with paddle 2.0, but run.json says 3.0.0"),
        (0, {"parameters": 5}, "different values of parameters (1000000, 5)"),
        (END, {"parameter_checksum": "other"}, "ended with different parameters"),
        (END, {"parameter_checksum": "initial"}, "nothing was trained"),
    ],
)
def test_a_rank_that_contradicts_its_run_is_not_counted(paths, line, values, message):
    damaged = lines(rank=1)
    damaged[line] = {**damaged[line], **values}
    write_lines(paths.rank_log(1), damaged)
    run = read_run(paths)
    assert run.status is RunStatus.FAILED
    assert message in run.reason


BY_TIME = {"devices_per_node": 2, "max_warmup_seconds": 1.0, "measured_seconds": 0.5}


def with_steps(rank, name, steps, **values):
    """Return the lines of a rank whose window of that name has other steps than the least that are requested."""
    changed = lines(rank, configuration(**BY_TIME))
    for line in changed:
        if line.get("name") == name:
            line |= {"steps": steps, "seconds": 0.1 * steps, "step_seconds": [0.1] * steps, "losses": [2.0] * steps}
            line |= values
    return changed


@pytest.mark.parametrize(("name", "steps"), [("warmup", 12), ("training", 57)])
def test_a_window_by_time_has_more_steps_and_all_of_them_are_kept(tmp_path, name, steps):
    paths = write_run(StudyPaths(tmp_path), configuration(**BY_TIME), 1)
    for rank in range(2):
        write_lines(paths.rank_log(rank), with_steps(rank, name, steps))
    run = read_run(paths)
    assert run.completed, run.reason
    assert [window.step_seconds.size for window in run.windows(name)] == [steps, steps]


@pytest.mark.parametrize(
    ("name", "steps", "values", "message"),
    [
        ("warmup", 4, {}, "window warmup has 4 steps; requested were at least 5"),
        ("training", 19, {}, "window training has 19 steps; requested were at least 20"),
        ("training", 21, {}, "the ranks did not agree on the steps of window training (20, 21)"),
        ("warmup", 6, {}, "the ranks did not agree on the steps of window warmup (5 steady, 6 steady)"),
        ("warmup", 5, {"ended_by": "limit"}, "did not agree on the steps of window warmup (5 steady, 5 limit)"),
    ],
)
def test_ranks_agree_on_the_steps_of_a_window_by_time(tmp_path, name, steps, values, message):
    paths = write_run(StudyPaths(tmp_path), configuration(**BY_TIME), 1)
    write_lines(paths.rank_log(1), with_steps(1, name, steps, **values))
    assert message in read_run(paths).reason


def test_a_window_of_steps_has_no_more_than_requested(tmp_path, snapshot):
    fixed_steps = configuration(max_warmup_seconds=0.0)
    paths = write_run(StudyPaths(tmp_path), fixed_steps, 1)
    changed = rank_lines(fixed_steps, 0, 1, Recipe())
    changed[1] |= {"steps": 6, "seconds": 0.6, "step_seconds": [0.1] * 6, "losses": [2.0] * 6}
    write_lines(paths.rank_log(0), changed)
    assert read_run(paths).reason == snapshot


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ranks_seen": [0]}, "expects 2 ranks and saw [0], but has the logs of ranks [0, 1]"),
        ({"ranks_expected": 3}, "expects 3 ranks"),
        ({"exit_codes": {"trainer-0": 0, "trainer-1": 1}}, "exit codes of trainers are not 0 (trainer-1: 1)"),
    ],
)
def test_a_completed_run_whose_record_says_otherwise_is_not_counted(paths, values, message):
    change(paths, **values)
    run = read_run(paths)
    assert (run.status, run.ranks) == (RunStatus.FAILED, ())
    assert message in run.reason


@pytest.mark.parametrize("code", [None, 0, -9])
def test_how_a_server_ended_does_not_matter(paths, code):
    change(paths, exit_codes={"server-0": code, "trainer-0": 0, "trainer-1": 0})
    assert read_run(paths).completed


def test_the_log_of_another_rank_or_of_one_too_many_is_not_counted(paths, snapshot):
    paths.rank_log(2).write_text(paths.rank_log(1).read_text())
    assert read_run(paths).reason == snapshot
    write_lines(paths.rank_log(1), lines(rank=0))
    assert read_run(paths).reason == snapshot


def test_two_nodes_are_two_hosts_or_one(tmp_path):
    """A cluster's nodes may share a machine; a node's ranks may not be on two."""
    two_nodes = configuration(nodes=2)
    paths = write_run(StudyPaths(tmp_path), two_nodes, 1)
    assert read_run(paths).completed
    write_lines(paths.rank_log(1), rank_lines(two_nodes, 1, 1, Recipe(host="host-b")))
    assert read_run(paths).completed


def test_nodes_of_different_speed_are_diagnosed_whatever_the_record_concludes(paths):
    hardware = {"cpu_model": "Constructed CPU", "cores": 64}
    nodes = [{"name": "h1", "hardware": hardware}, {"name": "h2", "hardware": hardware | {"cpu_model": "Slow CPU"}}]
    change(paths, nodes=nodes)
    message = "cpu_model is Slow CPU on h2, but Constructed CPU on h1"
    assert [diagnostic.message for diagnostic in read_run(paths).diagnostics] == [message]
    change(paths, diagnostics=[{"subject": "nodes", "message": message}])
    assert len(read_run(paths).diagnostics) == 1


def test_the_environment_has_the_hardware_of_the_first_node(paths):
    change(paths, nodes=[{"name": "h1", "hardware": {"cpu_model": "Slow CPU", "cores": 64}}])
    message = "cpu_model is Constructed CPU in environment, but Slow CPU in nodes[0]: run.json was changed"
    assert [diagnostic.message for diagnostic in read_run(paths).diagnostics] == [message]


@pytest.mark.parametrize(
    ("parameters", "alter", "message"),
    [
        ({}, {"communication": "none"}, "communication is none in a run of 2 ranks and 0 servers"),
        (
            {"devices_per_node": 1, "parameter_servers": 1},
            {"communication": "none"},
            "communication is none in a run of 1 rank and 1",
        ),
        ({"devices_per_node": 1}, {"communication": "all_reduce"}, "communication is all_reduce in a run of 1 rank"),
        ({"strategy": "all_reduce"}, {"communication": "push_pull"}, "push_pull, but the strategy is all_reduce"),
        (
            {"strategy": "sync", "parameter_servers": 1},
            {"communication": "push_pull"},
            "push_pull, but the strategy is sync",
        ),
        ({}, {"gradient_bytes": 2_000_000}, "2000000, which doesn't fit 1000000 parameters of 4 bytes: 4000000"),
        ({"gradient_compression": "fp16"}, {"gradient_bytes": 4_000_000}, "doesn't fit 1000000 parameters of 2 bytes"),
        ({"classifier": "sharded"}, {"gradient_bytes": 4_000_004}, "doesn't fit"),
        ({"classifier": "sharded"}, {"gradient_bytes": 800_000}, ""),
        ({"gradient_compression": "fp16"}, {}, ""),
    ],
)
def test_what_is_exchanged_fits_what_was_asked(tmp_path, parameters, alter, message):
    two_devices = configuration(**({"devices_per_node": 2} | parameters))
    paths = write_run(StudyPaths(tmp_path), two_devices, 1)
    for rank in range(two_devices.world_size):
        changed = lines(rank, two_devices)
        changed[0] |= alter
        for line in changed:
            if line.get("name") == "communication":
                line["bytes"] = changed[0]["gradient_bytes"]
        write_lines(paths.rank_log(rank), changed)
    run = read_run(paths)
    assert run.completed is not bool(message)
    assert message in run.reason


@pytest.mark.parametrize(
    ("controller_code", "rank_codes", "reason"),
    [
        ("c0de", ("c0de", "c0de"), ""),
        ("c0de", ("c0de", "0ther"), "the ranks have different values of code (c0de, 0ther)"),
        ("c0de", ("0ther", "0ther"), "the ranks ran other benchmark code than the controller of the study"),
    ],
)
def test_the_ranks_and_the_driver_ran_the_same_code(paths, controller_code, rank_codes, reason):
    for rank, code in enumerate(rank_codes):
        changed = lines(rank)
        changed[0]["code"] = code
        write_lines(paths.rank_log(rank), changed)
    change(paths, code=controller_code)
    run = read_run(paths)
    assert run.completed == (not reason)
    assert reason in run.reason


@pytest.mark.parametrize(("share", "is_possible"), [(1.0, True), (1.009, True), (1.011, False)])
def test_windows_last_at_most_as_long_as_their_run_and_what_clocks_differ_by(paths, share, is_possible):
    longest = max(sum(window.seconds for window in log.windows.values()) for log in read_run(paths).ranks)
    change(paths, seconds=longest / share)
    run = read_run(paths)
    assert run.completed == is_possible
    assert is_possible or re.search(r"the windows of rank \d last 3\.5\d+ s, but the run 3\.\d+ s", run.reason)
    change(paths, seconds=None)
    assert read_run(paths).completed


def test_a_run_by_the_same_processes_is_a_copy_and_not_counted(tmp_path, snapshot):
    first, second = (read_run(write_run(StudyPaths(tmp_path), ASKED, repetition)) for repetition in (1, 2))
    duplicates = DuplicateRuns()
    assert duplicates.checked(first) is first
    assert duplicates.checked(second) is second
    copy = duplicates.checked(replace(first, repetition=3))
    assert (copy.completed, copy.ranks) == (False, ())
    assert copy.reason == snapshot
    # One log that is a copy is enough.
    duplicates = DuplicateRuns()
    duplicates.checked(first)
    copy = duplicates.checked(replace(second, ranks=(second.ranks[0], first.ranks[1])))
    assert not copy.completed
    assert copy.reason.startswith("its rank 1 is the same process")


def test_a_folder_is_a_run_by_one_name_only(tmp_path):
    """Else a copy named 01 would be the first repetition once more."""
    paths = StudyPaths(tmp_path).configuration(ASKED.configuration_id)
    for name in ("1", "01", "2", "0", "001"):
        (paths.folder / "runs" / name).mkdir(parents=True)
    assert [run.folder.name for run in paths.runs()] == ["1", "2"]
    assert [folder.name for folder in paths.misnamed_runs()] == ["0", "001", "01"]
