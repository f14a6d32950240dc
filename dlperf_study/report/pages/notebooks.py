"""Report notebooks, executed: one operating-system process each, because a kernel's state and folder are global."""

import json
import time
from pathlib import Path
from typing import Any

from dlperf_study.errors import ReportError
from dlperf_study.paths import NOTEBOOKS
from dlperf_study.supervision.notebook import Execution, NotebookProcess, first_done

PARALLEL = 2
TIMEOUT_SECONDS = 900.0


def execute_notebooks(names: list[str], study: str, folder: Path) -> list[Path]:
    """Execute the report notebooks of a study into ``folder``, two at a time; return the copies, in order.

    Raises :class:`ReportError` with the cell and its error; what was executed stays in ``folder``.
    """
    executions = []
    for name in names:
        source = NOTEBOOKS / f"{name}.ipynb"
        executions.append(Execution(source, folder / source.name, {"study": study}, folder / f"{name}.errors"))
    execute(executions)
    return [execution.output for execution in executions]


def execute(executions: list[Execution]) -> None:
    """Execute notebooks, at most ``PARALLEL`` at a time; raises ReportError at the first that fails."""
    waiting, running = list(executions), list[NotebookProcess]()
    deadline = time.monotonic() + TIMEOUT_SECONDS
    try:
        while waiting or running:
            while waiting and len(running) < PARALLEL:
                running.append(NotebookProcess(waiting.pop(0)))
            done = first_done(running, deadline - time.monotonic())
            if done is None:
                name = running[0].execution.source.name
                raise ReportError(f"{name}: not done after {TIMEOUT_SECONDS:.0f} s; stopped")
            running.remove(done)
            _close(done)
    finally:
        for process in running:
            process.end()


def _close(process: NotebookProcess) -> None:
    """End a process that is done; raise ReportError when its notebook failed."""
    code, errors, execution = process.wait(0), process.errors(), process.execution
    process.end()
    failure = _failed_cell(execution.output)
    if code and not failure:
        last_lines = "\n".join(errors.splitlines()[-3:])
        failure = f"ended with code {code}: {last_lines}"
    failure = failure or _unexecuted_cell(execution.output)
    if failure:
        raise ReportError(f"{execution.source.name}: {failure}\nWhat was executed is in {execution.output}")
    execution.errors.unlink(missing_ok=True)


def _failed_cell(executed: Path) -> str | None:
    """Return the first error that a cell raised."""
    for position, cell in enumerate(_cells(executed), 1):
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                return f"cell {position} raised {output['ename']}: {output['evalue']}"
    return None


def _unexecuted_cell(executed: Path) -> str | None:
    """Return which cell was left out; papermill's metadata calls cells completed that a dead kernel never ran."""
    for position, cell in enumerate(_cells(executed), 1):
        if cell["cell_type"] == "code" and cell["source"] and cell["execution_count"] is None:
            return f"cell {position} was never executed"
    return None


def _cells(executed: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook, or none if papermill ended before it wrote any."""
    return list(json.loads(executed.read_text(encoding="utf-8"))["cells"]) if executed.exists() else []
