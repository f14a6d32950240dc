"""How often the intervals of what depends on the slowest rank hold the truth, by simulation.

The steps of every rank go through the functions that make the table of runs and that of configurations. The logs of
one configuration of each row are written as evidence besides and collected from there: the two must be the same.
"""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dlperf_study.core.arrays import Floats
from dlperf_study.core.paths import RunPaths, StudyPaths
from dlperf_study.dataset.configuration_table import configurations_table
from dlperf_study.dataset.dataset import collect
from dlperf_study.dataset.run_table import run_row
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.metrics import communication
from dlperf_study.metrics.columns import TableName
from dlperf_study.metrics.computation import stragglers
from dlperf_study.metrics.steady_state import WindowSteadiness
from dlperf_study.records.run import Run, read_run
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.plan import Plan
from tests.evidence_factory import Planned, Recipe, configuration, write_plan, write_run

#: Seconds of a computation step, what its communication adds to it, and the steps of the three windows.
COMPUTATION, EXPOSED = 0.100, 0.020
STEPS = {"computation_before": 25, "training": 50, "computation_after": 25}
#: Standard deviation of a step of a rank and of a whole run, as shares; by how much rank 0 may be slower.
STEP_NOISE, RUN_NOISE, SLOWDOWN = 0.03, 0.01, 0.10
RANKS, CORRELATIONS, ROUNDS = (2, 8, 32), (0.0, 0.7), (3, 6)
#: How often a step of a rank stalls, and for how many seconds: it then takes ten times as long.
STALL_SHARE, STALL = 1 / 500, 9 * COMPUTATION
COLUMNS = ("compute_seconds", "load_balance", "jitter_seconds", "exposed_communication_seconds", "efficiency")
#: What coverage must be, and by how many standard errors a simulation may miss it by chance.
COVERAGE_LIMITS, ERRORS = (0.93, 0.97), 2.5
#: In which share of runs of equal ranks a straggler may be named: that of a study has 5 % with 50 runs.
STRAGGLER_LIMIT = 0.001


@dataclass(frozen=True)
class Machine:
    """Ranks of which the first is slower by a share, and how much a step resembles the one before it.

    ``stall_share``: the probability that a step of a rank stalls.
    """

    ranks: int
    slowdown: float
    correlation: float
    stall_share: float = 0.0

    @property
    def judged_columns(self) -> tuple[str, ...]:
        """The columns whose coverage must be within its limits."""
        if not self.stall_share:
            # A shorter jitter is reported only of runs in which it is long by chance.
            is_reported = jitter_of(self) > 2 * communication.MIN_JITTER_SECONDS
            return tuple(name for name in COLUMNS if is_reported or name != "jitter_seconds")
        # Most runs of 2 ranks have no stall, so no interval over runs contains a mean that stalls make longer.
        return (
            ("load_balance",)
            if self.ranks == 2
            else ("compute_seconds", "load_balance", "exposed_communication_seconds")
        )

    @property
    def rank_seconds(self) -> Floats:
        """The true mean of a computation step of each rank; shape [ranks]."""
        seconds = np.full(self.ranks, COMPUTATION)
        seconds[0] *= 1 + self.slowdown
        return seconds + STALL * self.stall_share

    def steps(self, generator: np.random.Generator, count: int) -> Floats:
        """Return computation steps; shape [ranks, count]."""
        noise = generator.normal(0.0, STEP_NOISE, (self.ranks, count))
        for step in range(1, count):
            fresh = np.sqrt(1 - self.correlation**2) * noise[:, step]
            noise[:, step] = self.correlation * noise[:, step - 1] + fresh
        is_stalled = generator.random((self.ranks, count)) < self.stall_share
        without_stalls = self.rank_seconds[:, None] - STALL * self.stall_share
        return without_stalls * (1 + noise) + STALL * is_stalled

    def windows(self, generator: np.random.Generator) -> dict[str, Floats]:
        """Return the steps of the windows of one run by name, each [ranks, steps]: ranks wait in those of training."""
        run_factor = 1 + generator.normal(0.0, RUN_NOISE)
        series = run_factor * self.steps(generator, sum(STEPS.values()))
        parts = np.split(series, np.cumsum(list(STEPS.values()))[:-1], axis=1)
        windows = dict(zip(STEPS, parts, strict=True))
        slowest = windows["training"].max(axis=0) + run_factor * EXPOSED * (self.ranks > 1)
        return windows | {"training": np.tile(slowest, (self.ranks, 1))}


@cache
def jitter_of(machine: Machine) -> float:
    """Return the true synchronisation jitter, of 200,000 independent steps."""
    steps = replace(machine, correlation=0.0).steps(np.random.default_rng(0), 200_000)
    return float(steps.max(axis=0).mean() - machine.rank_seconds.max())


def truth_of(machine: Machine) -> dict[str, float]:
    """Return the true value of each column."""
    mean, slowest, jitter = machine.rank_seconds.mean(), machine.rank_seconds.max(), jitter_of(machine)
    step = slowest + jitter + EXPOSED
    alone = replace(machine, ranks=1, slowdown=0.0).rank_seconds[0]
    values = (slowest, mean / slowest, jitter, EXPOSED + jitter, alone / step)
    return dict(zip(COLUMNS, map(float, values), strict=True))


def template(paths: StudyPaths, asked: Configuration) -> Run:
    """Return a run that was written as evidence and read; its steps are replaced."""
    return read_run(write_run(paths, asked, 1, Recipe(noise=0.0)))


def measured(run: Run, repetition: int, windows: dict[str, Floats]) -> Run:
    """Return the run with other steps, as another repetition."""
    ranks = []
    for log in run.ranks:
        changed = dict(log.windows)
        for name, seconds in windows.items():
            of_rank = seconds[log.rank]
            waits = np.zeros_like(of_rank)
            steps = {"step_seconds": of_rank, "input_seconds": waits, "seconds": float(of_rank.sum())}
            changed[name] = replace(changed[name], **steps)
        ranks.append(replace(log, windows=changed))
    facts = {**run.facts, "repetition": repetition, "round": repetition}
    return replace(run, repetition=repetition, facts=facts, ranks=tuple(ranks))


class Simulation:
    """Configurations of one machine that differ in their seed, each with a baseline on one device of its own.

    With one baseline for all of them the luck of its few runs would be in every efficiency.
    """

    def __init__(self, machine: Machine, rounds: int, count: int, folder: Path) -> None:
        self.machine, self.rounds = machine, rounds
        self.generator = np.random.default_rng([machine.ranks, rounds, round(100 * machine.correlation)])
        common = {
            "repetitions": rounds,
            "warmup_steps": 1,
            "measured_steps": STEPS["training"],
            "communication_only_steps": 0,
        }
        common["compute_only_steps"] = STEPS["computation_before"] + STEPS["computation_after"]
        self.baselines, self.configurations = (
            [configuration(devices_per_node=ranks, seed=seed, **common) for seed in range(count)]
            for ranks in (1, machine.ranks)
        )
        pairs = zip(self.baselines, self.configurations, strict=True)
        planned = [Planned(each, baseline=baseline) for baseline, asked in pairs for each in (baseline, asked)]
        self.paths = StudyPaths(folder)
        folder.mkdir()
        self.plan: Plan = write_plan(self.paths, planned)
        self.steadiness = WindowSteadiness.from_steps(np.ones(STEPS["training"]))

    def runs(self) -> Iterator[tuple[Run, dict[str, Floats]]]:
        """Yield every run with its windows: the steps of each rank."""
        alone = replace(self.machine, ranks=1, slowdown=0.0)
        of_baseline = template(StudyPaths(self.paths.folder / "templates"), self.baselines[0])
        of_others = template(StudyPaths(self.paths.folder / "templates"), self.configurations[0])
        for asked in (*self.baselines, *self.configurations):
            machine, run = (alone, of_baseline) if asked.world_size == 1 else (self.machine, of_others)
            run = replace(run, configuration=asked, configuration_id=asked.configuration_id)
            for repetition in range(1, self.rounds + 1):
                windows = machine.windows(self.generator)
                if machine is alone:
                    windows = {"training": windows["training"]}
                yield measured(run, repetition, windows), windows

    def table(self, check: bool = True) -> pd.DataFrame:
        """Return the table of configurations; the first two are compared with the table of their evidence."""
        rows: list[dict[str, Any]] = []
        for run, windows in self.runs():
            rows.append(run_row(run, self.steadiness))
            if check and run.configuration in (self.baselines[0], self.configurations[0]):
                paths = write_run(self.paths, run.configuration, run.repetition, Recipe(noise=0.0))
                write_windows(paths, windows)
        table = self.configurations_of(frame_of_rows(TableName.RUNS, rows))
        if check:
            collected = collect(self.paths).configurations.set_index("configuration_id")
            configuration_id, columns = self.configurations[0].configuration_id, list(COLUMNS)
            np.testing.assert_allclose(
                collected.loc[configuration_id, columns].astype(float),
                table.loc[configuration_id, columns].astype(float),
                rtol=1e-9,
            )
        return table.loc[[each.configuration_id for each in self.configurations]]

    def configurations_of(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Return the table of configurations by identity."""
        return configurations_table(self.plan, runs, {})[0].set_index("configuration_id")


def write_windows(paths: RunPaths, windows: dict[str, Floats]) -> None:
    """Write other steps into the logs of a run."""
    for rank in range(len(windows["training"])):
        log = paths.rank_log(rank)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            if line.get("name") in windows:
                steps = windows[line["name"]][rank].tolist()
                # Two ranks with the same times in each step would be one log and its copy.
                steps[0] += rank * 1e-12
                line |= {"step_seconds": steps, "seconds": sum(steps)}
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))


def row_of(machine: Machine, rounds: int, count: int) -> tuple[str, bool]:
    """Return the line of one machine, how often each interval holds the truth, and whether its limits are kept."""
    with tempfile.TemporaryDirectory() as folder:
        table = Simulation(machine, rounds, count, Path(folder) / "study").table()
    truth = truth_of(machine)
    coverage = [table[f"{name}_low"].le(truth[name]) & table[f"{name}_high"].ge(truth[name]) for name in COLUMNS]
    shares = {name: float(covered.mean()) for name, covered in zip(COLUMNS, coverage, strict=True)}
    allowed = ERRORS * np.sqrt(0.95 * 0.05 / count)
    judged = [shares[name] for name in machine.judged_columns]
    is_good = all(COVERAGE_LIMITS[0] - allowed <= share <= COVERAGE_LIMITS[1] + allowed for share in judged)
    cells = " | ".join(f"{share:.1%}".replace("%", " %") for share in shares.values())
    described = (machine.ranks, f"{machine.slowdown:.0%}", f"{machine.correlation:g}", f"{machine.stall_share:.1%}")
    return f"| {' | '.join(map(str, described))} | {rounds} | {cells} |", is_good


def straggler_share(ranks: int, noise: float, steps: int, count: int, folder: Path) -> float:
    """Return in which share of so many runs of ranks that are alike one is named as a straggler."""
    equal_ranks = configuration(devices_per_node=ranks, measured_steps=STEPS["training"], compute_only_steps=10)
    run, generator = template(StudyPaths(folder), equal_ranks), np.random.default_rng([ranks, steps])
    windows = {"training": np.full((ranks, STEPS["training"]), COMPUTATION + EXPOSED)}
    named = 0
    for _ in range(count):
        for name in ("computation_before", "computation_after"):
            factors = np.exp(generator.normal(0.0, noise, (ranks, steps)))
            windows[name] = COMPUTATION * factors
        named += any(stragglers(measured(run, 1, windows)))
    return named / count


def straggler_lines(count: int) -> Iterator[tuple[str, bool]]:
    """Yield how often ranks that are alike are told apart, and whether that is rare enough for all runs of a study."""
    for ranks in RANKS:
        for noise, steps in product((STEP_NOISE, 0.2), (3, 25)):
            with tempfile.TemporaryDirectory() as folder:
                share = straggler_share(ranks, noise, steps, count, Path(folder))
            yield f"{ranks} ranks, noise {noise:.0%}, {steps} steps: {share:.2%} of runs", share <= STRAGGLER_LIMIT
