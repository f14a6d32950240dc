"""A notebook process and its kernel; why a process ended is on disk, however it did. Each test costs one kernel."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import psutil
import pytest

from dlperf_study.machines.supervision.locks import OwnedFolder
from dlperf_study.machines.supervision.notebook import Execution, NotebookProcess
from dlperf_study.machines.supervision.processes import end
from tests.command_line import wait_for

pytestmark = pytest.mark.timeout(120)

#: Leaves the process that executes the notebook in a file, all of it or nothing, and then takes long.
CELL = """\
import os, pathlib, time
from ipykernel import get_connection_file
pathlib.Path({0!r}, "key").write_text(get_connection_file())
pathlib.Path({0!r}, "pid").write_text(str(os.getppid()))
pathlib.Path({0!r}, "pid").rename(pathlib.Path({0!r}, "running"))
time.sleep(600)
"""
#: Leaves what the kernel is like, and a figure as the notebook's output.
FACTS = """\
import json, os, pathlib, sys
imported = sorted({{"pandas", "matplotlib", "dlperf_study"}} & sys.modules.keys())
facts = {{"imported": imported, "folder": os.getcwd(), "added": os.environ["ADDED"]}}
facts |= {{"pid": os.getpid(), "session": os.getsid(0)}}
pathlib.Path({0!r}, "facts").write_text(json.dumps(facts))
import matplotlib.pyplot
figure, axes = matplotlib.pyplot.subplots()
"""


def execution(folder: Path, cell: str) -> Execution:
    source = folder / "notebook.ipynb"
    cells = [nbformat.v4.new_code_cell(cell.format(str(folder)))]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"language_info": {"name": "python"}}), source)
    return Execution(source, folder / "executed.ipynb", {}, folder / "failure.txt", {"ADDED": "by the controller"})


def test_no_grammar_of_addresses_is_compiled_for_notebooks():
    """It takes a second of each process; who wants the module gets it."""
    code = (
        "import sys; from dlperf_study.report.pages import _exporter; _exporter()\n"
        "print('papermill' in sys.modules, 'lark' in sys.modules)\n"
        "import dlperf_study.machines.supervision.notebook_kernel\n"
        "print('papermill' in sys.modules, 'lark' in sys.modules, 'debugpy' in sys.modules); import rfc3987_syntax"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "False False\nTrue False False\n"), done.stderr


@pytest.fixture
def process(tmp_path: Path) -> Iterator[NotebookProcess]:
    started = NotebookProcess(execution(tmp_path, CELL))
    yield started
    started.end()


@pytest.fixture
def notebook(tmp_path: Path, process: NotebookProcess) -> psutil.Process:
    """The process that executes a notebook, which has begun to run."""
    wait_for((tmp_path / "running").exists, "the notebook to run")
    return psutil.Process(int((tmp_path / "running").read_text()))


#: Executes a notebook to its end.
DRIVER = """
import sys
from pathlib import Path
from dlperf_study.machines.supervision.notebook import Execution, NotebookProcess
folder = Path(sys.argv[1])
added = {"ADDED": "by the controller"}
notebook, executed = folder / "notebook.ipynb", folder / "executed.ipynb"
started = NotebookProcess(Execution(notebook, executed, {}, folder / "failure.txt", added))
code = started.wait(600)
started.end()
sys.exit(code)
"""


def test_a_kernel_starts_with_the_imports_of_notebooks_and_what_its_driver_gives_it(tmp_path):
    """Its driver is a process of its own: other tests may have started a server of this one with other imports."""
    execution(tmp_path, FACTS)
    done = subprocess.run([sys.executable, "-c", DRIVER, str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads((tmp_path / "facts").read_text())
    kernel = facts.pop("pid")
    assert facts == {
        "imported": ["dlperf_study", "matplotlib", "pandas"],
        "folder": os.getcwd(),
        "added": "by the controller",
        "session": kernel,
    }
    assert not psutil.pid_exists(kernel)
    [cell] = nbformat.read(tmp_path / "executed.ipynb", as_version=4).cells
    assert [list(output.data) for output in cell.outputs] == [["image/png", "text/plain"]]


#: Makes the kernel's last reply long: papermill has it, but the kernel is still busy with it.
LAST_REPLY = """\
import time
kernel = get_ipython().kernel
reply = kernel.shell_handlers["kernel_info_request"]
async def reply_and_wait(*arguments):
    await reply(*arguments)
    time.sleep(0.5)
kernel.shell_handlers["kernel_info_request"] = reply_and_wait
"""


def test_a_kernel_that_has_done_its_cells_is_not_interrupted(tmp_path):
    """Before a shutdown jupyter_client interrupts, which a kernel that is not idle yet would print as an error."""
    started = NotebookProcess(execution(tmp_path, LAST_REPLY))
    assert (started.wait(60), started.errors()) == (0, "")
    started.end()


#: Starts a process, as a run does, and records when that has ended.
STARTS = """\
import pathlib, subprocess
child = subprocess.Popen(["sleep", "600"])
pathlib.Path({0!r}, "running").touch()
child.wait()
pathlib.Path({0!r}, "recorded").touch()
"""


def test_a_kernel_records_nothing_once_its_driver_is_dead(tmp_path):
    started = NotebookProcess(execution(tmp_path, STARTS))
    wait_for((tmp_path / "running").exists, "the notebook to run")
    # As the system does for a controller that is killed.
    started._lifeline.close()
    assert started.wait(60) == 1
    assert not (tmp_path / "recorded").exists()
    started.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_is_killed_leaves_the_reason_and_no_kernel(tmp_path, process, notebook, number):
    [kernel] = notebook.children()
    notebook.send_signal(number)
    words = f"the notebook process was ended by signal {signal.Signals(number).name}"
    assert process.wait(60) == -number
    assert process.errors() == words
    process.end()
    assert (tmp_path / "failure.txt").read_text() == f"{words}\n"
    kernel.wait(10)


@pytest.mark.usefixtures("notebook")
def test_a_process_that_is_ended_by_its_driver_leaves_the_reason(tmp_path, process, snapshot):
    assert process.wait(0) is None
    process.end()
    assert (tmp_path / "failure.txt").read_text() == snapshot


def test_a_process_that_is_ended_before_it_could_say_anything_leaves_the_reason(tmp_path, process, snapshot):
    process.end()
    assert process.errors() == snapshot


def key_of(running: Path) -> Path:
    """Return the connection file of the kernel of a notebook, which contains its key."""
    return Path(running.with_name("key").read_text())


def test_no_key_stays_when_driver_notebook_and_kernel_are_killed_at_once(tmp_path, process):
    """The next notebook removes those without an owner, and no others."""
    running = tmp_path / "running"
    wait_for(running.exists, "the notebook to run")
    owned = key_of(running)
    running.unlink()
    with subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)]) as controller:
        wait_for(running.exists, "the second notebook to run")
        key = key_of(running)
        assert key.exists()
        processes = [psutil.Process(controller.pid), *psutil.Process(controller.pid).children(recursive=True)]
        for stopped in processes:
            # So that none is left to see that another one was killed.
            stopped.suspend()
        end(processes)
    # A notebook of another test may have removed it before.
    OwnedFolder().remove()
    assert (key.exists(), key.parent.exists(), owned.exists()) == (False, False, True)
    process.end()
    assert not owned.parent.exists()


def test_no_key_stays_when_a_driver_is_killed(tmp_path):
    running = tmp_path / "running"
    execution(tmp_path, CELL)
    with subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)]) as controller:
        wait_for(running.exists, "the notebook to run")
        key = key_of(running)
        assert key.exists()
        controller.kill()
    wait_for(lambda: not key.parent.exists(), "the key to be removed")


def test_a_kernel_that_is_stopped_is_named(process, notebook):
    assert process.stopped() == []
    [kernel] = notebook.children()
    kernel.suspend()
    wait_for(lambda: kernel.status() == psutil.STATUS_STOPPED, "the kernel to stop")
    [stopped] = process.stopped()
    assert stopped.startswith(f"{kernel.pid}: ")
    assert stopped.endswith(" is stopped by a signal")


#: Is interrupted while the server of notebooks starts, which takes a second: by Ctrl-C all of its terminal's processes
#: are, by SIGTERM it alone.
INTERRUPTED = """
import os, signal, sys, threading
from pathlib import Path
from dlperf_study.core.signals import interrupt_once
from dlperf_study.machines.supervision.notebook import Execution, NotebookProcess
folder, number = Path(sys.argv[1]), int(sys.argv[2])
interrupt_once()
interrupted = (os.killpg, os.getpgrp()) if number == signal.SIGINT else (os.kill, os.getpid())
threading.Timer(0.2, interrupted[0], (interrupted[1], number)).start()
try:
    NotebookProcess(Execution(folder / "a.ipynb", folder / "b.ipynb", {}, folder / "failure.txt"))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    ("number", "disposition"),
    [(signal.SIGINT, signal.SIG_DFL), (signal.SIGINT, signal.SIG_IGN), (signal.SIGTERM, signal.SIG_DFL)],
    ids=["in a terminal", "in the background", "by another program"],
)
def test_an_interrupt_while_the_first_notebook_starts_is_not_lost(tmp_path, number, disposition):
    """Also where the shell that starts a controller lets it ignore Ctrl-C: whoever interrupts it then means it."""
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path), str(int(number))]
    done = subprocess.run(
        command,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, disposition),
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


def test_a_fork_server_that_is_killed_is_named(tmp_path):
    """In a process of its own: other tests use the server of this one."""
    execution(tmp_path, CELL)
    with subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)]) as driver:
        wait_for((tmp_path / "running").exists, "the notebook to run")
        servers = []
        for child in psutil.Process(driver.pid).children():
            if "multiprocessing.forkserver" in " ".join(child.cmdline()):
                servers.append(child)
        [server] = servers
        server.kill()
    reason = "the process that starts notebooks was killed; start the same command again\n"
    assert (driver.returncode, (tmp_path / "failure.txt").read_text()) == (255, reason)
