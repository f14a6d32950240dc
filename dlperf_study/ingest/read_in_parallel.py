"""Reads many runs, several at a time, and yields them in order; what is held does not grow with their number."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from dlperf_study.errors import LogError
from dlperf_study.ingest.printed_run import PrintedRun, RunToRead, read_printed

#: Below this a pool of processes takes longer to start than the logs to read.
WORTH_A_POOL_BYTES = 64 << 20
#: How many runs of each process may wait to be used.
AHEAD = 4


def read_runs(tasks: Sequence[RunToRead]) -> Iterator[tuple[RunToRead, PrintedRun]]:
    """Yield every run that was read, in order.

    Raises:
        LogError: a process that reads was killed, as happens where memory is short.

    """
    processes = min(len(os.sched_getaffinity(0)), len(tasks))
    if processes < 2 or sum(task.bytes for task in tasks) < WORTH_A_POOL_BYTES:
        yield from ((task, read_printed(task)) for task in tasks)
        return
    try:
        yield from _in_processes(tasks, processes)
    except BrokenProcessPool as error:
        raise LogError("a process that reads logs was killed; is there enough memory?") from error


def _in_processes(tasks: Sequence[RunToRead], processes: int) -> Iterator[tuple[RunToRead, PrintedRun]]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([read_printed.__module__])
    with ProcessPoolExecutor(processes, context, _leave_interrupts_to_parent) as pool:
        waiting: deque[tuple[RunToRead, Future[PrintedRun]]] = deque()
        try:
            for task in tasks:
                waiting.append((task, pool.submit(read_printed, task)))
                if len(waiting) > AHEAD * processes:
                    yield _result(waiting)
            while waiting:
                yield _result(waiting)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _result(waiting: "deque[tuple[RunToRead, Future[PrintedRun]]]") -> tuple[RunToRead, PrintedRun]:
    task, future = waiting.popleft()
    return task, future.result()


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
