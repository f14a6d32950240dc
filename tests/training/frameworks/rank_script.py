"""What scripts share that a framework's own job starts in place of the worker."""

import json
import os
from pathlib import Path
from typing import Any

from dlperf_study.study.configuration import Configuration
from dlperf_study.training import frameworks
from dlperf_study.training.frameworks._base import CONFIGURATION_VARIABLE, RUN_VARIABLE
from dlperf_study.training.worker.feed import Feed


def requested() -> Configuration:
    """Return the configuration that this process trains."""
    return Configuration.from_mapping(json.loads(Path(os.environ[CONFIGURATION_VARIABLE]).read_text()))


def begin() -> tuple[Any, Feed]:
    """Return the trainer of this rank, and its batches."""
    configuration = requested()
    trainer = frameworks.load(configuration.framework).trainer(configuration)
    return trainer, Feed(configuration, trainer)


def file_of_run(name: str) -> Path:
    """Return a file in the folder of the run."""
    return Path(os.environ[RUN_VARIABLE]) / name


def tell(rank: int, report: dict[Any, Any]) -> None:
    """Write what a rank tells the test that started it."""
    file_of_run(f"told-{rank}.json").write_text(json.dumps(report))
