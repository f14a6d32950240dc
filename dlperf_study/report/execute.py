"""Report notebooks, executed: one operating-system process each, because a kernel's state and folder are global."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dlperf_study.errors import DlperfStudyError
from dlperf_study.paths import OUTPUTS_VARIABLE, PROJECT, outputs_folder

NOTEBOOKS = PROJECT / "notebooks"
#: The name of the entry point under which the measuring arm offers kernels over inter-process sockets.
ENGINE = "dlperf_study"
PARALLEL = 2
TIMEOUT_SECONDS = 900


def execute_notebooks(names: list[str], study: str, folder: Path) -> list[Path]:
    """Execute the report notebooks of a study into ``folder``; two at a time, in the order of ``names``.

    Raises :class:`DlperfStudyError` with the cell and its error; what was executed stays in ``folder``.
    """
    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(lambda name: execute_notebook(NOTEBOOKS / f"{name}.ipynb", study, folder), names))


def execute_notebook(source: Path, study: str, folder: Path) -> Path:
    """Execute one notebook with papermill in a process of its own; return the executed copy in ``folder``."""
    executed = folder / source.name
    options = ["--engine", ENGINE, "--kernel", "python3", "--no-progress-bar", "-r", "study", study]
    command = [sys.executable, "-m", "papermill", str(source), str(executed), *options]
    ended = _run(command, folder, source)
    failure = _failure(executed)
    if ended.returncode or failure:
        reason = failure or "\n".join(ended.stderr.strip().splitlines()[-3:])
        raise DlperfStudyError(f"{source.name}: {reason}\nWhat was executed is in {executed}")
    return executed


def _run(command: list[str], folder: Path, source: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, OUTPUTS_VARIABLE: str(outputs_folder())}
    try:
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise DlperfStudyError(f"{source.name}: not done after {TIMEOUT_SECONDS} s; stopped") from error


def _failure(executed: Path) -> str | None:
    """Return what went wrong in an executed notebook, or None.

    The metadata is not asked: papermill marks cells as completed that a dead kernel never ran.
    """
    if not executed.exists():
        return None
    cells = json.loads(executed.read_text(encoding="utf-8"))["cells"]
    errors = [f"cell {number} raised {_error(output)}" for number, output in _outputs(cells) if _is_error(output)]
    left = [number for number, cell in enumerate(cells, 1) if _is_left(cell)]
    return next(iter(errors), f"cell {left[0]} was never executed" if left else None)


def _outputs(cells: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    return ((number, output) for number, cell in enumerate(cells, 1) for output in cell.get("outputs", []))


def _is_error(output: dict[str, Any]) -> bool:
    return output["output_type"] == "error"


def _error(output: dict[str, Any]) -> str:
    return f"{output['ename']}: {output['evalue']}"


def _is_left(cell: dict[str, Any]) -> bool:
    return cell["cell_type"] == "code" and bool("".join(cell["source"]).strip()) and cell["execution_count"] is None
