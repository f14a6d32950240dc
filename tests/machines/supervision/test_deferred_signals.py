"""What interrupts a controller while a notebook process starts waits until that is done, and is not lost."""

import os
import signal

import pytest

from dlperf_study.core.signals import INTERRUPTIONS, interrupt_once
from dlperf_study.machines.supervision.notebook import _interruptions_deferred


@pytest.fixture
def interrupted_once():
    handlers = {number: signal.getsignal(number) for number in INTERRUPTIONS}
    # One that is ignored, as SIGHUP after ``nohup``, stays so.
    for number in INTERRUPTIONS:
        signal.signal(number, signal.SIG_DFL)
    interrupt_once()
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("interrupted_once")
@pytest.mark.parametrize("number", INTERRUPTIONS)
def test_each_signal_waits_and_interrupts_afterwards(number):
    done = []

    def start() -> None:
        with _interruptions_deferred():
            os.kill(os.getpid(), number)
            done.append("started")
        done.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["started"]
