"""Fixtures: runs of a study as files, made without training."""

import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.records.run import read_run
from tests.evidence_factory import Recipe, configuration, read_lines, write_lines, write_run

DEFAULT = {"devices_per_node": 2, "measured_steps": 4, "compute_only_steps": 2, "communication_only_steps": 2}


@pytest.fixture
def paths(tmp_path):
    return StudyPaths(tmp_path)


@pytest.fixture
def make_run(paths):
    """Return a function that writes one run, lets its lines be changed, and reads it."""

    def make(changes=None, recipe=None, **parameters):
        run = write_run(paths, configuration(**parameters), 1, recipe or Recipe())
        for rank, change in (changes or {}).items():
            _change(run.rank_log(rank), change)
        return read_run(run)

    return make


@pytest.fixture(params=[(0, 1), (1, 0)], ids=["first rank computes longest", "last rank computes longest"])
def hand_made_run(make_run, request):
    """Return two ranks with times to compute by hand: one is the slowest in computation, the other in training."""

    def make(communication="all_reduce", training=(1.0, 1.0, 1.0, 3.0), **parameters):
        steps = [
            {"training": [1.0, 1.0, 1.0, 2.0], **computation([0.9], [1.1]), "communication": [0.5, 0.5]},
            {"training": list(training), **computation([0.7], [0.9]), "communication": [0.7, 0.9]},
        ]
        return make_run(
            dict(zip(request.param, steps, strict=True)), Recipe(communication=communication), **(DEFAULT | parameters)
        )

    return make


def computation(before, after):
    """Return the two windows of compute-only steps."""
    return {"computation_before": before, "computation_after": after}


def _change(path, steps):
    lines = read_lines(path)
    for line in lines:
        if line.get("name") in steps:
            times = steps[line["name"]]
            line |= {"step_seconds": times, "seconds": sum(times), "steps": len(times)}
    write_lines(path, lines)
