"""Messages of a node agent arrive whatever else is printed into the same pipe, and that fills no memory."""

import os
import sys
import tracemalloc

import pytest

from dlperf_study.machines.node_agent import messages
from dlperf_study.machines.node_agent.agents import Agents, RunFailed
from dlperf_study.machines.node_agent.messages import CHUNK_BYTES, Inbox, line
from dlperf_study.machines.node_agent.submission import Node

MARK = "a-run"


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def received(inbox: Inbox, writing: int, data: bytes) -> list[dict[str, object]]:
    """Return the messages that arrive while data is written, a part at a time, as a pipe passes it on."""
    arrived = []
    for begin in range(0, len(data), 4096):
        os.write(writing, data[begin : begin + 4096])
        arrived += inbox.receive()
    return arrived


def test_a_message_arrives_among_what_others_print(pipe):
    reading, writing = pipe
    lines = line(MARK, "ready", {"cores": 2}) + b"Last login: today\n" + line(MARK, "done", {"text": "x" * 9000})
    data = b"a banner\n" + lines + b"another-run {}\n" + line(MARK, "report", {})
    kinds = [message["kind"] for message in received(Inbox(reading, MARK), writing, data)]
    assert kinds == ["ready", "done", "report"]


def test_a_line_without_an_end_fills_no_memory(pipe):
    reading, writing = pipe
    inbox = Inbox(reading, MARK)
    noise = b"y" * 8 * CHUNK_BYTES
    tracemalloc.start()
    try:
        assert received(inbox, writing, noise) == []
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < CHUNK_BYTES
    assert [message["kind"] for message in received(inbox, writing, b"\n" + line(MARK, "done", {}))] == ["done"]


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b"1", b"null", b"{}", b'{"kind": 1}', b"\xff", b"[" * 5000, b"", b"{} {}"], ids=repr
)
def test_a_line_with_the_mark_that_is_no_message_closes_the_inbox(pipe, text):
    reading, writing = pipe
    inbox = Inbox(reading, MARK)
    data = line(MARK, "ready", {}) + f"{MARK} ".encode() + text + b"\n" + line(MARK, "done", {})
    assert [message["kind"] for message in received(inbox, writing, data)] == ["ready"]
    assert (inbox.closed, inbox.problem) == (True, "a line with its mark that is not a message")


@pytest.mark.parametrize(("size", "is_read"), [(10_000, True), (10_001, False)])
def test_a_message_has_a_longest_line(pipe, monkeypatch, size, is_read):
    monkeypatch.setattr(messages, "LONGEST_BYTES", 10_000)
    reading, writing = pipe
    inbox = Inbox(reading, MARK)
    assert received(inbox, writing, f"{MARK} ".ljust(size, "x").encode()) == []
    assert inbox.closed != is_read
    assert inbox.problem == ("" if is_read else "a line of more than 10000 bytes")


def test_a_run_fails_where_its_guard_sends_what_is_no_message(tmp_path, refused):
    """The node agent of this node prints its mark, as whoever reads the arguments of its process can."""
    program = "import sys, time; print(sys.argv[-1], 'no JSON', flush=True); sys.stdin.read()"
    with Agents(MARK) as agents:
        agents.open(0, Node("node3", reach=(sys.executable, "-c", program)))
        with refused(RunFailed):
            agents.gather("ready", [0], 20)
        assert agents.end(1) == {}


@pytest.mark.parametrize("beginning", [b"", b"a", b"a-run", b"a-run {"])
def test_a_message_may_arrive_in_parts(pipe, beginning):
    reading, writing = pipe
    inbox = Inbox(reading, MARK)
    assert received(inbox, writing, beginning) == []
    rest = line(MARK, "done", {})[len(beginning) :]
    assert [message["kind"] for message in received(inbox, writing, rest)] == ["done"]
