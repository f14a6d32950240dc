"""Builds a model from another seed on each rank, and tells its digests. Started by a framework's own job."""

import json
import os
from dataclasses import replace
from pathlib import Path

from dlperf_study.programs import frameworks
from dlperf_study.programs.frameworks._base import CONFIGURATION_VARIABLE, RUN_VARIABLE
from dlperf_study.programs.worker.feed import Feed
from dlperf_study.study.configuration import Configuration


def main() -> None:
    values = json.loads(Path(os.environ[CONFIGURATION_VARIABLE]).read_text())
    configuration = Configuration.from_mapping(values)
    trainer = frameworks.load(configuration.framework).trainer(replace(configuration, seed=int(os.environ["RANK"])))
    feed = Feed(configuration, trainer)
    initial = trainer.parameter_checksum()
    feed.first_step()
    report = {"initial": initial, "trained": trainer.parameter_checksum()}
    trainer.close()
    (Path(os.environ[RUN_VARIABLE]) / f"told-{trainer.rank}.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
