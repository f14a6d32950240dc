"""The traced run: asked for, of the same environment, and as long as its timeline says."""

import json

import pytest

from dlperf_study.dataset.dataset import collect
from dlperf_study.dataset.uncounted_runs import longest_steps
from tests.evidence_factory import (
    PARAMETERS,
    Planned,
    Recipe,
    configuration,
    rank_lines,
    run_json,
    write_lines,
    write_study,
)

HOROVOD = Recipe(library="horovod", library_version="0.28.1")
ASKED = configuration(devices_per_node=2, trace_steps=3, warmup_steps=1)


def timeline(steps):
    """One tensor of all parameters; its negotiation takes 10 ms and its all-reduce 20 ms."""
    yield {"name": "process_name", "ph": "M", "pid": 2, "args": {"name": "allreduce.all"}}
    for step in range(steps):
        at = step * 100_000
        yield {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": at, "pid": 2}
        yield {"ph": "E", "ts": at + 10_000, "pid": 2}
        yield {"ph": "B", "name": "ALLREDUCE", "ts": at + 10_000, "pid": 2}
        yield {"ph": "E", "ts": at + 30_000, "pid": 2, "args": {"shape": f"[{PARAMETERS}]"}}


def write_trace(paths, recipe=HOROVOD):
    traced = ASKED.traced
    run = paths.configuration(ASKED.identity).trace(traced.identity)
    run.folder.mkdir(parents=True)
    for rank in range(2):
        write_lines(run.rank_log(rank), rank_lines(traced, rank, 1, recipe))
    run.run_file.write_text(json.dumps(run_json(traced, 1, recipe)))
    # The first step, the warm-up and three traced ones.
    run.timeline.write_text(json.dumps(list(timeline(5))))


@pytest.fixture
def collected(paths):
    """Return a function that gives the row of the configuration and the diagnostics about its trace."""

    def make(trace=None, counted=HOROVOD):
        write_study(paths, [Planned(ASKED, counted)])
        if trace:
            write_trace(paths, trace)
        dataset = collect(paths)
        about = dataset.diagnostics[dataset.diagnostics["subject"] == "trace"]
        return dataset.configurations.iloc[0], list(zip(about["severity"], about["message"], strict=True))

    return make


def test_a_timeline_that_fits_its_run_becomes_columns(collected):
    row, diagnostics = collected(HOROVOD)
    assert diagnostics == []
    assert (row.negotiation_seconds, row.all_reduce_seconds) == pytest.approx((0.01, 0.02))


def test_a_missing_trace_is_an_error_where_horovod_was_to_write_one(collected, snapshot):
    assert collected()[1] == snapshot


def test_no_trace_is_asked_of_a_library_that_writes_none(collected):
    assert collected(counted=Recipe())[1] == []


def test_a_trace_of_another_version_is_diagnosed(collected, snapshot):
    other = Recipe(library="horovod", library_version="0.27.0")
    ((severity, message),) = collected(other)[1]
    assert severity == "warning"
    assert message == snapshot


def test_a_step_lasts_from_the_first_that_begins_it_to_the_last_that_ends_it(hand_made_run):
    assert longest_steps(hand_made_run()).tolist() == [1.0, 1.0, 1.0, 3.0]
