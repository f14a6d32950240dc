"""Tie the life of a process to that of its parent."""

import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies: no process survives its parent.

    Only Linux provides this; elsewhere the guard of a launcher ends the remaining processes.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
