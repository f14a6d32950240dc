"""One training process: started by a framework's launcher as ``python -m dlperf_study.worker``."""

import json
import os
from contextlib import closing
from pathlib import Path

from dlperf_study import frameworks
from dlperf_study.cluster.cpu_group import limited_group
from dlperf_study.cluster.software import require_code_of_driver
from dlperf_study.evidence.rank_log_writer import COMPUTATION_AFTER, COMPUTATION_BEFORE, RankLogWriter
from dlperf_study.frameworks._base import CONFIGURATION_VARIABLE, RUN_VARIABLE, Framework, Trainer
from dlperf_study.lifeline import die_with_parent
from dlperf_study.paths import RunPaths
from dlperf_study.study.configuration import Configuration
from dlperf_study.worker.cpu_limit import CpuMeter
from dlperf_study.worker.feed import Feed
from dlperf_study.worker.first_steps import first_steps
from dlperf_study.worker.memory import MemoryMeter, limit_memory
from dlperf_study.worker.planted import planted_wait, with_planted_slowdown
from dlperf_study.worker.warmup import training_steps, warm_up
from dlperf_study.worker.windows import computation_window, exchange_windows, input_window, settle_in, training_window


def main() -> None:
    """Be the trainer or the server that the environment of this process says.

    Raises RunError, before anything is built, if it does not run the measuring code of the driver.
    """
    die_with_parent()
    require_code_of_driver()
    file = Path(os.environ[CONFIGURATION_VARIABLE])
    configuration = Configuration.from_mapping(json.loads(file.read_text()), str(file))
    framework = frameworks.load(configuration.framework)
    if framework.server and os.environ.get("TRAINING_ROLE") == "PSERVER":
        framework.server(configuration)
    else:
        limit_memory(configuration.memory_limit_mib)
        train(framework, configuration, RunPaths(Path(os.environ[RUN_VARIABLE])))


def train(framework: Framework, configuration: Configuration, run: RunPaths) -> None:
    """Be one rank: measure all windows, then write the log.

    After a failure, the windows measured before it are written too, without an ``end`` line.
    """
    trainer = with_planted_slowdown(framework.trainer(configuration), configuration)
    log = RankLogWriter(run.rank_log(trainer.rank))
    with closing(Feed(configuration, trainer)) as feed:
        measure_windows(framework, trainer, feed, log, configuration)
    trainer.close()


def measure_windows(
    framework: Framework, trainer: Trainer, feed: Feed, log: RankLogWriter, configuration: Configuration
) -> None:
    """Measure all windows, in order, and write the log, also after a failure."""
    try:
        initial_checksum = trainer.parameter_checksum()
        cpu_group = limited_group(configuration.cpu_limit) if configuration.cpu_limit else None
        description = trainer.description() | first_steps(trainer, feed, configuration)
        log.begin(trainer, description, configuration)
        warmup = warm_up(trainer, feed, configuration)
        log.window(warmup)
        steps = training_steps(trainer, configuration, warmup)
        before, after = configuration.computation_halves(steps)
        for window in computation_window(trainer, feed, COMPUTATION_BEFORE, before):
            log.window(window)
            settle_in(feed.train, feed)
        memory, cpu = MemoryMeter(framework.allocator), CpuMeter(cpu_group) if cpu_group else None
        log.window(training_window(trainer, feed, steps))
        peak_memory, cpu_counts = memory.peaks(), cpu.counts() if cpu else None
        drain = trainer.settle()
        checksum = trainer.parameter_checksum()
        for window in computation_window(trainer, feed, COMPUTATION_AFTER, after):
            log.window(window)
        for window in exchange_windows(trainer, description["gradient_bytes"], configuration.exchange_steps):
            log.window(window)
        for window in input_window(trainer, feed, configuration.input_steps):
            log.window(window)
        scaling = trainer.loss_scaling()
        log.end(initial_checksum, checksum, drain, peak_memory, scaling, planted_wait(trainer), cpu_counts)
    finally:
        log.write()


if __name__ == "__main__":
    main()
