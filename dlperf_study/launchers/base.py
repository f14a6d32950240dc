"""What a launcher takes and gives."""

import json
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dlperf_study.study.job import Job
from dlperf_study.study.outcome import Outcome

#: What a training process inherits. Anything else, secrets above all, stays behind.
PASSED_VARIABLES = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ", "USER")
PASSED_PREFIXES = ("CUDA_", "FLAGS_", "GLOG_", "GLOO_", "HOROVOD_", "KMP_", "MKL_", "NCCL_", "OMP_")

_DEADLY = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)
#: How one who starts processes says that one was ended by a signal: shells by 128 + its number, Paddle by minus that.
PASSED_ON_SIGNALS = {code: s.name for s in _DEADLY for code in (128 + s, 256 - s)}


def passed_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of ``environment`` that training processes may see."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if name in PASSED_VARIABLES or name.startswith(PASSED_PREFIXES)
    }


def ending_words(code: int | None) -> str:
    """Return how a process ended, by its exit code as ``subprocess`` gives it."""
    if code is not None and code < 0:
        return f"was ended by signal {signal.Signals(-code).name}"
    passed_on = PASSED_ON_SIGNALS.get(code or 0)
    return f"exited with code {code}" + (f": a process of its own was ended by {passed_on}" if passed_on else "")


@dataclass(frozen=True)
class Command:
    """One process to start: its log is a file in the run's folder."""

    name: str
    role: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    log: str


@dataclass(frozen=True)
class Submission:
    """A job rendered for one launcher; ``{port_N}`` is filled in when it is executed."""

    launcher: str
    folder: str
    commands: tuple[Command, ...]
    ports: int
    rank_output: str = ""

    def as_json(self) -> str:
        """Return the text that is kept as evidence and shown in the notebook."""
        return json.dumps(asdict(self), indent=2) + "\n"


@dataclass(frozen=True)
class Ending:
    """How the processes of a run ended.

    ``seconds`` is the life of the processes, None when nobody saw it. ``busy_cores`` are the cores that other
    processes kept busy meanwhile, on average.
    """

    outcome: Outcome
    reason: str
    seconds: float | None
    exit_codes: dict[str, int | None] = field(default_factory=dict)
    busy_cores: float | None = None
    out_of_memory_kills: int = 0
    interrupted: bool = False


@dataclass(frozen=True)
class Launcher:
    """One place to run."""

    name: str
    render: Callable[[Job, Any, Path], Submission]
    execute: Callable[[Submission, float], Ending]
