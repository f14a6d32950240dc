"""One function of many things, by several processes: results in order, and few of them waiting in memory."""

import multiprocessing
import os
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

#: How many results of each process may wait to be used.
_QUEUED_RESULTS = 4
#: With this variable, Python imports nothing from the current folder.
SAFE_PATH_VARIABLE = "PYTHONSAFEPATH"
#: multiprocessing adds 32 characters for a folder and a socket.
MAX_FOLDER_CHARACTERS = 70


def processes_for(tasks: int) -> int:
    """Return the best number of processes for so many tasks."""
    return min(len(os.sched_getaffinity(0)), tasks)


@contextmanager
def starting_server() -> Iterator[None]:
    """Let servers of processes start inside the block.

    They import nothing from the current folder, which may have a downloaded ``socket.py``. Their socket is in a folder
    with a short path: that of a socket has 107 characters at most.
    """
    earlier, earlier_folder = os.environ.get(SAFE_PATH_VARIABLE), tempfile.tempdir
    os.environ[SAFE_PATH_VARIABLE] = "1"
    if len(tempfile.gettempdir()) > MAX_FOLDER_CHARACTERS:
        tempfile.tempdir = "/tmp"
    try:
        yield
    finally:
        tempfile.tempdir = earlier_folder
        del os.environ[SAFE_PATH_VARIABLE]
        if earlier is not None:
            os.environ[SAFE_PATH_VARIABLE] = earlier


#: Each process imports the script that started it: where that starts processes at once, it ends.
WHY_BROKEN = 'is there enough memory? In your own script, put this call below if __name__ == "__main__"'


def mapped_in_processes(function: Callable[[Task], Result], tasks: Iterable[Task], processes: int) -> Iterator[Result]:
    """Yield each task's result in order, computed by processes.

    Raises ``BrokenProcessPool`` when a process ended early; ``WHY_BROKEN`` has the usual reasons.
    """
    # A fork would copy the threads of a library in the middle of their work.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([function.__module__])
    with starting_server():
        resource_tracker.ensure_running()
        forkserver.ensure_running()
    # Interrupts are left to this process.
    with ProcessPoolExecutor(processes, context, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        queue: deque[Future[Result]] = deque()
        try:
            for task in tasks:
                queue.append(pool.submit(function, task))
                if len(queue) > _QUEUED_RESULTS * processes:
                    yield queue.popleft().result()
            while queue:
                yield queue.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
