"""Builds a model from another seed on each rank, and tells its digests. Started by a framework's own job."""

import os
from dataclasses import replace

from rank_script import requested, tell

from dlperf_study.training import frameworks
from dlperf_study.training.worker.feed import Feed


def main() -> None:
    configuration = requested()
    trainer = frameworks.load(configuration.framework).trainer(replace(configuration, seed=int(os.environ["RANK"])))
    feed = Feed(configuration, trainer)
    initial = trainer.parameter_checksum()
    feed.first_step()
    report = {"initial": initial, "trained": trainer.parameter_checksum()}
    trainer.close()
    tell(trainer.rank, report)


if __name__ == "__main__":
    main()
