"""What reading a file may cost: time and memory end it with one message, whatever the reader catches."""

import resource
import signal
import threading

import pytest

from dlperf_study.core import reading_limits
from dlperf_study.core.errors import LogError


def work_for_ever() -> None:
    while True:
        try:
            sum(range(100_000))
        except Exception:
            continue


def test_a_file_that_takes_more_than_its_time_is_refused_also_by_a_reader_that_catches_errors(monkeypatch):
    monkeypatch.setattr(reading_limits, "MAX_SECONDS", 0.3)
    with (
        pytest.raises(LogError, match=r"takes more than 0 s of processor time"),
        reading_limits.ReadingLimits(9, LogError),
    ):
        work_for_ever()
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_a_file_that_needs_more_than_its_memory_is_refused(monkeypatch):
    earlier = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(LogError, match="needs more than 500 MB"), reading_limits.ReadingLimits(9, LogError):
        bytearray(700_000_000)
    assert resource.getrlimit(resource.RLIMIT_AS) == earlier
    with reading_limits.ReadingLimits(128_000_000, LogError):
        assert len(bytearray(700_000_000)) == 700_000_000, "a larger file may need more"


def test_another_thread_has_no_limit():
    errors: list[BaseException] = []

    def read() -> None:
        try:
            with reading_limits.ReadingLimits(9, LogError):
                bytearray(700_000_000)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert errors == []
