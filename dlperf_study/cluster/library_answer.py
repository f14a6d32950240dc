"""A question that only a library can answer, asked in a process with the Python and the variables of a run."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from dlperf_study.errors import RunError
from dlperf_study.wording import last_line

#: A library for GPUs is 2 GB, and may be read over a network.
IMPORT_SECONDS = 300.0


def library_answer(command: Sequence[str], environment: Mapping[str, str]) -> Any:
    """Return the JSON in the last line that a command prints; it is started once for each environment.

    Raises RunError when it does not run, fails, or prints something else.
    """
    return _printed_answer(tuple(command), tuple(sorted(environment.items())))


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
        raise RunError(f"{program} exited with code {done.returncode}: {last_line(done.stderr) or 'no message'}")
    try:
        return json.loads(last_line(done.stdout))
    except ValueError:
        raise RunError(f"{program} prints {last_line(done.stdout)!r} instead of an answer") from None
