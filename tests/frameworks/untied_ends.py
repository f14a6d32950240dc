"""Trains a pipeline whose ends do not add their gradients of the matrix that they share, and tells its losses."""

import json
import os
import sys
from pathlib import Path

from dlperf_study.programs import frameworks
from dlperf_study.programs.frameworks import torch_pipeline
from dlperf_study.programs.frameworks._base import CONFIGURATION_VARIABLE, RUN_VARIABLE
from dlperf_study.programs.worker.feed import Feed
from dlperf_study.study.configuration import Configuration


def main(steps: int) -> None:
    values = json.loads(Path(os.environ[CONFIGURATION_VARIABLE]).read_text())
    configuration = Configuration.from_mapping(values)
    trainer = frameworks.load(configuration.framework).trainer(configuration)
    feed = Feed(configuration, trainer)
    losses = []
    for _ in range(steps):
        feed.fetch()
        loss = feed.train()
        losses.append(None if loss is None else trainer.loss_value(loss))
    feed.close()
    trainer.close()
    (Path(os.environ[RUN_VARIABLE]) / f"told-{trainer.rank}.json").write_text(json.dumps({"losses": losses}))


if __name__ == "__main__":
    torch_pipeline.tied_weight = lambda layer: None
    main(int(sys.argv[1]))
