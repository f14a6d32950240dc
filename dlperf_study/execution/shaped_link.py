"""A study over a link of known rate: in a network namespace of its own, whose loopback interface ``tc`` shapes.

Nothing else on the machine uses that interface, and it disappears with the last process in the namespace.
"""

import os
import shutil
import socket
import subprocess
import sys
from contextlib import suppress

from dlperf_study.errors import RunError

#: How many bits the interface lets pass per second, all ranks together.
BITS_PER_SECOND = 400_000_000
#: A bucket of a few packets of 64 KiB, and a queue so long that none is dropped.
_SHAPE = f"tbf rate {BITS_PER_SECOND}bit burst 256kb limit 64mb"
_PROGRAMS = ("unshare", "ip", "tc")


def link_obstacle() -> str:
    """Return why no link can be shaped on this machine, or nothing."""
    if os.geteuid() != 0:
        return "only root can shape a link; run the self-test as root"
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"{', '.join(missing)} can't be found; install iproute2 and util-linux"
    trial = subprocess.run(_in_namespace("true"), capture_output=True, text=True)
    return f"no link can be shaped here: {trial.stderr.strip()}" if trial.returncode else ""


def run_on_shaped_link(study_file: str, cluster: str, quick: bool) -> None:
    """Measure a study by the command line, in a namespace with a shaped link.

    Runs that fail are in its evidence. Raises RunError when the command could not measure anything.
    """
    options = ["--cluster", cluster, *(["--quick"] if quick else [])]
    command = _in_namespace(sys.executable, "-m", "dlperf_study", "run", study_file, *options)
    code = subprocess.run(command).returncode
    if code not in (0, 1):
        raise RunError(f"{study_file}: measuring it over a shaped link ended with code {code}")


def _in_namespace(*command: str) -> list[str]:
    """Return the argv that runs a command in a new network namespace with a shaped loopback interface.

    Libraries meet at the address of the host's name, which only this machine's own interfaces have outside.
    """
    steps = ["ip link set lo up", f"tc qdisc add dev lo root {_SHAPE}"]
    # A name without an address has none that a library could use.
    with suppress(OSError):
        address = socket.gethostbyname(socket.gethostname())
        steps += [] if address.startswith("127.") else [f"ip address add {address}/32 dev lo"]
    return ["unshare", "--net", "sh", "-c", f'{" && ".join(steps)} && exec "$@"', "sh", *command]
