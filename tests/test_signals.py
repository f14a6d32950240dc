"""A process is interrupted once, whatever signals arrive and however close together."""

import subprocess
import sys

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
