"""One execution of one notebook, in a process of its own: ``python -m dlperf_study.execution.notebook``.

A process and not a thread: papermill changes the working directory of its whole process. Standard
input is the lifeline: when the driver dies it closes, and this process takes its kernel along.
"""

import json
import os
import sys
import tempfile
import threading

import papermill
from papermill.exceptions import PapermillException

from dlperf_study.launchers.processes import DRIVER_MARK, end_marked


def main() -> int:
    """Execute the notebook that the first line of standard input describes; return the exit code."""
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_watch_lifeline, daemon=True).start()
    # The path of an IPC socket may have 107 characters: a short folder, and one nobody else can read.
    with tempfile.TemporaryDirectory(prefix="dlperf") as folder:
        os.environ["JUPYTER_RUNTIME_DIR"] = folder
        try:
            papermill.execute_notebook(
                order["notebook"],
                order["output"],
                order["parameters"],
                engine_name="dlperf_study",
                progress_bar=False,
                request_save_on_cell_execute=False,
                autosave_cell_every=0,
            )
        except (PapermillException, RuntimeError) as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def _watch_lifeline() -> None:
    sys.stdin.read()
    end_marked(DRIVER_MARK, os.environ[DRIVER_MARK])
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
