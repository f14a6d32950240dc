"""Real training: what the ranks' parameters and losses say about who exchanged what with whom."""

from pathlib import Path
from statistics import mean

import pytest

from dlperf_study.evidence.rank_log import read_rank_log
from dlperf_study.evidence.run import Run, read_run
from tests.command_line import LIMIT_SECONDS, ONE, SERVED, TWO, Workplace
from tests.frameworks.launching import asynchronous, configuration, launch, tell

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def losses(run: Run, rank: int = 0) -> list[float]:
    windows = run.ranks[rank].windows
    return [*windows["warmup"].losses.tolist(), *windows["training"].losses.tolist()]


def counted(measured: Workplace, part: str) -> Run:
    run = read_run(measured.configuration(part).run(1))
    assert run.completed, run.reason
    return run


def test_all_reduce_leaves_every_rank_with_the_same_new_parameters(measured: Workplace) -> None:
    ends = [log.end for log in counted(measured, TWO).ranks]
    assert len(ends) == 2
    assert ends[0]["parameter_checksum"] == ends[1]["parameter_checksum"]
    assert ends[0]["initial_checksum"] == ends[1]["initial_checksum"] != ends[0]["parameter_checksum"]


def test_ranks_train_on_samples_of_their_own(measured: Workplace) -> None:
    run = counted(measured, TWO)
    assert losses(run, 0)[0] != losses(run, 1)[0]


@pytest.mark.parametrize("part", [TWO, SERVED])
def test_windows_are_as_asked(measured: Workplace, part: str) -> None:
    for log in counted(measured, part).ranks:
        steps = {name: window.steps for name, window in log.windows.items()}
        assert steps == {"warmup": 1, "training": 3, "computation": 2, "exchange": 2}


def test_one_process_exchanges_nothing_and_says_so(measured: Workplace) -> None:
    [log] = counted(measured, ONE).ranks
    assert list(log.windows) == ["warmup", "training"]
    assert (log.facts["exchange"], log.facts["gradient_bytes"]) == ("none", 0)


@pytest.mark.parametrize("part", [TWO, SERVED])
def test_the_exchange_moves_every_gradient_once(measured: Workplace, part: str) -> None:
    for log in counted(measured, part).ranks:
        # MobileNetV2 with ten classes, as ElasticDL counts it, four bytes each.
        assert log.windows["exchange"].bytes == log.facts["gradient_bytes"] == 4 * 2_236_682


def test_the_server_gives_both_trainers_the_same_new_parameters(measured: Workplace) -> None:
    ends = [log.end for log in counted(measured, SERVED).ranks]
    assert ends[0]["parameter_checksum"] == ends[1]["parameter_checksum"]
    assert ends[0]["initial_checksum"] == ends[1]["initial_checksum"] != ends[0]["parameter_checksum"]


def test_a_settled_trainer_follows_the_process_without_a_server(
    measured: Workplace, tmp_path: Path, machine: None
) -> None:
    """The server applies each gradient once, at the learning rate of everybody: step by step the same losses."""
    [told] = tell(asynchronous(1), tmp_path, steps=4)
    assert told["losses"] == pytest.approx(losses(counted(measured, ONE)), rel=0.01)


def test_computation_alone_lets_ranks_of_all_reduce_drift_apart(tmp_path: Path, machine: None) -> None:
    one, two = tell(configuration(devices_per_node=2), tmp_path, steps=2)
    assert one["initial"] == two["initial"] != one["trained"] == two["trained"]
    assert len({one["trained"], one["computed"], two["computed"]}) == 3


def test_an_exchange_alone_changes_no_parameter(tmp_path: Path, machine: None) -> None:
    """With a server, computation alone changes none either: only the server updates."""
    for told in tell(asynchronous(2), tmp_path, steps=2):
        assert told["initial"] != told["trained"] == told["computed"] == told["exchanged"]


def test_asynchronous_training_learns_its_batch(tmp_path: Path, machine: None) -> None:
    ending = launch(asynchronous(2, measured_steps=20, computation_steps=1, exchange_steps=1), tmp_path)
    assert ending.outcome == "completed", ending
    for rank in (0, 1):
        seen = read_rank_log(tmp_path / f"rank-{rank:05d}.jsonl").windows["training"].losses.tolist()
        assert mean(seen[-5:]) < mean(seen[:5]), seen
