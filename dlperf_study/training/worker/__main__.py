"""One training process: started by a framework's launcher as ``python -m dlperf_study.training.worker``."""

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

from dlperf_study.core.code_identity import require_code_of_controller
from dlperf_study.core.cpu_group import limited_group
from dlperf_study.core.paths import RunPaths
from dlperf_study.core.signals import die_with_parent
from dlperf_study.records.lines import COMPUTATION_AFTER, COMPUTATION_BEFORE
from dlperf_study.records.writers import RankLogWriter
from dlperf_study.study.configuration import Configuration
from dlperf_study.training import frameworks
from dlperf_study.training.frameworks._base import (
    CONFIGURATION_VARIABLE,
    RUN_VARIABLE,
    Framework,
    Trainer,
    computation_obstacle,
)
from dlperf_study.training.worker import windows
from dlperf_study.training.worker.feed import Feed
from dlperf_study.training.worker.injected import injected_wait, plant_slowdown
from dlperf_study.training.worker.machine_state import CpuMeter, MachineState, MemoryMeter, limit_memory
from dlperf_study.training.worker.warmup import first_steps, training_steps, warm_up


def main() -> None:
    """Be the trainer or the server of this environment; raises RunError."""
    die_with_parent()
    require_code_of_controller()
    file = Path(os.environ[CONFIGURATION_VARIABLE])
    configuration = Configuration.from_mapping(json.loads(file.read_text()), str(file))
    framework = frameworks.load(configuration.framework)
    if framework.server and os.environ.get("TRAINING_ROLE") == "PSERVER":
        framework.server(configuration)
    else:
        limit_memory(configuration.memory_limit_mib)
        train(framework, configuration, RunPaths(Path(os.environ[RUN_VARIABLE])))


def train(framework: Framework, configuration: Configuration, run: RunPaths) -> None:
    """Be one rank: measure all windows, then write the log."""
    # After a failure, the windows measured before it are written too, without an ``end`` line.
    trainer = plant_slowdown(framework.trainer(configuration), configuration)
    log = RankLogWriter(run.rank_log(trainer.rank))
    with closing(Feed(configuration, trainer)) as feed:
        measure_windows(framework, trainer, feed, log, configuration, run.repetition)
    trainer.close()


def measure_windows(
    framework: Framework,
    trainer: Trainer,
    feed: Feed,
    log: RankLogWriter,
    configuration: Configuration,
    repetition: int,
) -> None:
    """Measure the windows in order; always write the log."""
    of_run = configuration.for_run(repetition)
    try:
        initial_checksum = trainer.parameter_checksum()
        cpu_group = limited_group(configuration.cpu_limit) if configuration.cpu_limit else None
        description = trainer.description() | first_steps(trainer, feed, configuration)
        log.begin(trainer, description, configuration)
        log.window(warmup := warm_up(trainer, feed, configuration))
        steps = training_steps(trainer, configuration, warmup)
        before, after = of_run.computation_halves(steps)
        machine = MachineState(configuration, trainer.rank)
        for window in windows.computation_window(trainer, feed, COMPUTATION_BEFORE, before):
            log.window(window)
            windows.settle_in(feed.train, feed)
        memory, cpu = MemoryMeter(framework.allocator), CpuMeter(cpu_group) if cpu_group else None
        machine.calibrate()
        log.window(windows.training_window(trainer, feed, steps))
        peak_memory, cpu_counts, drain = memory.peaks(), cpu.counts() if cpu else None, trainer.settle()
        machine.calibrate()
        checksum = trainer.parameter_checksum()
        for window in windows.computation_window(trainer, feed, COMPUTATION_AFTER, after):
            log.window(window)
        for window in windows.communication_windows(trainer, description, of_run.communication_only_steps):
            log.window(window)
        for window in windows.input_window(trainer, feed, of_run.input_only_steps):
            log.window(window)
        ended: dict[str, Any] = {"loss_scaling": trainer.loss_scaling(), "injected": injected_wait(trainer)}
        ended |= {"cpu_limit": cpu_counts, "computation_obstacle": computation_obstacle(trainer)}
        ended |= {"calibration": machine.calibration, "background_cores": machine.background_cores()}
        log.end(initial_checksum, checksum, drain, peak_memory, **ended)
    finally:
        log.write()


if __name__ == "__main__":
    main()
