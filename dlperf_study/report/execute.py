"""Report notebooks, executed: one operating-system process each, because a kernel's state and folder are global."""

import json
import os
import subprocess
import sys
import tempfile
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
    ended = _run(command, source)
    cells = _cells(executed)
    if reason := _error_of(cells) or _complaint_of(ended) or _gap_in(cells):
        raise DlperfStudyError(f"{source.name}: {reason}\nWhat was executed is in {executed}")
    return executed


def _run(command: list[str], source: Path) -> subprocess.CompletedProcess[str]:
    # A kernel's sockets lie in its working folder under names that are always the same:
    # two kernels in one folder would get each other's messages.
    with tempfile.TemporaryDirectory(prefix="dlperf") as folder:
        environment = {**os.environ, OUTPUTS_VARIABLE: str(outputs_folder()), "JUPYTER_RUNTIME_DIR": folder}
        try:
            return subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
            )
        except subprocess.TimeoutExpired as error:
            raise DlperfStudyError(f"{source.name}: not done after {TIMEOUT_SECONDS} s; stopped") from error


def _cells(executed: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook, or none if papermill ended before it wrote any."""
    return list(json.loads(executed.read_text(encoding="utf-8"))["cells"]) if executed.exists() else []


def _error_of(cells: list[dict[str, Any]]) -> str | None:
    """Return the first error that a cell raised."""
    for number, cell in enumerate(cells, 1):
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                return f"cell {number} raised {output['ename']}: {output['evalue']}"
    return None


def _complaint_of(ended: subprocess.CompletedProcess[str]) -> str | None:
    """Return the last words of a papermill that failed for another reason than a cell's error."""
    words = "\n".join(ended.stderr.strip().splitlines()[-3:])
    return f"papermill ended with {ended.returncode}: {words}" if ended.returncode else None


def _gap_in(cells: list[dict[str, Any]]) -> str | None:
    """Return which cell was left out; papermill's metadata calls cells completed that a dead kernel never ran."""
    for number, cell in enumerate(cells, 1):
        if cell["cell_type"] == "code" and cell["source"] and cell["execution_count"] is None:
            return f"cell {number} was never executed"
    return None
