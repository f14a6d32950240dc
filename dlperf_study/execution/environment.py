"""What a run took place on: hardware, software, the passed variables, the state of the code."""

import platform
import shutil
import socket
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from dlperf_study.launchers.base import passed_environment
from dlperf_study.paths import PROJECT
from dlperf_study.study.this_machine import cpu_name, usable_cpus

PACKAGES = (
    *("dlperf_study", "paddlepaddle", "paddlepaddle-gpu", "protobuf", "torch", "horovod", "numpy"),
    *("papermill", "nbclient", "ipykernel", "jupyterlab", "pandas"),
)
#: The instruction sets that decide how fast a CPU multiplies matrices.
FLAGS = (
    "sse4_2",
    "avx",
    "avx2",
    "fma",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
    "amx_bf16",
    "asimd",
    "sve",
)
#: Say where this person's files are, and nothing about speed.
PRIVATE = ("HOME", "PATH", "USER", "TMPDIR", "LD_LIBRARY_PATH")
COMMAND_SECONDS = 10


def environment() -> dict[str, dict[str, Any]]:
    """Return four flat objects: ``hardware``, ``software``, ``variables`` and ``git``."""
    return {
        "hardware": hardware() | gpus(),
        "software": software(),
        "variables": {k: v for k, v in passed_environment().items() if k not in PRIVATE},
        "git": git(),
    }


def hardware() -> dict[str, Any]:
    """Return host, processor, cores, memory (bytes) and the frequency governor."""
    return {
        "host": socket.gethostname(),
        "cpu_model": cpu_name(),
        "cpu_flags": " ".join(flag for flag in FLAGS if flag in _flags()),
        "cpu_cores_physical": psutil.cpu_count(logical=False),
        "cpu_cores_logical": psutil.cpu_count(),
        "cores": usable_cpus(),
        "cpu_governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memory_bytes": psutil.virtual_memory().total,
    }


@cache
def gpus() -> dict[str, Any]:
    """Return names, driver and memory of the NVIDIA GPUs, or nothing when there are none."""
    if not shutil.which("nvidia-smi"):
        return {}
    query = "--query-gpu=name,driver_version,memory.total"
    lines = _command("nvidia-smi", query, "--format=csv,noheader").splitlines()
    if not lines:
        return {}
    names, drivers, memory = zip(*(line.split(", ") for line in lines), strict=True)
    return {"gpu_names": "; ".join(names), "gpu_driver": drivers[0], "gpu_memory": memory[0]}


@cache
def software() -> dict[str, Any]:
    """Return the versions of Python, the system and the packages that take part."""
    system = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "executable": Path(sys.executable).name,
    }
    return system | {name: found for name in PACKAGES if (found := _version(name))}


def git() -> dict[str, Any]:
    """Return the commit of the code and whether the tree differs from it; empty outside a checkout."""
    commit = _command("git", "-C", str(PROJECT), "rev-parse", "HEAD")
    if not commit:
        return {}
    changes = _command("git", "-C", str(PROJECT), "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": bool(changes)}


def _flags() -> set[str]:
    lines = (_text("/proc/cpuinfo") or "").splitlines()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return set((facts.get("flags") or facts.get("Features") or "").split())


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _command(*argv: str) -> str:
    """Return what a command prints, or nothing when it can't be run."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
