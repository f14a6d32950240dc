"""The ranks of PyTorch's jobs as forks of a process that has imported it, which takes longer than their few steps do.

They get the command and the variables that torchrun gives its ranks; torchrun itself is tested with real jobs.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Timer

from dlperf_study.programs.frameworks._base import CONFIGURATION_VARIABLE, RUN_VARIABLE
from dlperf_study.study.configuration import Configuration

#: The frameworks of which a rank needs nothing else.
FORKED = ("torch_ddp", "torch_zero", "torch_tensor", "torch_pipeline")
SERVER = Path(__file__).with_name("fork_server.py")
WORKER = ("-m", "dlperf_study.programs.worker")


def run_forks(asked: Configuration, folder: Path, script: Sequence[str], seconds: float, **environment: str) -> None:
    """Run the ranks of a configuration, or ``script`` as each of them; fail with what they printed if one fails."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "configuration.json"
    file.write_text(json.dumps(asked.as_dict()))
    environment |= {CONFIGURATION_VARIABLE: str(file), RUN_VARIABLE: str(folder), "WORLD_SIZE": str(asked.world_size)}
    environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    argv = ("", *script) if script else WORKER
    logs = [folder / f"rank-{rank}.log" for rank in range(asked.world_size)]
    ranks = [
        {"argv": argv, "environment": environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)}, "log": str(log)}
        for rank, log in enumerate(logs)
    ]
    codes = exit_codes(ranks, seconds)
    assert not any(codes), (codes, [log.read_text()[-2000:] for log in logs])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def exit_codes(ranks: Sequence[dict[str, object]], seconds: float) -> list[int]:
    """Let the server run ranks; one that takes too long takes the server and all ranks with it."""
    server = fork_server()
    timer = Timer(seconds, server.kill)
    timer.start()
    try:
        answer = ask(server, json.dumps({"ranks": ranks}))
    finally:
        timer.cancel()
    if not answer:
        fork_server.cache_clear()
        raise TimeoutError(f"the ranks had no end after {seconds:g} s")
    return list(json.loads(answer))


def ask(server: "subprocess.Popen[str]", request: str) -> str:
    """Send a line; return the next one, empty if the server is gone."""
    assert server.stdin
    assert server.stdout
    print(request, file=server.stdin, flush=True)
    return server.stdout.readline()


@cache
def fork_server() -> "subprocess.Popen[str]":
    """Start the server of this process of tests, which ends with it."""
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    pipe = subprocess.PIPE
    argv = [sys.executable, "-m", "tests.frameworks.fork_server"]
    environment = os.environ | one_thread
    # In a session of its own, as ranks of a job are: Linux shares the cores between sessions, and the tests are one.
    server = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, env=environment, start_new_session=True)
    atexit.register(server.kill)
    return server
