"""Sequences of a file of tokens: which they are, and which files are refused, with one reason each."""

import numpy as np
import pytest

from dlperf_study.core.errors import RunError
from dlperf_study.execution.planning import unsupported_here
from dlperf_study.training.data_loaders import load
from dlperf_study.training.data_loaders._base import batch_consumer
from tests.training.frameworks.launching import CLUSTER, configuration, launch
from tests.training.frameworks.test_transformer_ranks import GPT, NO_IMAGES

LENGTH, VOCABULARY = GPT["sequence_length"], 512


def reading(path, **changes):
    values = {"framework": "torch_ddp", "data_loader": "mapped_tokens", "token_file": str(path)}
    return configuration(**NO_IMAGES | GPT | values | changes)


def written(folder, tokens, name="train.bin"):
    path = folder / name
    np.asarray(tokens, dtype="<u2").tofile(path)
    return path


def batches(asked, rank, count=2):
    source = load("mapped_tokens").open(asked, batch_consumer(asked, rank, "torch"))
    return [source.next() for _ in range(count)]


def test_sequences_are_parts_of_the_file_with_the_next_tokens(tmp_path):
    path = written(tmp_path, np.arange(400))
    for tokens, targets in batches(reading(path), 0):
        assert tokens.shape == targets.shape == (4, LENGTH)
        assert tokens.dtype == np.int64
        assert (tokens[:, 1:] == tokens[:, :-1] + 1).all()
        assert (targets == tokens + 1).all()


def test_the_global_batch_is_the_same_however_many_ranks_share_it(tmp_path):
    path = written(tmp_path, np.random.default_rng(0).integers(0, VOCABULARY, 1000))
    whole = batches(reading(path), 0)
    parts = [batches(reading(path, devices_per_node=2, batch_per_device=2), rank) for rank in range(2)]
    for step in range(2):
        together = np.stack([part[step][0] for part in parts], axis=1).reshape(4, LENGTH)
        assert np.array_equal(together, whole[step][0])
    assert not np.array_equal(whole[0][0], whole[1][0])
    assert not np.array_equal(whole[0][0], batches(reading(path, seed=1), 0)[0][0])


def test_the_shortest_file_has_one_sequence_and_its_last_target(tmp_path):
    [(tokens, targets)] = batches(reading(written(tmp_path, range(LENGTH + 1))), 0, count=1)
    assert (tokens == np.arange(LENGTH)).all()
    assert (targets[:, -1] == LENGTH).all()


def test_each_file_that_cannot_be_used_has_one_reason_in_the_plan_and_at_the_start(tmp_path):
    (tmp_path / "empty.bin").write_bytes(b"")
    (tmp_path / "odd.bin").write_bytes(b"\0" * 201)
    reasons = {
        tmp_path / "empty.bin": "is empty",
        tmp_path / "odd.bin": "has 201 bytes, and tokens have 2 each",
        written(tmp_path, range(LENGTH), "short.bin"): "has 32 tokens; a sequence and its last target are 33",
        written(tmp_path, [*range(VOCABULARY), VOCABULARY], "large.bin"): "has the token 512, and gpt_tiny has 512",
        tmp_path / "away.bin": "No such file or directory",
        tmp_path: "is no file",
    }
    for path, expected in reasons.items():
        reason = load("mapped_tokens").obstacle_here(reading(path))
        assert expected in reason
        assert str(path) in reason
        with pytest.raises(RunError) as raised:
            batches(reading(path), 0)
        assert str(raised.value) == reason


@pytest.mark.needs("torch")
def test_the_plan_refuses_it_on_this_machine_alone(tmp_path):
    from dataclasses import replace

    missing, here = reading(tmp_path / "away.bin"), replace(CLUSTER, is_this_machine=True)
    assert unsupported_here(missing, here) == load("mapped_tokens").obstacle_here(missing)
    assert unsupported_here(missing, replace(CLUSTER, is_this_machine=False)) is None


def test_a_file_needs_a_name_a_whole_path_and_sequences():
    source = load("mapped_tokens")
    for path, expected in (("none", "needs a token_file"), ("train.bin", "must be an absolute path")):
        [reason] = source.obstacles(reading(path), "torch")
        assert expected in reason
        assert source.obstacle_here(reading(path)) == ""


def test_a_token_that_the_plan_did_not_see_ends_the_run(tmp_path, monkeypatch, refused):
    from dlperf_study.training.data_loaders import mapped_tokens

    monkeypatch.setattr(mapped_tokens, "_MOST_COMPARED", 40)
    path = written(tmp_path, [*range(40), *[VOCABULARY + 7, 3] * 20])
    with refused(RunError):
        batches(reading(path), 0, count=20)


@pytest.mark.needs("torch")
def test_a_run_trains_on_it_and_counts_its_input_wait(tmp_path):
    from dlperf_study.records.rank_log import read_rank_log

    path = written(tmp_path, np.random.default_rng(0).integers(0, VOCABULARY, 10_000))
    folder = tmp_path / "1"
    ending = launch(reading(path, optimizer="adamw"), folder)
    assert ending.status == "completed", (ending, [log.read_text()[-2000:] for log in folder.glob("*.log")])
    window = read_rank_log(folder / "rank-00000.jsonl").windows["training"]
    assert window.input_seconds is not None
    assert (np.asarray(window.input_seconds) > 0).any()
