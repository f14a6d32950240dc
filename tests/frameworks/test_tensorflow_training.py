"""Real training in TensorFlow: who exchanged what with whom. Its ranks start slowly, so each run shows many things."""

from pathlib import Path

import pytest

from dlperf_study.evidence.rank_log import read_rank_log
from tests.command_line import LIMIT_SECONDS
from tests.frameworks.launching import configuration, launch, tell

pytestmark = [pytest.mark.timeout(LIMIT_SECONDS), pytest.mark.needs("tensorflow")]
#: The network with the fewest layers: TensorFlow takes most of the time for building them.
SMALL = {"model": "vgg16_cifar", "batch_per_device": 2, "memory_format": "nhwc"}


def test_mirrored_ranks_stay_alike_while_they_exchange_and_only_then(tmp_path: Path) -> None:
    mirrored = configuration(framework="tensorflow_mirrored", devices_per_node=2, optimizer="momentum", **SMALL)
    one, two = tell(mirrored, tmp_path, steps=2)
    assert one["initial"] == two["initial"] != one["trained"] == two["trained"]
    assert one["losses"][0] != two["losses"][0]
    assert (one["maximum"], two["maximum"]) == (1.125, 1.125)
    assert len({one["trained"], one["computed"], two["computed"]}) == 3
    assert one["trained"] == one["restored"] == two["restored"] == one["exchanged"]
    assert one["trained"] != one["continued"] == two["continued"]


def test_one_mirrored_process_exchanges_nothing_and_has_all_other_windows(tmp_path: Path) -> None:
    """Also in bfloat16, in which it must learn its batch too."""
    alone = configuration(framework="tensorflow_mirrored", precision="amp_bf16", memory_format="nhwc", measured_steps=8)
    ending = launch(alone, tmp_path)
    assert ending.outcome == "completed", (ending, (tmp_path / "trainer-0.log").read_text()[-2000:])
    log = read_rank_log(tmp_path / "rank-00000.jsonl")
    assert list(log.windows) == ["warmup", "training"]
    assert (log.facts["exchange"], log.facts["gradient_bytes"]) == ("none", 0)
    assert log.facts["parameters"] == 2_236_682
    losses = log.windows["training"].losses
    assert losses[-4:].mean() < losses[:4].mean()
