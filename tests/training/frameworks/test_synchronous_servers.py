"""Synchronous servers: what trainers hold after each step, against one process that averages their gradients."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from dlperf_study.records.rank_log import read_rank_log
from dlperf_study.study.configuration import Configuration
from tests.training.frameworks.launching import launch, synchronous

FOLDER = Path(__file__).parent
STEPS, RANKS = 3, 2


def test_every_step_applies_the_mean_of_all_gradients_before_the_next(tmp_path):
    with_servers = synchronous(RANKS)
    run_script(with_servers, tmp_path / "parameter_servers", "synchronous_ranks.py")
    first, second = (np.load(tmp_path / "parameter_servers" / f"parameters-{rank}.npy") for rank in range(RANKS))
    np.testing.assert_array_equal(first, second)

    run_script(
        replace(with_servers, strategy="local", parameter_servers=0, devices_per_node=1),
        tmp_path / "alone",
        "averaging_process.py",
    )
    alone = np.load(tmp_path / "alone" / "parameters.npy")
    smallest_change = np.abs(np.diff(alone, axis=0)).max(axis=1).min()
    np.testing.assert_allclose(first[: STEPS + 1], alone, rtol=0, atol=1e-3 * smallest_change)
    # A transfer of zeros.
    np.testing.assert_array_equal(first[STEPS + 1], first[STEPS])


def run_script(asked: Configuration, folder: Path, script: str) -> None:
    folder.mkdir()
    result = launch(asked, folder, (str(FOLDER / script), str(STEPS), str(RANKS)))
    assert result.status == "completed", (result, [log.read_text()[-2000:] for log in folder.glob("*.log")])


def test_a_run_with_synchronous_servers_is_complete(tmp_path):
    folder = tmp_path / "1"
    ending = launch(synchronous(RANKS, memory_format="nhwc", compute_only_steps=2, communication_only_steps=2), folder)
    assert ending.status == "completed", ending
    logs = [read_rank_log(folder / f"rank-{rank:05d}.jsonl") for rank in range(RANKS)]
    for log in logs:
        assert log.facts["communication"] == "synchronous_push_pull"
        assert log.facts["tuning"] == {"memory_format": "nhwc"}
        assert [log.windows[name].steps for name in ("training", "computation_before", "communication")] == [3, 1, 2]
        assert log.end["drain_seconds"] == log.end["drain_resolution_seconds"] == 0
    ends = {log.end["parameter_checksum"] for log in logs}
    assert len(ends) == 1
    assert logs[0].end["initial_checksum"] not in ends
