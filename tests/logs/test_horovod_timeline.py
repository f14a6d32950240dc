"""Horovod's timeline: unions over fused tensors, steps by order, and timelines that can't be trusted."""

import json

import pytest

from dlperf_study.errors import EvidenceError
from dlperf_study.logs.horovod_timeline import read_timeline


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
        {"ph": "E", "ts": end, "pid": process, "args": {"dtype": "float32"}},
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


def test_fused_tensors_count_once(timeline):
    """Tensor 3 starts 5 us after tensor 2: both activities last 5 us longer than for one tensor."""
    path = timeline([*NAMES, *BARRIER, *step(2, 1000), *step(3, 1005), *step(2, 2000), *step(3, 2005)])
    found = read_timeline(path, warmup_steps=1, steps=1)
    assert (found.steps, found.negotiation_seconds, found.all_reduce_seconds) == pytest.approx((1, 15e-6, 45e-6))


def test_tensors_apart_are_added_and_steps_are_averaged(timeline):
    path = timeline([*NAMES, *step(2, 0), *step(3, 100), *step(2, 1000), *step(3, 1000)])
    found = read_timeline(path, warmup_steps=0, steps=2)
    assert (found.negotiation_seconds, found.all_reduce_seconds) == pytest.approx((15e-6, 60e-6))


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([*NAMES, *BARRIER], "holds no all-reduce"),
        ([*NAMES, *step(2, 0), *step(3, 0), *step(2, 90)], "holds 2 NEGOTIATE_ALLREDUCE of tensor 2, but 0 . 1 steps"),
        ([*NAMES, {"ph": "E", "ts": 3, "pid": 2}], "an activity of tensor 2 ends that never began"),
        ("[{", "is no timeline of Horovod"),
        ({"pid": 1}, "a list of events with process ids was expected"),
    ],
)
def test_what_is_no_timeline_of_these_steps_is_refused(timeline, events, message):
    with pytest.raises(EvidenceError, match=message):
        read_timeline(timeline(events), warmup_steps=0, steps=1)


def test_a_missing_timeline_is_named(tmp_path):
    with pytest.raises(EvidenceError, match=r"timeline\.json: is missing"):
        read_timeline(tmp_path / "timeline.json", 0, 1)
