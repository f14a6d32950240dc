"""What turns a run that ended well into one that does not count, and which words a bad end gets."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from dlperf_study.execution.gate import Load
from dlperf_study.execution.record import Circumstances, record, write
from dlperf_study.launchers.base import Ending, ending_words
from dlperf_study.logs.evidence import read_run
from dlperf_study.paths import RunPaths, StudyPaths
from dlperf_study.study.cluster import Cluster
from dlperf_study.study.outcome import Outcome
from tests.evidence_factory import configuration, write_run

ASKED = configuration(devices_per_node=2)
LOAD = Load(waited_seconds=0.0, busy_cores_before=0.1, survivors_ended=())
WELL = Ending(Outcome.COMPLETED, "", 2.5, {"node-0": 0}, 0.2)
BADLY = Ending(Outcome.FAILED, "node-0 exited with code 1", 2.5, {"node-0": 1})
Line = dict[str, Any]


@pytest.fixture
def run(tmp_path: Any) -> RunPaths:
    """A run with whole logs and no record yet."""
    paths = write_run(StudyPaths(tmp_path), ASKED, 1)
    paths.run_file.unlink()
    return paths


def recorded(run: RunPaths, ending: Ending = WELL) -> dict[str, Any]:
    device = json.loads(run.rank_log(0).read_text().splitlines()[0])["device"]
    cluster = Cluster("local", 1, 2, device=device, device_name="a device")
    return record(Circumstances(ASKED, 1, "f" * 64, cluster, "2024-05-01T00:00:00+00:00"), LOAD, ending, run)


def change(run: RunPaths, kind: str, alter: Callable[[Line], Line], rank: int = 1) -> None:
    lines = [json.loads(line) for line in run.rank_log(rank).read_text().splitlines()]
    changed = [line | alter(line) if line["kind"] == kind else line for line in lines]
    run.rank_log(rank).write_text("".join(json.dumps(line) + "\n" for line in changed))


def test_what_is_written_is_what_is_read(run: RunPaths) -> None:
    facts = recorded(run)
    write(facts, run)
    found = read_run(run)
    assert found.completed
    assert (found.facts["seconds"], found.facts["ranks_seen"], found.facts["exit_codes"]) == (
        2.5,
        [0, 1],
        {"node-0": 0},
    )
    assert "tail" not in facts


@pytest.mark.parametrize(
    ("kind", "alter", "reason"),
    [
        ("rank", lambda line: {"device": "tpu"}, "but the cluster file says"),
        ("window", lambda line: {"losses": [float("nan")] * len(line["losses"])}, "a loss is not finite"),
        ("end", lambda line: {"parameter_checksum": line["initial_checksum"]}, "nothing was trained"),
        ("end", lambda line: {"parameter_checksum": "another"}, "their gradients were not exchanged"),
    ],
)
def test_ranks_that_contradict_make_a_failure(
    run: RunPaths, kind: str, alter: Callable[[Line], Line], reason: str
) -> None:
    assert recorded(run)["outcome"] == "completed"
    change(run, kind, alter)
    facts = recorded(run)
    assert facts["outcome"] == "failed"
    assert reason in facts["reason"]


def test_a_missing_log_makes_a_failure(run: RunPaths) -> None:
    run.rank_log(1).unlink()
    facts = recorded(run)
    assert (facts["outcome"], facts["ranks_seen"], facts["ranks_expected"]) == ("failed", [0], 2)
    assert facts["reason"].endswith("rank-00001.jsonl: is missing")


@pytest.mark.parametrize("text", ["RuntimeError: ResourceExhaustedError: Out of memory error on GPU 0", "MemoryError"])
def test_out_of_memory_by_the_last_words(run: RunPaths, text: str) -> None:
    assert recorded(run, BADLY)["outcome"] == "failed"
    (run.folder / "node-0.log").write_text("LAUNCH INFO\n" + text + "\n")
    facts = recorded(run, BADLY)
    assert (facts["outcome"], facts["tail"]["node-0"][-1]) == ("out_of_memory", text)


def test_out_of_memory_by_the_kernels_count(run: RunPaths) -> None:
    killed = Ending(Outcome.FAILED, "node-0 was ended by signal SIGKILL", 2.5, out_of_memory_kills=1)
    assert recorded(run, killed)["outcome"] == "out_of_memory"


def test_the_tail_is_the_last_lines_of_every_log(run: RunPaths) -> None:
    (run.folder / "node-0.log").write_text("".join(f"{number}\n" for number in range(100)))
    (run.folder / "node-0-rank-0.log").write_bytes(b"\xff broken\n")
    assert recorded(run, BADLY)["tail"] == {
        "node-0": [str(number) for number in range(80, 100)],
        "node-0-rank-0": ["\ufffd broken"],
    }


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (255, "exited with code 255"),
        (-9, "was ended by signal SIGKILL"),
        (137, "exited with code 137: a process of its own was ended by SIGKILL"),
        (245, "exited with code 245: a process of its own was ended by SIGSEGV"),
    ],
)
def test_how_a_process_ended_in_words(code: int, words: str) -> None:
    assert ending_words(code) == words
