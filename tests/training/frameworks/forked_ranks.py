"""The ranks of PyTorch's jobs as forks of a process that has imported it, which takes longer than their few steps do.

They get the command and the variables that torchrun gives its ranks; torchrun itself is tested with real jobs.
"""

import json
import multiprocessing
import os
import runpy
import socket
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from dlperf_study.core.signals import die_with_parent
from dlperf_study.study.configuration import Configuration
from dlperf_study.training.frameworks._base import CONFIGURATION_VARIABLE, RUN_VARIABLE

#: The frameworks of which a rank needs nothing else.
FORKED = ("torch_ddp", "torch_zero", "torch_tensor", "torch_pipeline")
WORKER = ("-m", "dlperf_study.training.worker")
#: Starts processes as forks of one that has imported what a rank imports sooner or later; none of it starts a thread.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "tests.training.frameworks.forked_ranks",
        "dlperf_study.training.worker.__main__",
        "torch._dynamo",
        "torch.distributed.fsdp",
        "torch.distributed.pipelining",
        "torch.distributed.tensor.parallel",
    ]
)
#: What PyTorch reads when it is imported.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def run_forks(asked: Configuration, folder: Path, script: Sequence[str], seconds: float, **environment: str) -> None:
    """Run the ranks of a configuration, or ``script`` as each of them; fail with what they printed if one fails."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "configuration.json"
    file.write_text(json.dumps(asked.as_dict()))
    environment |= {CONFIGURATION_VARIABLE: str(file), RUN_VARIABLE: str(folder), "WORLD_SIZE": str(asked.world_size)}
    environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())} | ONE_THREAD
    argv = ("", *script) if script else WORKER
    logs = [folder / f"rank-{rank}.log" for rank in range(asked.world_size)]
    ranks = []
    with pytest.MonkeyPatch.context() as patch:
        # The process that forks is started with the first rank, and keeps this environment.
        for name, value in ONE_THREAD.items():
            patch.setenv(name, value)
        for rank, log in enumerate(logs):
            variables = environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            ranks.append(FORKS.Process(target=become, args=(argv, variables, log)))
            ranks[rank].start()
    codes = exit_codes(ranks, seconds)
    assert not any(codes), (codes, [log.read_text()[-2000:] for log in logs])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def become(argv: Sequence[str], environment: dict[str, str], log: Path) -> None:
    """Run what a rank runs, with its environment and output, and end with the process that forks."""
    die_with_parent()
    # As ranks of a job have: Linux shares the cores between sessions, and the tests are one.
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.environ.update(environment)
    option, name, *arguments = argv
    sys.argv = [name, *arguments]
    if option == "-m":
        runpy.run_module(name, run_name="__main__")
    else:
        sys.path.insert(0, os.path.dirname(name))
        runpy.run_path(name, run_name="__main__")


def exit_codes(ranks: Sequence[multiprocessing.Process], seconds: float) -> list[int | None]:
    """Wait for all ranks; the first that fails, or the end of the time, ends the others."""
    deadline = time.monotonic() + seconds
    while running := [rank for rank in ranks if rank.exitcode is None]:
        if any(rank.exitcode for rank in ranks) or time.monotonic() > deadline:
            for rank in running:
                rank.kill()
        wait([rank.sentinel for rank in running], timeout=1.0)
    return [rank.exitcode for rank in ranks]
