"""Real training in TensorFlow: who communicated what with whom."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from dlperf_study.study.configuration import Configuration
from tests.command_line import LIMIT_SECONDS, wait_for
from tests.conftest import left_over
from tests.requirements import HOROVOD_TENSORFLOW, need
from tests.training.frameworks import launching
from tests.training.frameworks.launching import configuration, launch, logs_of, require_equal_ranks, tell

pytestmark = [pytest.mark.timeout(LIMIT_SECONDS), pytest.mark.needs("tensorflow")]
TINY = Path(__file__).with_name("tiny_tensorflow.py")
MIRRORED = configuration(framework="tensorflow_mirrored", devices_per_node=2, memory_format="nhwc")
Told = list[dict[str, Any]]


def served(strategy: str, **changes: Any) -> Configuration:
    two = {"devices_per_node": 2, "parameter_servers": 2, "memory_format": "nhwc"}
    return configuration(framework="tensorflow_ps", strategy=strategy, **two | changes)


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What two ranks of the mirrored strategy tell of three steps."""
    return tell(MIRRORED, tmp_path_factory.mktemp("mirrored"), steps=3, script=TINY)


def test_mirrored_ranks_stay_alike_while_they_exchange_and_only_then(mirrored):
    one, two = mirrored
    require_equal_ranks(one, two)
    assert one["losses"][0] != two["losses"][0]


def test_synchronous_servers_train_bit_for_bit_as_all_reduce_does(tmp_path, mirrored):
    """So every step applies the mean of all gradients, once, and the next one begins with its result."""
    for of_servers, of_ring in zip(tell(served("sync"), tmp_path, steps=3, script=TINY), mirrored, strict=True):
        for name in ("losses", "initial", "trained", "restored", "communicated", "continued", "maximum"):
            assert of_servers[name] == of_ring[name], name
        assert of_servers["computed"] == of_servers["trained"]


def test_horovod_averages_gradients_and_only_while_ranks_exchange(tmp_path, monkeypatch):
    """With momentum: its variables are restored too."""
    need(HOROVOD_TENSORFLOW)
    cluster = replace(launching.CLUSTER, python={"horovod_tensorflow": HOROVOD_TENSORFLOW})
    monkeypatch.setattr(launching, "CLUSTER", cluster)
    by_horovod = replace(MIRRORED, framework="horovod_tensorflow", optimizer="momentum")
    one, two = tell(by_horovod, tmp_path, steps=3, script=TINY)
    require_equal_ranks(one, two)
    assert one["losses"][0] != two["losses"][0]


def test_asynchronous_trainers_get_the_same_new_parameters_from_the_servers(tmp_path):
    windows = {"compute_only_steps": 2, "communication_only_steps": 2, "measured_steps": 6}
    one, two = logs_of(served("async", **windows), tmp_path, str(TINY), "worker")
    assert one.end["parameter_checksum"] == two.end["parameter_checksum"] != one.end["initial_checksum"]
    for log in (one, two):
        steps = {name: window.steps for name, window in log.windows.items()}
        assert steps == {
            "warmup": 1,
            "computation_before": 1,
            "training": 6,
            "computation_after": 1,
            "communication": 2,
        }
        assert log.windows["communication"].bytes == log.facts["gradient_bytes"] == 4 * log.facts["parameters"]


def test_one_mirrored_process_exchanges_nothing_and_learns_its_batch(tmp_path):
    parameters = {"precision": "amp_bf16", "optimizer": "momentum", "memory_format": "nhwc", "measured_steps": 8}
    [log] = logs_of(configuration(framework="tensorflow_mirrored", **parameters), tmp_path)
    assert list(log.windows) == ["warmup", "training"]
    assert (log.facts["communication"], log.facts["gradient_bytes"], log.facts["parameters"]) == ("none", 0, 2_236_682)
    losses = log.windows["training"].losses
    assert losses[-4:].mean() < losses[:4].mean()


@pytest.mark.parametrize("role", ["PSERVER", "TRAINER"])
def test_a_killed_server_or_trainer_fails_the_run_and_leaves_nothing(tmp_path, role):
    """TensorFlow itself goes on without a trainer, and waits for a server."""
    with ThreadPoolExecutor() as pool:
        run = pool.submit(launch, served("async", parameter_servers=1), tmp_path, (str(TINY),))
        wait_for(lambda: len(list(tmp_path.glob("trains-*"))) == 2, "two ranks that train", seconds=100)
        wanted = {"TRAINING_ROLE": role, "DLPERF_STUDY_RUN": str(tmp_path)}
        processes = psutil.Process().children(recursive=True)
        next(process for process in processes if wanted.items() <= process.environ().items()).kill()
        ending = run.result(timeout=15)
    assert ending.status == "failed"
    assert not left_over()
