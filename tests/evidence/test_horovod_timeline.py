"""Horovod's timeline: unions over fused tensors, steps by order, and timelines that can't be trusted."""

import json

import numpy as np
import pytest

from dlperf_study.core.errors import EvidenceError
from dlperf_study.evidence.horovod_timeline import TracedRun, read_timeline

#: Of the tensors: 12 and 4 numbers.
SHAPE = {2: "[4, 3]", 3: "[4]"}


def traced(warmup_steps=0, steps=1, step_seconds=1.0, parameters=16):
    return TracedRun(warmup_steps, np.full(steps, step_seconds), parameters)


def named(process, name):
    return {"name": "process_name", "ph": "M", "pid": process, "args": {"name": name}}


def span(process, name, start, stop):
    return [{"ph": "B", "name": name, "ts": start, "pid": process}, {"ph": "E", "ts": stop, "pid": process}]


def step(process, at):
    """Negotiation from ``at`` for 10 us, then an all-reduce of 40 us with a part nested in it."""
    begin, part, end = {"ph": "B", "name": "ALLREDUCE", "ts": at + 10, "pid": process}, at + 20, at + 50
    return [
        *span(process, "NEGOTIATE_ALLREDUCE", at, at + 10),
        begin,
        *span(process, "GLOO_ALLREDUCE", part, part + 20),
        {"ph": "E", "ts": end, "pid": process, "args": {"dtype": "float32", "shape": SHAPE[process]}},
    ]


@pytest.fixture
def timeline(tmp_path):
    def write(events):
        path = tmp_path / "timeline.json"
        path.write_text(events if isinstance(events, str) else json.dumps(events))
        return path

    return write


NAMES = [
    {"name": "process_name", "ph": "M", "pid": 0, "args": {"start_time_since_epoch_in_micros": 1}},
    named(1, "barrier.noname"),
    named(2, "allreduce.net.weight"),
    named(3, "allreduce.net.bias"),
]
BARRIER = span(1, "NEGOTIATE_BARRIER", 0, 5000)


def test_fused_tensors_count_once_and_others_are_added(timeline):
    """Tensor 3 starts 5 us after tensor 2: both activities last 5 us longer than for one tensor."""
    path = timeline([*NAMES, *BARRIER, *step(2, 1000), *step(3, 1005), *step(2, 2000), *step(3, 2005)])
    traced_steps = read_timeline(path, traced(warmup_steps=1))
    assert (traced_steps.steps, traced_steps.negotiation_seconds, traced_steps.all_reduce_seconds) == pytest.approx(
        (1, 15e-6, 45e-6)
    )
    path = timeline([*NAMES, *step(2, 0), *step(3, 100), *step(2, 1000), *step(3, 1000)])
    traced_steps = read_timeline(path, traced(steps=2))
    assert (traced_steps.negotiation_seconds, traced_steps.all_reduce_seconds) == pytest.approx((15e-6, 60e-6))


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([*NAMES, *BARRIER], "contains no all-reduce"),
        ([*NAMES, *step(2, 0), *step(3, 0), *step(2, 90)], "2 NEGOTIATE_ALLREDUCE of tensor 2, but 0 . 1 steps"),
        ([*NAMES, {"ph": "E", "ts": 3, "pid": 2}], "an activity of tensor 2 ends that never began"),
        ("[{", "is no timeline of Horovod"),
        ({"pid": 1}, "a list of events with process ids was expected"),
        ("[" * 100_000, "is no timeline of Horovod"),
        ([*NAMES, *step(2, 0)], "contains 0 NEGOTIATE_ALLREDUCE of tensor 3"),
        ([*NAMES, *step(2, 0), *step(3, 0)[2:]], "contains 0 NEGOTIATE_ALLREDUCE of tensor 3"),
        ([*NAMES, *step(2, 0), *span(3, "NEGOTIATE_ALLREDUCE", 0, 9)], "contains 0 ALLREDUCE of tensor 3"),
        ([NAMES[2], *step(2, 0)], "1 tensors have 12 elements, the network 16 parameters"),
        ([*NAMES, *span(2, "NEGOTIATE_ALLREDUCE", 10, 9)], "ends at 9 us, before it begins at 10 us"),
        ([*NAMES, *span(2, "ALLREDUCE", 0, 9)], "the shape of tensor 2 is None"),
        ([*NAMES, *span(2, "ALLREDUCE", "abc", 9)], "ts of an event is 'abc'"),
        ([*NAMES, *span(2, "ALLREDUCE", 0, 1e300)], "ts of an event is 1e[+]300"),
        ([*NAMES, {"ph": "B", "ts": 0, "pid": [2]}], r"pid of an event is \[2\]"),
        ([{"name": "process_name", "pid": 2, "args": [1]}], r"args of an event is \[1\]"),
    ],
)
def test_what_is_no_timeline_of_these_steps_is_refused(timeline, events, message):
    with pytest.raises(EvidenceError, match=message):
        read_timeline(timeline(events), traced())


def test_a_missing_timeline_is_named(tmp_path):
    with pytest.raises(EvidenceError, match=r"timeline\.json: is missing"):
        read_timeline(tmp_path / "timeline.json", traced())


def test_an_exchange_longer_than_its_step_is_of_another_run(timeline, refused):
    """Both tensors take from 1000 to 1055 us."""
    path = timeline([*NAMES, *step(2, 1000), *step(3, 1005)])
    assert read_timeline(path, traced(step_seconds=55e-6)).steps == 1
    with refused(EvidenceError):
        read_timeline(path, traced(step_seconds=40e-6))
