"""Real training: what the ranks' parameters and losses say about who communicated what with whom."""

import pytest

from dlperf_study.records.run import Run, read_run
from dlperf_study.training.worker.windows import COMMUNICATION_SIZES
from tests.command_line import LIMIT_SECONDS, ONE, SERVED, TWO, Workplace
from tests.training.frameworks.launching import asynchronous, tell

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def losses(run: Run, rank: int = 0) -> list[float]:
    windows = run.ranks[rank].windows
    return [*windows["warmup"].losses.tolist(), *windows["training"].losses.tolist()]


def counted(measured: Workplace, part: str) -> Run:
    run = read_run(measured.configuration(part).run(1))
    assert run.completed, run.reason
    return run


@pytest.mark.parametrize("part", [TWO, SERVED])
def test_every_rank_ends_with_the_same_new_parameters(measured, part):
    ends = [log.end for log in counted(measured, part).ranks]
    assert len(ends) == 2
    assert ends[0]["parameter_checksum"] == ends[1]["parameter_checksum"]
    assert ends[0]["initial_checksum"] == ends[1]["initial_checksum"] != ends[0]["parameter_checksum"]


def test_one_process_exchanges_nothing_and_ranks_train_on_samples_of_their_own(measured):
    run = counted(measured, TWO)
    assert losses(run, 0)[0] != losses(run, 1)[0]
    [log] = counted(measured, ONE).ranks
    assert list(log.windows) == ["warmup", "training"]
    assert (log.facts["communication"], log.facts["gradient_bytes"]) == ("none", 0)


@pytest.mark.parametrize("part", [TWO, SERVED])
def test_windows_are_as_asked_and_the_exchange_moves_every_gradient_once(measured, part):
    for log in counted(measured, part).ranks:
        steps = {name: window.steps for name, window in log.windows.items()}
        computation = {"computation_before": 1, "computation_after": 1}
        communication = {name: 2 for name in steps if name.startswith("communication")}
        assert steps == {"warmup": 1, "training": 3} | computation | communication
        # A dense table of a server takes all gradients at once.
        assert len(communication) == (1 if part == SERVED else COMMUNICATION_SIZES)
        # MobileNetV2 with ten classes, as ElasticDL counts it, four bytes each.
        assert log.windows["communication"].bytes == log.facts["gradient_bytes"] == 4 * 2_236_682


@pytest.mark.parametrize("part", [ONE, TWO, SERVED])
def test_peaks_of_memory_hold_what_is_trained(measured, part):
    """Parameters and gradients at least; and the process has them, with its libraries."""
    for log in counted(measured, part).ranks:
        peaks = log.end["peak_memory"]
        assert 2 * 4 * log.facts["parameters"] < peaks["allocated_bytes"] < peaks["process_bytes"]


def test_a_settled_trainer_follows_the_process_without_a_server(measured, tmp_path):
    """The server applies each gradient once, at the learning rate of everybody: step by step the same losses."""
    [told] = tell(asynchronous(1), tmp_path, steps=5)
    # The loss of the step before all windows is in no log.
    assert told["losses"][1:] == pytest.approx(losses(counted(measured, ONE)), rel=0.01)
    assert told["maximum"] == 0.125
