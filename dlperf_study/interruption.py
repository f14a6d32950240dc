"""Interrupt a process once, however many signals ask for it: the ending of what it started must not be cut short."""

import ctypes
import signal
from types import FrameType

INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)


def interrupt_once() -> None:
    """Let the first SIGINT or SIGTERM raise KeyboardInterrupt.

    Later ones have no effect, also on the processes that this one starts from then on.
    """
    for interruption in INTERRUPTIONS:
        signal.signal(interruption, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    for interruption in INTERRUPTIONS:
        # Another signal may have arrived together with this one: Python reports an error, with a traceback, if it has
        # no function to call for it.
        signal.signal(interruption, _do_nothing)
        # A process that is started inherits what the system ignores, but no function.
        ctypes.CDLL(None).signal(ctypes.c_int(interruption), ctypes.c_void_p(signal.SIG_IGN))
    raise KeyboardInterrupt


def _do_nothing(number: int, frame: FrameType | None) -> None:
    pass
