"""The steps before all windows: they prove the precision and the tuning of the run."""

import time
from typing import Any

from dlperf_study.errors import RunError
from dlperf_study.frameworks._base import Trainer
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.precision import COMPUTED_IN
from dlperf_study.study.tuning import tuning_contradictions
from dlperf_study.worker.feed import Feed


def first_steps(trainer: Trainer, feed: Feed, configuration: Configuration) -> dict[str, Any]:
    """Do them; return what the ``rank`` line says of them.

    Raises RunError if the network computed in another number format than the precision asks for, or if the library is
    not tuned as the configuration asks.
    """
    trainer.barrier()
    start = time.perf_counter()
    computed_in = feed.first_step()
    trainer.barrier()
    seconds = time.perf_counter() - start
    expected = COMPUTED_IN[configuration.precision]
    if computed_in != expected:
        requested = f"precision is {configuration.precision}, which computes in {expected}"
        raise RunError(f"{requested}, but the network computed its first step in {computed_in}")
    tuning = trainer.tuning()
    for contradiction in tuning_contradictions(configuration, tuning):
        raise RunError(contradiction)
    return {"computed_in": computed_in, "first_steps": 1, "first_steps_seconds": seconds, "tuning": tuning}
