"""A Python asked what it brings to a run: on this machine, or where a node is."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from dlperf_study.errors import RunError
from dlperf_study.launchers._base import Place
from dlperf_study.study import software
from dlperf_study.study.words import last_line

QUESTION_SECONDS = 60
#: The exit code of ssh when it did not get through.
UNREACHED = 255
HERE = Place()


class CannotAnswer(RunError):
    """A Python that runs and does not answer: it has not this package, or not as it should be."""


def brought_by(python: Sequence[str], packages: Sequence[str] = (), place: Place = HERE) -> dict[str, Any]:
    """Return ``code``, a digest, and ``software``, versions, those of ``packages`` too, of a Python given by its argv.

    Raises CannotAnswer when it doesn't have this package, and RunError when it can't be run or reached.
    """
    if list(python) in ([], [sys.executable]) and not place.reach:
        return software.brought(packages)
    question = [*python, "-m", software.MODULE, *packages]
    try:
        # Not from here: a checkout that lies in the current folder is not there when it trains.
        done = subprocess.run(
            place.command(*question), capture_output=True, text=True, timeout=QUESTION_SECONDS, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{' '.join(python)} does not run: {error}") from error
    if done.returncode:
        raise _refusal(question, place, done)
    return _facts(question, last_line(done.stdout))


def _facts(question: Sequence[str], said: str) -> dict[str, Any]:
    """Return what a Python said; a program that is none may end well and say something else."""
    try:
        facts: dict[str, Any] = json.loads(said)
    except ValueError:
        raise CannotAnswer(f"{' '.join(question[:3])} says {said!r}, and not what it brings") from None
    return facts


def _refusal(question: Sequence[str], place: Place, done: "subprocess.CompletedProcess[str]") -> RunError:
    said = last_line(done.stderr) or "it says nothing"
    if place.reach and done.returncode == UNREACHED:
        return RunError(f"{place.name} can't be asked for its libraries: {said}")
    return CannotAnswer(f"{' '.join(question[:3])} exited with code {done.returncode}: {said}")
