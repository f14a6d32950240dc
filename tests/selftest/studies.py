"""Constructed studies of the self-test: evidence with a known truth, as its processes would have left it."""

import json
from typing import Any

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.study.configuration import Configuration
from tests.evidence_factory import Planned, Recipe, configuration, write_lines, write_study

STEP_SECONDS = 0.08


def pair_dataset(
    number: int,
    slowdown: float = 0.05,
    measured: float | None = None,
    replica: float = 0.0,
    waited: float | None = None,
    noise: float = 0.002,
) -> Dataset:
    """Return the collected study of a pair.

    ``measured`` and ``replica`` are how much longer the steps of the slowed configuration and of the replica took than
    the reference's, ``waited`` what the processes say that they waited, ``noise`` how much steps differ, each as a
    share of the step.
    """
    study = f"selftest_pairs_{number:02d}"
    reference, again = (configuration(study=study, replica=index, seed=number) for index in (0, 1))
    slowed = configuration(study=study, replica=1, injected_slowdown=slowdown, seed=number)
    measured = slowdown if measured is None else measured
    waits = {reference: 0.0, again: 0.0, slowed: slowdown if waited is None else waited}
    planned = [
        Planned(reference, _recipe(0.0, noise), reference=reference),
        Planned(again, _recipe(replica, noise), reference=reference),
        Planned(slowed, _recipe(measured, noise), reference=reference),
    ]
    return _collected(study, planned, waits)


def straggler_dataset(factor: float, equal_factor: float = 1.0) -> Dataset:
    """Return the collected study of two ranks: how many times as long as the other the slowed rank computes.

    ``equal_factor``: the same of the configuration in which no rank is slowed. The slowest rank is rank 0.
    """
    study = "selftest_straggler"
    equal = configuration(study=study, devices_per_node=2)
    slowed = configuration(study=study, devices_per_node=2, injected_slowdown=0.2, slowed_rank=0)
    planned = [
        Planned(equal, Recipe(rank_advantage=1 - 1 / equal_factor, noise=0.001)),
        Planned(slowed, Recipe(rank_advantage=1 - 1 / factor, noise=0.001)),
    ]
    return _collected(study, planned, {equal: 0.0, slowed: 0.2})


def steps_dataset() -> Dataset:
    """Return the collected study of steps that sleep for 50 ms, and of which those of a slower rank 1 sleep for 60."""
    study, seconds = "selftest_steps", {0: 0.050, 10: 0.060}
    paths, planned = StudyPaths.of(study), []
    for longer, own in seconds.items():
        settings = json.dumps({"longer": longer, "milliseconds": 50})
        program = {"own_program": "known_steps", "settings": settings, "program_hash": "d" * 64}
        recipe = Recipe(compute_seconds=own, exposed_communication_seconds=0.0, noise=0.0001)
        planned.append(Planned(configuration(study=study, devices_per_node=2, **program), recipe))
    write_study(paths, planned).changed(study=study).write(paths.plan_file)
    for log in paths.folder.rglob("rank-00000.jsonl"):
        write_lines(log, [_shortened(json.loads(line)) for line in log.read_text().splitlines()])
    return collect(paths)


def _shortened(line: dict[str, Any]) -> dict[str, Any]:
    """Return the line of a rank that sleeps for 50 ms in each step."""
    if line.get("name") != "training":
        return line
    return line | {"step_seconds": [0.050] * line["steps"], "seconds": 0.050 * line["steps"]}


def link_dataset(communication_seconds: float, latency_seconds: float = 1e-5) -> Dataset:
    """Return the collected study of a transfer of the factory's gradients between two ranks."""
    study = "selftest_link"
    only = configuration(study=study, devices_per_node=2)
    recipe = Recipe(communication_seconds=communication_seconds, latency_seconds=latency_seconds, noise=0.001)
    return _collected(study, [Planned(only, recipe)], {only: 0.0})


def _recipe(longer: float, noise: float) -> Recipe:
    return Recipe(compute_seconds=STEP_SECONDS * (1 + longer), noise=noise)


def _collected(study: str, planned: list[Planned], waits: dict[Configuration, float]) -> Dataset:
    paths = StudyPaths.of(study)
    plan = write_study(paths, planned)
    plan.changed(study=study).write(paths.plan_file)
    for entry, share in waits.items():
        for run in paths.configuration(entry.configuration_id).runs():
            for log in sorted(run.folder.glob("rank-*.jsonl")):
                lines = [json.loads(line) for line in log.read_text().splitlines()]
                lines[-1]["injected"] = {"steps": 10, "step_seconds": 1.0, "waited_seconds": share}
                write_lines(log, lines)
    return collect(paths)
