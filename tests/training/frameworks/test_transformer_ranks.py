"""Ranks of every library train one transformer together: that of one process with the whole batch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command_line import LIMIT_SECONDS
from tests.training.frameworks import launching
from tests.training.frameworks.launching import configuration, logs_of

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)
NO_IMAGES = {"image_size": 224, "classes": 1000}
BERT = {"model": "bert_tiny", "sequence_length": 32, "masked_positions": 5}
GPT = {"model": "gpt_tiny", "sequence_length": 32}
CASES = [
    pytest.param("paddle_collective", BERT, id="paddle_bert"),
    pytest.param("paddle_collective", GPT, id="paddle_gpt"),
    pytest.param("tensorflow_mirrored", BERT, id="tensorflow_bert", marks=pytest.mark.needs("tensorflow")),
]


def losses(folder: Path, ranks: int, batch: int, framework: str, sizes: dict[str, Any]) -> Any:
    """Return the mean of the ranks' losses of each step but the first, from the beginning of the training."""
    requested = configuration(
        framework=framework,
        devices_per_node=ranks,
        batch_per_device=batch,
        data_loader="synthetic_host",
        optimizer="adamw",
        warmup_steps=4,
        measured_steps=1,
        **NO_IMAGES | sizes,
    )
    return np.mean([log.windows["warmup"].losses for log in logs_of(requested, folder)], axis=0)


@pytest.mark.parametrize(("framework", "sizes"), CASES)
def test_two_ranks_train_the_model_that_one_process_trains(framework, sizes, tmp_path, monkeypatch):
    # TensorFlow sends each variable to all ranks when it is made: that takes minutes where others use the cores.
    monkeypatch.setattr(launching, "LAUNCH_SECONDS", LIMIT_SECONDS / 2)
    alone = losses(tmp_path / "1", 1, 4, framework, sizes)
    together = losses(tmp_path / "2", 2, 2, framework, sizes)
    assert len(set(alone)) == len(alone) >= 3
    assert together == pytest.approx(alone, rel=1e-5)
