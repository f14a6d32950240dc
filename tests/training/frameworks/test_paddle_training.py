"""Real training in Paddle without a controller: what ranks communicate, and what they leave as it was."""

from statistics import mean
from typing import Any

import pytest

from dlperf_study.records.rank_log import read_rank_log
from tests.command_line import LIMIT_SECONDS
from tests.training.frameworks.launching import asynchronous, configuration, launch, require_equal_ranks, tell

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two trainers with a server tell of two steps."""
    return tell(asynchronous(2), tmp_path_factory.mktemp("served"), steps=2)


def test_computation_alone_leaves_no_trace_in_what_ranks_train(tmp_path):
    """Without communication they drift apart; then parameters and momentum are restored, so both go on alike."""
    one, two = tell(configuration(devices_per_node=2, optimizer="momentum"), tmp_path, steps=2)
    require_equal_ranks(one, two)


def test_an_exchange_alone_changes_no_parameter(served):
    """With a server, computation alone changes none either: only the server updates."""
    for told in served:
        assert told["initial"] != told["trained"] == told["computed"] == told["restored"] == told["communicated"]
        assert told["maximum"] == 1.125


def test_a_drain_is_without_the_sleep_of_the_client(served):
    """The client looks for pending gradients every 100 ms; with none it has slept once, which is no drain."""
    for told in served:
        assert told["drain"]["resolution_seconds"] == pytest.approx(0.1, abs=0.05)
        assert told["drain"]["seconds"] < 0.05


def test_asynchronous_training_learns_its_batch(tmp_path):
    """After 60 steps its loss is a tenth of the first; after 20, stale gradients can still hide what it learned.

    It is a run that trains alone, of a configuration that is broken down from the second on.
    """
    by_time, folder = {"max_warmup_seconds": 1.0, "measured_steps": 60, "measured_seconds": 1.0}, tmp_path / "1"
    ending = launch(
        asynchronous(2, compute_only_steps=1, communication_only_steps=1, breakdown_from=2, **by_time), folder
    )
    assert ending.status == "completed", ending
    logs = [read_rank_log(folder / f"rank-{rank:05d}.jsonl") for rank in (0, 1)]
    assert [list(log.windows) for log in logs] == [["warmup", "training"]] * 2
    for name in ("warmup", "training"):
        assert logs[0].windows[name].steps == logs[1].windows[name].steps
    for log in logs:
        assert log.windows["training"].steps >= 60
        seen = log.windows["training"].losses.tolist()
        assert mean(seen[-20:]) < mean(seen[:5]) / 2, seen
