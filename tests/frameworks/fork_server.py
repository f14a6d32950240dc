"""Forks the ranks of PyTorch's jobs from a process that has imported it: that takes longer than a few steps do.

A request is a line of JSON on the standard input, {"ranks": [{"argv", "environment", "log"}, ...]}; the answer is a
line with the exit codes of all ranks. When one fails, the others are killed.
"""

import json
import os
import runpy
import signal
import sys
from importlib import import_module
from typing import Any

from dlperf_study.core.signals import die_with_parent

#: What a rank imports sooner or later; none of it starts a thread.
IMPORTED = (
    "dlperf_study.programs.worker.__main__",
    "torch._dynamo",
    "torch.distributed.fsdp",
    "torch.distributed.pipelining",
    "torch.distributed.tensor.parallel",
)


def main() -> None:
    """Answer requests until there are no more."""
    for module in IMPORTED:
        import_module(module)
    answers, sys.stdout = sys.stdout, sys.stderr
    for request in sys.stdin:
        pids = [fork(rank) for rank in json.loads(request)["ranks"]]
        print(json.dumps(exit_codes(pids)), file=answers, flush=True)


def fork(rank: dict[str, Any]) -> int:
    """Start a rank; return its process identifier."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        become(rank)
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        # What the server would do at its end is not for its children.
        os._exit(code)
    return 0


def become(rank: dict[str, Any]) -> None:
    """Run what a rank runs, with its environment and output, and end with the server."""
    die_with_parent()
    output = os.open(rank["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in ((0, nothing), (1, output), (2, output)):
        os.dup2(descriptor, number)
    os.environ.update(rank["environment"])
    option, name, *arguments = rank["argv"]
    sys.argv = [name, *arguments]
    if option != "-m":
        sys.path.insert(0, os.path.dirname(name))
    run = runpy.run_module if option == "-m" else runpy.run_path
    run(name, run_name="__main__")


def exit_codes(pids: list[int]) -> list[int]:
    """Return the exit codes of all, of which the first failure ends the others."""
    codes: dict[int, int] = {}
    while len(codes) < len(pids):
        pid, status = os.wait()
        codes[pid] = os.waitstatus_to_exitcode(status)
        if codes[pid]:
            for other in set(pids) - set(codes):
                os.kill(other, signal.SIGKILL)
    return [codes[pid] for pid in pids]


if __name__ == "__main__":
    main()
