"""Processor time and memory that one file may cost: what it makes may be far larger than its bytes.

The limits grow with the size of the file, so that a large one that is what it seems to be is read.
"""

import resource
import signal
import threading
from pathlib import Path

from dlperf_study.core.errors import DlperfStudyError

#: The limits of files up to ``SMALL_BYTES``; of a larger one they are as many times higher as it is larger.
SMALL_BYTES, MAX_SECONDS, MAX_MEMORY_BYTES = 64_000_000, 30.0, 500_000_000
_RESERVE_BYTES = 1_000_000
_STATUS = Path("/proc/self/statm")


class _LimitReached(BaseException):
    """Ends the reading of a file; no handler of a reader catches it."""


class ReadingLimits:
    """Limits what reading a file of so many bytes may cost inside a block; raises ``error``.

    Only the main thread has limits: signals are its own, and the memory of a process is that of all its threads. A
    class, and no generator: where no memory is left, its end needs next to none.
    """

    def __init__(self, size: int, error: type[DlperfStudyError]) -> None:
        self._error = error
        factor = max(1.0, size / SMALL_BYTES)
        self._seconds, self._memory_bytes = factor * MAX_SECONDS, int(factor * MAX_MEMORY_BYTES)
        self._soft, self._hard = resource.getrlimit(resource.RLIMIT_AS)
        self._has_limits = threading.current_thread() is threading.main_thread() and _STATUS.exists()

    def __enter__(self) -> None:
        if not self._has_limits:
            return
        self._reserve: bytearray | None = bytearray(_RESERVE_BYTES)
        limits = [limit for limit in (self._soft, self._hard) if limit != resource.RLIM_INFINITY]
        # Processor time: slow storage is no fault of a file.
        self._earlier_handler = signal.signal(signal.SIGPROF, _end)
        resource.setrlimit(resource.RLIMIT_AS, (min([_used_bytes() + self._memory_bytes, *limits]), self._hard))
        signal.setitimer(signal.ITIMER_PROF, self._seconds)

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if not self._has_limits:
            return
        # First of all: where no memory is left, not even a limit can be changed.
        self._reserve = None
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (self._soft, self._hard))
        signal.signal(signal.SIGPROF, self._earlier_handler)
        if kind is _LimitReached:
            raise self._error(f"takes more than {self._seconds:.0f} s of processor time to be read") from None
        if kind is not None and issubclass(kind, MemoryError):
            raise self._error(f"needs more than {self._memory_bytes / 1e6:.0f} MB of memory to be read") from None


def _end(number: int, frame: object) -> None:
    raise _LimitReached


def _used_bytes() -> int:
    """Return the address space of this process."""
    pages = int(_STATUS.read_text().split()[0])
    return pages * resource.getpagesize()
