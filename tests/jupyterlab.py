"""A JupyterLab that tests start, and the cells of its notebooks in a browser."""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_SECONDS, CELL_SECONDS = 90, 60
#: An error that a cell shows.
ERRORS = ".jp-RenderedText[data-mime-type='application/vnd.jupyter.error']"
#: Cells that are run before the kernel is ready are never run.
_RUN_ALL_CELLS = """async () => {
    const notebook = window.jupyterapp.shell.currentWidget;
    await notebook.context.ready;
    await notebook.sessionContext.ready;
    await notebook.sessionContext.session.kernel.info;
    await window.jupyterapp.commands.execute("notebook:run-all-cells");
}"""


@contextmanager
def jupyterlab(root: Path, *options: str) -> Iterator[str]:
    """Yield the address of a JupyterLab over a folder, with ``{}`` for the path and the token as its query."""
    token = secrets.token_hex(16)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    command += [f"--notebook-dir={root}", "--LabApp.expose_app_in_browser=True", *options]
    environment = {**os.environ, "JUPYTER_TOKEN": token}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + START_SECONDS
    try:
        while time.monotonic() < deadline and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/{{}}?token={token}"
    finally:
        process.terminate()
        process.wait(30)


def run_all_cells(lab: str, chromium: Any, notebook: str) -> Any:
    """Open a notebook in JupyterLab, run its cells, and return the page at once."""
    page = chromium.new_page(viewport={"width": 1400, "height": 1400})
    page.goto(lab.format(f"lab/tree/{notebook}.ipynb") + "&reset", timeout=1000 * START_SECONDS)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=1000 * START_SECONDS)
    page.evaluate(_RUN_ALL_CELLS)
    return page
