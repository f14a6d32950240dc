"""How a process ended, in words."""

import signal

_DEADLY = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)
#: How one who starts processes says that one was ended by a signal: shells by 128 + its number, Paddle by minus that.
PASSED_ON_SIGNALS = {code: s.name for s in _DEADLY for code in (128 + s, 256 - s)}


def ending_words(code: int | None) -> str:
    """Return how a process ended, by its exit code as ``subprocess`` and ``multiprocessing`` give it."""
    if code is not None and code < 0:
        return f"was ended by signal {signal.Signals(-code).name}"
    passed_on = PASSED_ON_SIGNALS.get(code or 0)
    return f"exited with code {code}" + (f": a process of its own was ended by {passed_on}" if passed_on else "")
