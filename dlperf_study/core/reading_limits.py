"""Processor time and memory that one file may cost: what it makes may be far larger than its bytes.

The limits grow with the size of the file, so that a large one that is what it seems to be is read.
"""

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dlperf_study.core.errors import DlperfStudyError

#: The limits of files up to ``SMALL_BYTES``; of a larger one they are as many times higher as it is larger.
SMALL_BYTES, MAX_SECONDS, MAX_MEMORY_BYTES = 64_000_000, 30.0, 500_000_000
_STATUS = Path("/proc/self/statm")


class _LimitReached(BaseException):
    """Ends the reading of a file; no handler of a reader catches it."""


@contextmanager
def reading_limits(size: int, error: type[DlperfStudyError]) -> Iterator[None]:
    """Limit what reading a file of so many bytes may cost inside the block; raises ``error``.

    Only the main thread has limits: signals are its own, and the memory of a process is that of all its threads.
    """
    if threading.current_thread() is not threading.main_thread() or not _STATUS.exists():
        yield
        return
    factor = max(1.0, size / SMALL_BYTES)
    seconds, memory_bytes = factor * MAX_SECONDS, int(factor * MAX_MEMORY_BYTES)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limits = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    # Processor time: slow storage is no fault of a file.
    earlier_handler = signal.signal(signal.SIGPROF, _end)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (min([_used_bytes() + memory_bytes, *limits]), hard))
        signal.setitimer(signal.ITIMER_PROF, seconds)
        yield
    except _LimitReached:
        raise error(f"takes more than {seconds:.0f} s of processor time to be read") from None
    except MemoryError:
        raise error(f"needs more than {memory_bytes / 1e6:.0f} MB of memory to be read") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, earlier_handler)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _end(number: int, frame: object) -> None:
    raise _LimitReached


def _used_bytes() -> int:
    """Return the address space of this process."""
    pages = int(_STATUS.read_text().split()[0])
    return pages * resource.getpagesize()
