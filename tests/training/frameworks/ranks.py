"""Trains a few steps as one rank, and tells what its parameters were in between. Started by a framework's own job."""

import sys
from pathlib import Path

from rank_script import begin, tell

from dlperf_study.training.frameworks._base import Trainer
from dlperf_study.training.worker.windows import communication_sizes


def main(steps: int) -> None:
    trainer, feed = begin()
    report = {"initial": trainer.parameter_checksum(), "losses": []}
    trainer.barrier()
    for _ in range(steps):
        report["losses"].append(trainer.loss_value(feed.train()))
        trainer.settle()
    report["maximum"] = trainer.agreed_maximum(trainer.rank + 0.125)
    report["trained"] = trainer.parameter_checksum()
    with trainer.local_updates():
        feed.compute()
        report["computed"] = trainer.parameter_checksum()
    trainer.settle()
    report["restored"] = trainer.parameter_checksum()
    if trainer.communication_kind != "none":
        for size in sizes(trainer):
            trainer.communicate(size)()
    trainer.settle()
    # Nothing was pushed since.
    report["drain"] = trainer.settle().__dict__
    report["communicated"] = trainer.parameter_checksum()
    feed.train()
    trainer.settle()
    report["continued"] = trainer.parameter_checksum()
    trainer.close()
    # Those of libraries too.
    threads = [file.read_text().strip() for file in Path("/proc/self/task").glob("*/comm")]
    report["threads_of_gloo"] = [name for name in threads if "gloo" in name]
    tell(trainer.rank, report)


def sizes(trainer: Trainer) -> list[int]:
    """Return the bytes that can be communicated alone."""
    gradient_bytes = int(trainer.description()["gradient_bytes"])
    return communication_sizes(gradient_bytes) if trainer.communication_kind == "all_reduce" else [gradient_bytes]


if __name__ == "__main__":
    main(int(sys.argv[1]))
