"""Trains steps of a divided model with a defect, and tells its losses. Started by a framework's own job."""

import os
import sys

from rank_script import begin, tell

from dlperf_study.training.frameworks import _torch_divided, torch_pipeline


def untie() -> None:
    """Leave the head with weights of its own."""
    _torch_divided._tie = lambda network: None


def repeat() -> None:
    """Let what follows the embedding take the whole sequence of each rank for its part of a longer one."""
    styles = _torch_divided._styles

    def without_entry(*arguments):
        return {name: style for name, style in styles(*arguments).items() if name != "blocks.0"}

    _torch_divided._styles = without_entry


def separate() -> None:
    """Let the ends of a pipeline not add their gradients of the matrix that they share."""
    torch_pipeline.tied_weight = lambda layer: None


DEFECTS = {"untied": untie, "repeated": repeat, "separate_ends": separate, "none": lambda: None}


def main(steps: int) -> None:
    trainer, feed = begin()
    losses = []
    for _ in range(steps):
        feed.fetch()
        loss = feed.train()
        losses.append(None if loss is None else trainer.loss_value(loss))
    feed.close()
    trainer.close()
    tell(trainer.rank, {"losses": losses})


if __name__ == "__main__":
    DEFECTS[os.environ.get("DEFECT", "none")]()
    main(int(sys.argv[1]))
