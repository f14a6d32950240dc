"""Messages of a guard arrive whatever else is printed into the same pipe, and that fills no memory."""

import os
import tracemalloc

import pytest

from dlperf_study.machines.guard.messages import CHUNK_BYTES, Inbox, line

MARK = "a-run"


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def received(inbox: Inbox, writing: int, data: bytes) -> list[dict[str, object]]:
    """Return the messages that arrive while data is written, a part at a time, as a pipe passes it on."""
    messages = []
    for begin in range(0, len(data), 4096):
        os.write(writing, data[begin : begin + 4096])
        messages += inbox.receive()
    return messages


def test_a_message_arrives_among_what_others_print(pipe):
    reading, writing = pipe
    messages = line(MARK, "ready", {"cores": 2}) + b"Last login: today\n" + line(MARK, "done", {"text": "x" * 9000})
    data = b"a banner\n" + messages + b"another-run {}\n" + line(MARK, "report", {})
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


@pytest.mark.parametrize("beginning", [b"", b"a", b"a-run", b"a-run {"])
def test_a_message_may_arrive_in_parts(pipe, beginning):
    reading, writing = pipe
    inbox = Inbox(reading, MARK)
    assert received(inbox, writing, beginning) == []
    rest = line(MARK, "done", {})[len(beginning) :]
    assert [message["kind"] for message in received(inbox, writing, rest)] == ["done"]
