"""Time and memory that one file may cost: what it makes may be far larger than its bytes.

The limits grow with the size of the file, so that a large one that is what it seems to be is read.
"""

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from dlperf_study.core.errors import DlperfStudyError

#: The limits of files up to ``SMALL_BYTES``; of a larger one they are as many times higher as it is larger.
SMALL_BYTES, SECONDS, MEMORY_BYTES = 64_000_000, 30.0, 500_000_000
_STATUS = Path("/proc/self/statm")


@contextmanager
def reading_limits(size: int, error: type[DlperfStudyError], name: str = "") -> Iterator[None]:
    """Limit what reading a file of so many bytes may cost inside the block.

    Raises ``error``, with a message that begins with ``name``. Only the main thread can limit the time.
    """
    factor = max(1.0, size / SMALL_BYTES)
    seconds, most_bytes = factor * SECONDS, int(factor * MEMORY_BYTES)
    earlier_limits = resource.getrlimit(resource.RLIMIT_AS)
    is_main = threading.current_thread() is threading.main_thread()

    def end(number: int, frame: FrameType | None) -> None:
        raise error(f"{name}takes more than {seconds:.0f} s to be read")

    try:
        _limit_memory(_used_bytes() + most_bytes, earlier_limits)
        if is_main:
            earlier_handler = signal.signal(signal.SIGALRM, end)
            signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    except MemoryError:
        raise error(f"{name}needs more than {most_bytes / 1e6:.0f} MB of memory to be read") from None
    finally:
        if is_main:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, earlier_handler)
        resource.setrlimit(resource.RLIMIT_AS, earlier_limits)


def _limit_memory(most_bytes: int, earlier_limits: tuple[int, int]) -> None:
    soft, hard = earlier_limits
    allowed = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([most_bytes, *allowed]), hard))


def _used_bytes() -> int:
    """Return the address space of this process."""
    pages = int(_STATUS.read_text().split()[0])
    return pages * resource.getpagesize()
