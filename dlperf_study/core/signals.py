"""How a process is interrupted once, however many signals ask for it, how it dies with its parent, and by what.

The ending of what it started must not be cut short.
"""

import ctypes
import signal
import sys
from types import FrameType

#: SIGHUP: the terminal, or the connection to it, is gone.
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FATAL = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)
#: Added to the number of the signal that ended a process by a program that reports it, as shells do.
SHELL_OFFSET = 128
#: The exit codes by which a program reports that a process it started was ended by a signal, also as Paddle does: 256
#: minus the signal's number.
PASSED_ON_SIGNALS = {code: fatal.name for fatal in _FATAL for code in (SHELL_OFFSET + fatal, 256 - fatal)}


def interrupt_once() -> None:
    """Let the first SIGINT, SIGTERM or SIGHUP raise KeyboardInterrupt.

    Later ones have no effect, also on the processes that this one starts from then on. The first has an effect also
    where SIGINT was ignored, as a shell lets its background jobs do: no Ctrl-C reaches these, so who sends it means it.
    A SIGHUP that is ignored, as after ``nohup``, still is: a command that was to outlive its terminal does.
    """
    for interruption in INTERRUPTIONS:
        if interruption != signal.SIGHUP or signal.getsignal(interruption) != signal.SIG_IGN:
            signal.signal(interruption, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    for interruption in INTERRUPTIONS:
        # Another signal may have arrived together with this one: Python reports an error, with a traceback, if it has
        # no function to call for it.
        signal.signal(interruption, lambda number, frame: None)
        # A process that is started inherits what the system ignores, but no function.
        ctypes.CDLL(None).signal(ctypes.c_int(interruption), ctypes.c_void_p(signal.SIG_IGN))
    raise KeyboardInterrupt


PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def die_with_parent() -> None:
    """Ask the kernel to kill this process with its parent.

    Only Linux provides this; elsewhere the node agent of a launcher ends the remaining processes.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of all orphaned processes below this one.

    A daemon, which was forked twice, would be a child of the first process of the machine. Only Linux provides this.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
