"""What a Python has installed and which benchmark code, and questions that only a program in it can answer.

Standard library only: it runs in training images too. ``python -m dlperf_study.machines.cluster.software --code MODULES
--questions JSON PACKAGES`` prints code, packages and the answers about GPUs as one line of JSON.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dlperf_study import __version__
from dlperf_study.core import code_identity, wording
from dlperf_study.core.errors import RunError
from dlperf_study.core.resources import CHECKOUT
from dlperf_study.core.restoring import restored
from dlperf_study.machines.cluster.hardware import command_output
from dlperf_study.study import environment_variables, gpu_support

#: The module that prints them.
MODULE = "dlperf_study.machines.cluster.software"
#: What takes part in a run besides the libraries that train.
COMMON_PACKAGES = (
    *("dlperf_study", "protobuf", "numpy"),
    *("papermill", "nbclient", "ipykernel", "jupyterlab", "pandas"),
)


def software(packages: Sequence[str] = ()) -> dict[str, Any]:
    """Return the versions of Python, system and packages."""
    versions: dict[str, str] = {
        "implementation": platform.python_implementation(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "executable": Path(sys.executable).name,
    }
    for package in (*COMMON_PACKAGES, *packages):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def installed(packages: Sequence[str] = (), code_roots: Sequence[str] = ()) -> dict[str, Any]:
    """Return the code digest and the versions of this Python.

    ``packages`` are those of which the version is asked besides the common ones.
    """
    return {"code": code_identity.code_digest(code_roots), "software": software(packages)}


def query(packages: Sequence[str] = (), code_roots: Sequence[str] = ()) -> list[str]:
    """Return the arguments with which a Python prints what it has."""
    return ["-m", MODULE, f"--code={','.join(code_roots)}", *packages]


def library_versions(libraries: Mapping[str, Sequence[str]], versions: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of libraries without their build."""
    found = {}
    for library, packages in libraries.items():
        for package in packages:
            if package in versions:
                found[library] = versions[package].partition("+")[0]
                break
    return found


def git() -> dict[str, Any]:
    """Return the commit of the checkout, and its changes."""
    # New files count, for they may be the study and the cluster; files that git ignores do not. Of an installed package
    # its version is ``installed``: the repository in which it may have been installed is that of something else.
    if not CHECKOUT:
        return {"installed": __version__}
    status = ("status", "--porcelain=v2", "--branch", "--untracked-files=normal")
    output = command_output("git", "-C", str(CHECKOUT), *status)
    commit = re.search(r"^# branch\.oid ([0-9a-f]+)$", output, re.MULTILINE)
    if not commit:
        return {}
    return {"commit": commit[1], "dirty": any(not line.startswith("#") for line in output.splitlines())}


#: A library for GPUs is 2 GB, and may be read over a network.
IMPORT_SECONDS = 300.0


def library_answer(command: Sequence[str], environment: Mapping[str, str]) -> Any:
    """Return the JSON in the last line of a command; raises RunError."""
    return _printed_answer(tuple(command), tuple(sorted(environment.items())))


def gpu_answer(
    python: Sequence[str], question: gpu_support.GpuQuestion, environment: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the ``GpuSupport`` of a Python, as JSON; raises RunError."""
    # None: it is not installed, or never asked. ``environment`` is that of the run: its ``CUDA_VISIBLE_DEVICES``
    # decides which GPUs there are.
    if not question.arguments:
        return None
    ordered = dict(environment) | {environment_variables.DEVICE_ORDER: environment_variables.PCI_BUS_ORDER}
    answer: dict[str, Any] | None = library_answer((*python, *question.arguments), ordered)
    return answer


@cache
def _printed_answer(command: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> Any:
    program = " ".join(command)
    try:
        # In another folder: a checkout in the current folder is not there during training.
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=IMPORT_SECONDS, cwd="/", env=dict(environment)
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{program} does not run: {error}") from error
    if done.returncode:
        raise RunError(
            f"{program} exited with code {done.returncode}: {wording.last_line(done.stderr) or 'no message'}"
        )
    try:
        return json.loads(wording.last_line(done.stdout))
    except ValueError:
        raise RunError(f"{program} prints {wording.last_line(done.stdout)!r} instead of an answer") from None


def main() -> None:
    """Print the installed packages of this Python, and its answers about GPUs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--code", default="")
    parser.add_argument("--questions", type=json.loads, default={})
    parser.add_argument("packages", nargs="*")
    arguments = parser.parse_args()
    facts = installed(arguments.packages, list(filter(None, arguments.code.split(","))))
    if arguments.questions:
        facts["gpu_support"] = gpu_answers(arguments.questions)
    print(json.dumps(facts))


def gpu_answers(questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the GPU answers by framework, or ``error``."""
    answers: dict[str, dict[str, Any]] = {}
    for name, question in questions.items():
        try:
            answer = gpu_answer((sys.executable,), restored(gpu_support.GpuQuestion, question), os.environ)
        except RunError as error:
            answer = {"error": str(error)}
        if answer:
            answers[name] = answer
    return answers


if __name__ == "__main__":
    main()
