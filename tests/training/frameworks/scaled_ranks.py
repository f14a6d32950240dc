"""Trains a tiny network in half precision with loss scaling as one rank, through a framework's own step.

The published networks would do, but their gradients at a few tiny images overflow for many steps.
"""

from typing import Any

from rank_script import begin, tell
from torch import nn

from dlperf_study.training.libraries import _base
from dlperf_study.training.models._base import Model

STEPS = 12


class Tiny(nn.Module):
    """One linear layer and its cross-entropy."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, classes)

    def forward(self, images: Any, labels: Any) -> Any:
        return nn.functional.cross_entropy(self.linear(images.flatten(1)).float(), labels)


def build(configuration: Any, rank: int, world_size: int) -> Any:
    return Tiny(3 * configuration.image_size**2, configuration.classes)


def main() -> None:
    Model.builder = lambda self, library: build  # type: ignore[method-assign,assignment]
    trainer, feed = begin()
    report = {"initial": trainer.parameter_checksum()}
    report["computed_in"] = feed.first_step()
    losses = [float(feed.train()) for _ in range(STEPS)]
    report |= {
        "trained": trainer.parameter_checksum(),
        "losses": losses,
        "scale": trainer.loss_scaling().scale,
        "skipped_steps": trainer.loss_scaling().skipped_steps,
    }
    with trainer.local_updates():
        report["local_scale"] = trainer.loss_scaling().scale
        feed.compute()
        report["local_skipped_steps"] = trainer.loss_scaling().skipped_steps
    trainer.close()
    tell(trainer.rank, report)


if __name__ == "__main__":
    _base.LEARNING_RATE = 1e-4
    # So that the scale is not the first one any more when training ends.
    _base.GROWTH_STEPS = 5
    main()
