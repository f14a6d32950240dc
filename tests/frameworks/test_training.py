"""Real training: what the ranks' parameters and losses say about who exchanged what with whom."""

from pathlib import Path
from statistics import mean

import pytest

from dlperf_study.evidence.rank_log import read_rank_log
from dlperf_study.evidence.run import Run, read_run
from dlperf_study.worker.windows import EXCHANGE_SIZES
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
        computation = {"computation_before": 1, "computation_after": 1}
        exchange = {name: 2 for name in steps if name.startswith("exchange")}
        assert steps == {"warmup": 1, "training": 3} | computation | exchange
        # A dense table of a server takes all gradients at once.
        assert len(exchange) == (1 if part == SERVED else EXCHANGE_SIZES)


def test_one_process_exchanges_nothing_and_says_so(measured: Workplace) -> None:
    [log] = counted(measured, ONE).ranks
    assert list(log.windows) == ["warmup", "training"]
    assert (log.facts["exchange"], log.facts["gradient_bytes"]) == ("none", 0)


@pytest.mark.parametrize("part", [ONE, TWO, SERVED])
def test_peaks_of_memory_hold_what_is_trained(measured: Workplace, part: str) -> None:
    """Parameters and gradients at least; and the process has them, with its libraries."""
    for log in counted(measured, part).ranks:
        peaks = log.end["peak_memory"]
        assert 2 * 4 * log.facts["parameters"] < peaks["allocated_bytes"] < peaks["process_bytes"]


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
    [told] = tell(asynchronous(1), tmp_path, steps=5)
    # The loss of the step before all windows is in no log.
    assert told["losses"][1:] == pytest.approx(losses(counted(measured, ONE)), rel=0.01)
    assert told["maximum"] == 0.125


def test_computation_alone_leaves_no_trace_in_what_ranks_train(tmp_path: Path, machine: None) -> None:
    """Without exchange they drift apart; afterwards parameters and momentum are what they were, so both go on alike."""
    one, two = tell(configuration(devices_per_node=2, optimizer="momentum"), tmp_path, steps=2)
    assert one["initial"] == two["initial"] != one["trained"] == two["trained"]
    assert len({one["trained"], one["computed"], two["computed"]}) == 3
    assert (one["maximum"], two["maximum"]) == (1.125, 1.125)
    assert one["trained"] == one["restored"] == two["restored"] == one["exchanged"]
    assert one["trained"] != one["continued"] == two["continued"]


def test_an_exchange_alone_changes_no_parameter(tmp_path: Path, machine: None) -> None:
    """With a server, computation alone changes none either: only the server updates."""
    for told in tell(asynchronous(2), tmp_path, steps=2):
        assert told["initial"] != told["trained"] == told["computed"] == told["restored"] == told["exchanged"]
        assert told["maximum"] == 1.125


def test_a_drain_is_without_the_sleep_of_the_client(tmp_path: Path, machine: None) -> None:
    """The client looks for pending gradients every 100 ms; with none it has slept once, which is no drain."""
    for told in tell(asynchronous(2), tmp_path, steps=2):
        assert told["drain"]["resolution_seconds"] == pytest.approx(0.1, abs=0.05)
        assert told["drain"]["seconds"] < 0.05


def test_asynchronous_training_learns_its_batch(tmp_path: Path, machine: None) -> None:
    by_time = {"max_warmup_seconds": 1.0, "measured_steps": 20, "measured_seconds": 1.0}
    ending = launch(asynchronous(2, computation_steps=1, exchange_steps=1, **by_time), tmp_path)
    assert ending.outcome == "completed", ending
    logs = [read_rank_log(tmp_path / f"rank-{rank:05d}.jsonl") for rank in (0, 1)]
    for name in ("warmup", "training"):
        assert logs[0].windows[name].steps == logs[1].windows[name].steps
    for log in logs:
        assert log.windows["training"].steps >= 20
        seen = log.windows["training"].losses.tolist()
        assert mean(seen[-5:]) < mean(seen[:5]), seen
