"""Real training in PyTorch, under its own data parallelism and under Horovod: who communicated what with whom."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from dlperf_study.records.run import read_run
from dlperf_study.training.libraries._base import FIRST_LOSS_SCALE
from dlperf_study.training.worker.windows import COMMUNICATION_SIZES
from tests.command_line import CLUSTER, LIMIT_SECONDS, STUDY, finish, ranks, wait_for, workplace
from tests.conftest import left_over
from tests.training.frameworks.launching import configuration, launch, logs_of, require_equal_ranks, tell

pytestmark = [pytest.mark.timeout(LIMIT_SECONDS), pytest.mark.needs("torch", "horovod")]

TORCH = ("torch_ddp", "horovod_torch")
#: MobileNetV2 with ten classes, as ElasticDL counts it.
PARAMETERS = 2_236_682
WINDOWS = {"compute_only_steps": 2, "communication_only_steps": 2}
Told = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What two ranks of each framework tell of three steps."""
    return {
        name: tell(
            configuration(framework=name, devices_per_node=2, optimizer="momentum"),
            tmp_path_factory.mktemp(name),
            steps=3,
        )
        for name in TORCH
    }


@pytest.mark.parametrize("name", TORCH)
def test_two_ranks_stay_alike_while_they_exchange_and_only_then(told, name):
    """Horovod's hooks can't be switched off: its compute-only steps train a copy."""
    one, two = told[name]
    require_equal_ranks(one, two, drift_apart=name == "torch_ddp")
    assert one["losses"][0] != two["losses"][0]


def test_a_closed_trainer_leaves_no_thread_that_could_abort_python_at_its_end(told):
    assert [rank["threads_of_gloo"] for rank in told["torch_ddp"]] == [[], []]


def test_both_ways_to_exchange_train_the_same(told):
    for ddp, horovod in zip(told["torch_ddp"], told["horovod_torch"], strict=True):
        assert ddp["losses"] == pytest.approx(horovod["losses"], rel=1e-4)


@pytest.mark.parametrize("name", TORCH)
def test_one_process_exchanges_nothing_and_learns(tmp_path, name):
    """It begins with about the loss of guesses: the logarithm of the number of classes."""
    [log] = logs_of(configuration(framework=name, measured_steps=12, **WINDOWS), tmp_path)
    assert (log.facts["communication"], log.facts["gradient_bytes"]) == ("none", 0)
    losses = log.windows["training"].losses.tolist()
    assert mean(losses[:4]) == pytest.approx(math.log(10), abs=1)
    assert mean(losses[-4:]) < mean(losses[:4])


BY_TIME = {"max_warmup_seconds": 0.5, "measured_seconds": 0.5}
SHARDED = {"model": "arcface_resnet50", "classifier": "sharded", "sample_ratio": 0.5}
COMPRESSED = {"gradient_compression": "fp16", "fusion_mib": 4}
MIXED = {"precision": "amp_bf16", "optimizer": "momentum"} | COMPRESSED | BY_TIME


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("torch_ddp", MIXED | {"memory_format": "nhwc", "fused_optimizer": "foreach"}),
        ("torch_ddp", SHARDED),
        ("horovod_torch", MIXED | {"cycle_time_ms": 2.5, "memory_format": "nhwc", "fused_optimizer": "fused"}),
    ],
)
def test_other_levels_train_two_ranks_alike(tmp_path, name, changes):
    """With every value that torch can mix; a compressed communication moves half the bytes."""
    one, two = logs_of(configuration(framework=name, devices_per_node=2, **WINDOWS | changes), tmp_path)
    assert [window.steps for window in one.windows.values()] == [window.steps for window in two.windows.values()]
    computed_in = "bfloat16" if "precision" in changes else "float32"
    assert [log.facts["computed_in"] for log in (one, two)] == [computed_in] * 2
    tuning = {name: changes[name] for name in ("memory_format", "fused_optimizer") if name in changes}
    assert (
        one.facts["tuning"] == two.facts["tuning"] == {"memory_format": "nchw", "fused_optimizer": "for_loop"} | tuning
    )
    if "gradient_compression" in changes:
        assert one.windows["communication"].bytes == one.facts["gradient_bytes"] == 2 * PARAMETERS
    assert one.end["parameter_checksum"] == two.end["parameter_checksum"] != one.end["initial_checksum"]


@pytest.mark.parametrize("name", TORCH)
def test_scaled_losses_in_half_precision_train_two_ranks_alike(tmp_path, name):
    """Also in compute-only steps, which go on with the scale of training."""
    half_precision = configuration(framework=name, devices_per_node=2, precision="amp_fp16", loss_scaling="dynamic")
    one, two = tell(half_precision, tmp_path, script=Path(__file__).with_name("scaled_ranks.py"))
    assert one["trained"] == two["trained"] != one["initial"] == two["initial"]
    assert (one["scale"], one["skipped_steps"]) == (two["scale"], two["skipped_steps"])
    assert 1 < one["scale"] != FIRST_LOSS_SCALE
    assert (one["local_scale"], two["local_scale"]) == (one["scale"], two["scale"])
    assert one["local_skipped_steps"] <= one["skipped_steps"]
    assert one["computed_in"] == two["computed_in"] == "float16"
    assert one["losses"][-1] < one["losses"][0]


OWN_STUDY = STUDY.split("include:", maxsplit=1)[0].replace("devices_per_node: [1, 2]", "devices_per_node: [2]")
OWN_STUDY += (
    "baseline: {devices_per_node: 2}\n"
    "measurement: {warmup_steps: 1, max_warmup_seconds: 0, measured_steps: 3, compute_only_steps: 2, "
    "communication_only_steps: 2,"
    " repetitions: 1, timeout_seconds: 120}\n"
)


def test_a_killed_rank_of_torch_fails_the_run_and_leaves_nothing(tmp_path):
    long_run = configuration(framework="torch_ddp", devices_per_node=2, measured_steps=100_000)
    with ThreadPoolExecutor() as pool:
        run = pool.submit(launch, long_run, tmp_path / "1")
        wait_for(lambda: ranks(tmp_path)[1:], "two ranks")[0].kill()
        result = run.result(timeout=60)
    assert (result.status, result.exit_codes["node-0"]) == ("failed", 1)
    assert not left_over()


def test_a_killed_rank_of_horovod_fails_the_run_and_leaves_nothing_and_the_next_run_is_complete(tmp_path):
    place = workplace(tmp_path, OWN_STUDY.replace("paddle_collective", "horovod_torch"), CLUSTER, shares_machine=True)
    controller = place.start("run --no-report")
    place.first_rank().kill()
    ended, facts = finish(controller), place.run_facts("1n2d")
    assert left_over() == []
    assert (ended.returncode, facts["status"], facts["ranks_seen"]) == (1, "failed", [])
    assert "exited with code" in facts["reason"]
    assert any(facts["tail"].values())
    assert f"run 1 failed: {facts['reason']}" in ended.stderr

    again = place.command("run --no-report")
    assert again.returncode == 0, again.stderr + again.stdout
    assert place.run_facts("1n2d")["status"] == "completed"
    logs = read_run(place.configuration("1n2d").run(1)).ranks
    assert len(logs) == 2
    for log in logs:
        steps = {name: window.steps for name, window in log.windows.items()}
        computation = {"computation_before": 1, "computation_after": 1}
        communication = {name: 2 for name in log.windows if name.startswith("communication")}
        assert steps == {"warmup": 1, "training": 3} | computation | communication
        assert len(communication) == COMMUNICATION_SIZES
        assert log.windows["communication"].bytes == log.facts["gradient_bytes"] == 4 * PARAMETERS
        assert log.facts["parameters"] == PARAMETERS
