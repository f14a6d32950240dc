"""A process is interrupted once, whatever signals arrive and however close together."""

import os
import signal
import subprocess
import sys

import pytest

from tests.command_line import wait_for

#: Two signals that were blocked arrive in the same moment.
BOTH_AT_ONCE = """
import os, signal, subprocess
from dlperf_study.core.signals import INTERRUPTIONS, interrupt_once
interrupt_once()
signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
for number in INTERRUPTIONS:
    os.kill(os.getpid(), number)
try:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTIONS)
except KeyboardInterrupt:
    print("interrupted", flush=True)
child = subprocess.Popen(["sleep", "1"])
for number in INTERRUPTIONS:
    os.kill(os.getpid(), number)
    child.send_signal(number)
print("child", child.wait())
"""


def test_two_signals_at_once_and_later_ones_interrupt_once():
    """Not the processes either that are started to end what was interrupted."""
    done = subprocess.run([sys.executable, "-c", BOTH_AT_ONCE], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\nchild 0\n", "", 0)


#: Prints that it waits, then the signals that interrupt it.
WAITING = """
import time
from dlperf_study.core.signals import interrupt_once
interrupt_once()
try:
    print("waits", flush=True)
    time.sleep(2)
    print("was not interrupted")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.usefixtures("signals_are_not_ignored")
@pytest.mark.parametrize(
    ("ignored", "sent", "printed"),
    [
        ("", "INT", "interrupted"),
        ("", "TERM", "interrupted"),
        ("", "HUP", "interrupted"),
        ("INT", "INT", "interrupted"),
        ("HUP", "HUP", "was not interrupted"),
        ("HUP", "TERM", "interrupted"),
    ],
)
def test_what_interrupts_where_the_shell_lets_signals_be_ignored(ignored, sent, printed):
    """A background job ignores SIGINT, and what ``nohup`` starts ignores SIGHUP."""
    trap = f"trap '' {ignored}; " if ignored else ""
    command = ["bash", "-c", f'{trap}exec "$0" -c "$1"', sys.executable, WAITING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "waits\n"
        process.send_signal(getattr(signal, f"SIG{sent}"))
        assert process.stdout.read() == f"{printed}\n"


def test_an_interrupt_while_the_commands_are_imported_ends_the_process_without_a_traceback(tmp_path):
    begun = tmp_path / "begun"
    (tmp_path / "argparse.py").write_text(f"import time\nopen({str(begun)!r}, 'w').close()\ntime.sleep(60)\n")
    command, environment = [sys.executable, "-m", "dlperf_study", "plan", "quickstart"], {"PYTHONPATH": str(tmp_path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=os.environ | environment, stdout=pipe, stderr=pipe, text=True) as process:
        wait_for(begun.exists, "the commands to be imported", 30)
        process.send_signal(signal.SIGINT)
        assert (*process.communicate(), process.returncode) == ("", "", -signal.SIGINT)
