"""What turns a run that ended well into one that does not count, and which words a bad end gets."""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dlperf_study.core.code_identity import MeasuringCode
from dlperf_study.core.paths import RunPaths, StudyPaths
from dlperf_study.execution.repetitions import controller_facts
from dlperf_study.machines.cluster import Cluster
from dlperf_study.records.run import read_run
from dlperf_study.records.run_record import RequestedRun, read, record, write
from dlperf_study.study.job import JobResult, RunStatus, Turn
from dlperf_study.training import models
from tests.evidence_factory import CODE, configuration, read_lines, write_lines, write_run

ASKED = configuration(devices_per_node=2)
BY_HAND = Turn()
NODE = {
    "node": 0,
    "name": "",
    "hardware": {"host": "host-a", "cores": 2},
    "software": {"python": "3.11"},
    "variables": {},
    "load": {"waited_seconds": 0.0, "busy_cores_before": 0.1, "orphans_ended": ["1: sleep"]},
}
WELL = JobResult(RunStatus.COMPLETED, "", 12.5, {"node-0": 0}, 0.2, started="2024-05-01T00:00:00+00:00", nodes=(NODE,))
BADLY = replace(
    WELL, status=RunStatus.FAILED, reason="node-0 exited with code 1", exit_codes={"node-0": 1}, failed_task="node-0"
)
Line = dict[str, Any]
NO_TEXT = os.fsdecode(b"caf\xe9")


@pytest.fixture
def run(tmp_path: Any) -> RunPaths:
    """A run with complete logs and no record yet."""
    paths = write_run(StudyPaths(tmp_path), ASKED, 1)
    paths.run_file.unlink()
    return paths


def recorded(run: RunPaths, result: JobResult = WELL, turn: Turn = BY_HAND) -> dict[str, Any]:
    cluster = Cluster("local", 1, 2, device="cpu", device_name="a device", launcher="local")
    requested = RequestedRun(ASKED, 1, "f" * 64, run, MeasuringCode(digest=CODE), turn=turn)
    return record(requested, result, controller_facts(cluster))


def change(run: RunPaths, kind: str, alter: Callable[[Line], Line], rank: int = 1) -> None:
    lines = read_lines(run.rank_log(rank))
    write_lines(run.rank_log(rank), [line | alter(line) if line["kind"] == kind else line for line in lines])


def test_a_rank_that_counts_other_work_than_its_model_is_no_run_that_counts(run):
    """The controller knows the model: so a program of a rank that counts wrongly is found on any machine."""
    cluster = Cluster("local", 1, 2, device="cpu", device_name="a device", launcher="local")
    requested = RequestedRun(ASKED, 1, "f" * 64, run, MeasuringCode(digest=CODE))
    controller = controller_facts(cluster, ASKED)
    by_formula = models.load("resnet50").flops(ASKED)
    assert controller.flops_per_sample == by_formula
    assert "flops_per_sample of rank 0 is 2e+09, but 2.4" in record(requested, WELL, controller)["reason"]
    for rank in range(2):
        change(run, "rank", lambda _: {"flops_per_sample": by_formula}, rank)
    facts = record(requested, WELL, controller)
    assert (facts["status"], facts["flops_per_sample"]) == (RunStatus.COMPLETED, by_formula)
    write(facts, run)
    assert read_run(run).completed


def test_what_is_written_is_what_is_read(run):
    by_hand = recorded(run)
    assert (by_hand["order"], by_hand["round"], by_hand["position"]) == ("by hand", None, None)
    assert "tail" not in by_hand
    write(recorded(run, turn=Turn("interleaved", 1, 4)), run)
    assert read_run(run).completed
    facts = read_run(run).facts
    assert (facts["seconds"], facts["ranks_seen"], facts["exit_codes"]) == (12.5, [0, 1], {"node-0": 0})
    assert (facts["order"], facts["round"], facts["position"]) == ("interleaved", 1, 4)


@pytest.mark.parametrize("wrong", [{"format": 0}, {"status": "fine"}, {"seconds": "12"}])
def test_a_record_that_is_not_valid_is_none(run, wrong):
    facts = recorded(run)
    write(facts, run)
    assert facts.items() <= read(run).items()
    write(facts | wrong, run)
    assert read(run) is None
    run.run_file.write_text("{")
    assert read(run) is None


def test_a_run_that_nobody_saw_start_is_told_with_its_reason(run):
    ended = JobResult(RunStatus.KILLED, "job 7: CANCELLED on h[1-2], and no word of this run", seconds=None)
    write(recorded(run, ended), run)
    read_back = read_run(run)
    assert (read_back.status, read_back.reason, read_back.facts["started"]) == (RunStatus.KILLED, ended.reason, None)


def test_the_environment_is_that_of_the_first_node_and_the_load_that_of_the_busiest(run):
    load = {"waited_seconds": 3.0, "busy_cores_before": 0.0, "orphans_ended": ["2: sleep"]}
    other = NODE | {"node": 1, "name": "h2", "hardware": {"host": "there"}, "load": load}
    facts = recorded(run, replace(WELL, nodes=(NODE, other)))
    assert facts["environment"]["hardware"] == {"host": "host-a", "cores": 2}
    assert [node["hardware"]["host"] for node in facts["nodes"]] == ["host-a", "there"]
    assert facts["load"] == {
        "waited_seconds": 3.0,
        "busy_cores_before": 0.1,
        "orphans_ended": ["1: sleep", "h2: 2: sleep"],
        "busy_cores_during": 0.2,
    }


def test_a_node_unlike_the_first_is_complained_about(run):
    other = NODE | {"node": 1, "name": "h2", "hardware": {"host": "there", "cores": 4}}
    facts = recorded(run, replace(WELL, nodes=(NODE | {"name": "h1"}, other, other | {"hardware": NODE["hardware"]})))
    assert facts["diagnostics"] == [{"subject": "nodes", "message": "cores is 4 on h2, but 2 on h1"}]
    write(facts, run)
    assert [diagnostic.subject for diagnostic in read_run(run).diagnostics] == ["nodes"]


@pytest.mark.parametrize("result", [WELL, BADLY])
def test_a_run_of_the_future_is_recorded_so_that_it_can_be_read(run, result):
    """The clock of its first node is an hour ahead."""
    started = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    facts = recorded(run, replace(result, started=started))
    assert (facts["status"], facts["started"]) == (RunStatus.FAILED, None)
    reason = f"it started at {started}, which is in the future here: set the clock of its first node"
    assert facts["reason"] == (reason if result is WELL else BADLY.reason)
    write(facts, run)
    assert read_run(run).status is RunStatus.FAILED


def test_what_no_node_said_is_not_made_up(run):
    facts = recorded(run, replace(BADLY, nodes=(), busy_cores=None))
    assert facts["environment"]["hardware"] == {}
    assert facts["load"]["waited_seconds"] is None
    named = NODE | {"hardware": {"host": "there", "cores": 2, "cpu_model": "X1"}}
    assert recorded(run, replace(WELL, nodes=(NODE, named)))["cluster"]["device_name"] == "a device"


def test_ranks_that_contradict_make_a_failure(run):
    assert recorded(run)["status"] == "completed"
    change(run, "window", lambda line: {"losses": [float("nan")] * len(line["losses"])})
    facts = recorded(run)
    assert facts["status"] == "failed"
    assert "warmup is nan): batch norm" in facts["reason"]


def test_out_of_memory_by_the_kernels_count_and_a_missing_log_make_a_failure(run):
    run.rank_log(1).unlink()
    facts = recorded(run)
    assert (facts["status"], facts["ranks_seen"], facts["ranks_expected"]) == ("failed", [0], 2)
    assert facts["reason"].endswith("rank-00001.jsonl: is missing")
    killed = JobResult(RunStatus.FAILED, "node-0 was ended by signal SIGKILL", 2.5, out_of_memory_kills=1)
    assert recorded(run, killed)["status"] == "out_of_memory"


@pytest.mark.parametrize("text", ["RuntimeError: ResourceExhaustedError: Out of memory error on GPU 0", "MemoryError"])
def test_out_of_memory_by_the_last_words(run, text):
    assert recorded(run, BADLY)["status"] == "failed"
    (run.folder / "node-0.log").write_text("LAUNCH INFO\n" + text + "\n")
    facts = recorded(run, BADLY)
    assert (facts["status"], facts["tail"]["node-0"][-1]) == ("out_of_memory", text)


def test_the_reason_and_the_tail_show_no_secret(run, monkeypatch):
    monkeypatch.setenv("SITE_TOKEN", "hunter2-of-the-driver")
    monkeypatch.setenv("NCCL_DEBUG", "INFORMATION")
    words = "OSError: no answer for hunter2-of-the-file, hunter2-of-the-driver, INFORMATION"
    (run.folder / "node-0.log").write_text(f"{words}\n")
    cluster = Cluster(
        *("local", 1, 2, "cpu", "a CPU", "local"),
        environment={"KEY": "hunter2-of-the-file"},
        pass_environment=("SITE_TOKEN",),
    )
    facts = record(RequestedRun(ASKED, 1, "f" * 64, run), BADLY, controller_facts(cluster))
    shown = "OSError: no answer for (not recorded), (not recorded), INFORMATION"
    assert facts["reason"] == f"node-0 exited with code 1: {shown}"
    assert facts["tail"]["node-0"] == [shown]


def test_a_name_that_is_no_text_makes_no_record_unreadable(run):
    """A variable, a process or a folder may have bytes that are not UTF-8; no reader of JSON takes Python's."""
    node = {**NODE, "variables": {"LANG": NO_TEXT}, "load": {**NODE["load"], "orphans_ended": [f"1: {NO_TEXT}"]}}
    write(recorded(run, replace(WELL, reason="", nodes=(node,))), run)
    facts = read_run(run).facts
    assert facts["environment"]["variables"] == {"LANG": "caf?"}
    assert facts["load"]["orphans_ended"] == ["1: caf?"]
    assert facts["status"] is RunStatus.COMPLETED
    assert read_run(run).completed


def test_the_tail_is_the_last_lines_of_every_log(run):
    (run.folder / "node-0.log").write_text("".join(f"{number}\n" for number in range(100)))
    (run.folder / "node-0-rank-0.log").write_bytes(b"\xff broken\n")
    assert recorded(run, BADLY)["tail"] == {
        "node-0": [str(number) for number in range(80, 100)],
        "node-0-rank-0": ["\ufffd broken"],
    }


@pytest.mark.parametrize(
    ("node", "name"),
    [
        (NODE, "a device"),
        (NODE | {"hardware": {"host": "host-a", "cores": 2, "cpu_model": "A CPU @ 2 GHz"}}, "A CPU @ 2 GHz"),
        (NODE | {"gpu_support": {"gpus": ["NVIDIA L4", "NVIDIA L4"]}}, "NVIDIA L4"),
    ],
)
def test_a_device_has_the_name_that_it_reports(run, node, name):
    assert recorded(run, replace(WELL, nodes=(node,)))["cluster"]["device_name"] == name


def test_a_run_is_completed_by_the_code_that_would_measure_it_now(run):
    requested = RequestedRun(ASKED, 1, "f" * 64, run)
    assert not requested.state().is_completed
    write(recorded(run, BADLY), run)
    assert not requested.state().is_completed
    write(recorded(run), run)
    assert requested.state().is_completed
    assert not replace(requested, cache_key="0" * 64).state().is_completed
    log = run.rank_log(1)
    log.write_text(log.read_text()[:-30])
    assert not requested.state().is_completed
    log.unlink()
    assert not requested.state().is_completed
