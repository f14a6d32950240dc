"""Four hosts on this machine: each a network namespace with an address and a name of its own, on one bridge.

They share its cores and its files: they show that a launch is right, not how a cluster scales. Each worker of the tests
has four of its own.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from dlperf_study.machines.supervision.processes import end
from tests.command_line import wait_for

WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
#: A letter ends it: Slurm writes names that end in digits as ranges.
PREFIX, NETWORK = f"dls{chr(ord('a') + WORKER)}", f"10.78.{WORKER}"
BRIDGE = f"{PREFIX}br"
#: The address of this machine on the bridge.
GATEWAY = f"{NETWORK}.1"
COUNT = 4
#: Held by whoever uses these hosts: their names are the machine's, so only one set of them is up at a time.
LOCK = Path(f"/tmp/dlperf_cluster_fixture-{PREFIX}.lock")
#: What belongs to a host and not to a test: its servers.
DAEMONS = ("sshd", "slurmd -N")
#: Where the system keeps what a host is made of: its namespace, its files, its cable and the bridge.
PLACES = ("/run/netns", "/etc/netns", "/sys/class/net")


@dataclass(frozen=True)
class Host:
    """One namespace; its interface is ``eth0``."""

    number: int

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.number}"

    @property
    def address(self) -> str:
        return f"{NETWORK}.{self.number + 1}"

    def argv(self, *words: str) -> list[str]:
        """Return the argv that runs a command there, under the host's own name."""
        named = ["unshare", "--uts", "sh", "-c", f'hostname {self.name}; exec "$@"', "sh"]
        return ["ip", "netns", "exec", self.name, *named, *words]

    def link(self, state: str) -> None:
        """Plug the network in ("up") or out ("down")."""
        _run("ip", "-n", self.name, "link", "set", "eth0", state)
        if state == "up":
            _run("ip", "-n", self.name, "route", "replace", "default", "via", GATEWAY)

    def shape(self, rate: str) -> None:
        """Let the host send no faster than ``rate``, as tc gives rates; "" lifts the limit."""
        queue = ("root", "tbf", "rate", rate, "burst", "256kb", "latency", "50ms") if rate else ("root",)
        _run("ip", "netns", "exec", self.name, "tc", "qdisc", "replace" if rate else "delete", "dev", "eth0", *queue)

    @property
    def sent_bytes(self) -> int:
        """How many bytes have left the host so far."""
        return int(Path(f"/sys/class/net/{self.cable}/statistics/rx_bytes").read_text())

    @property
    def cable(self) -> str:
        """The other end of its interface, at the bridge."""
        return f"{PREFIX}v{self.number}"

    def processes(self) -> list[psutil.Process]:
        """Return what runs there."""
        processes = []
        for pid in _run("ip", "netns", "pids", self.name, check=False).split():
            with suppress(psutil.NoSuchProcess):
                processes.append(psutil.Process(int(pid)))
        return processes

    def commands(self) -> list[str]:
        """Return the command lines of what runs there."""
        commands = []
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                commands.append(" ".join(process.cmdline()))
        return [command for command in commands if command]


HOSTS = tuple(Host(number) for number in range(1, COUNT + 1))


@contextmanager
def namespaces() -> Iterator[tuple[Host, ...]]:
    """Make the hosts; at the end nothing of them is left."""
    remove()
    try:
        _make_bridge()
        for host in HOSTS:
            _make(host)
        yield HOSTS
    finally:
        remove()


def made() -> list[str]:
    """Return what there is of hosts on this machine: namespaces, files of theirs, cables, the bridge."""
    return [str(path) for place in PLACES for path in Path(place).glob(f"{PREFIX}*")]


def left(hosts: Sequence[Host]) -> list[str]:
    """Return what runs on hosts besides their own servers."""
    commands = (f"{host.name}: {command}" for host in hosts for command in host.commands())
    return [command for command in commands if not any(daemon in command for daemon in DAEMONS)]


def remove() -> None:
    """End what runs in the namespaces, and take them away, also those of tests that were killed."""
    for host in HOSTS:
        if f"/run/netns/{host.name}" in made():
            end(host.processes())
            _run("ip", "netns", "delete", host.name)
        shutil.rmtree(_etc(host), ignore_errors=True)
    _run("ip", "link", "delete", BRIDGE, check=False)


def _make_bridge() -> None:
    _run("ip", "link", "add", BRIDGE, "type", "bridge")
    _run("ip", "address", "add", f"{GATEWAY}/24", "dev", BRIDGE)
    _run("ip", "link", "set", BRIDGE, "up")


def _make(host: Host) -> None:
    _run("ip", "netns", "add", host.name)
    _run("ip", "link", "add", host.cable, "type", "veth", "peer", "name", "eth0", "netns", host.name)
    _run("ip", "link", "set", host.cable, "master", BRIDGE, "up")
    _run("ip", "-n", host.name, "link", "set", "lo", "up")
    _run("ip", "-n", host.name, "address", "add", f"{host.address}/24", "dev", "eth0")
    _run("ip", "-n", host.name, "link", "set", "eth0", "up")
    _run("ip", "-n", host.name, "route", "add", "default", "via", GATEWAY)
    # `ip netns exec` lays these files over those of /etc. No name server: asking one would time out.
    _etc(host).mkdir(parents=True, exist_ok=True)
    (_etc(host) / "resolv.conf").write_text("")
    (_etc(host) / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{h.address} {h.name}\n" for h in HOSTS))
    wait_for(lambda: _run("ip", "netns", "exec", host.name, "ip", "route"), f"the route of {host.name}")


def _etc(host: Host) -> Path:
    return Path("/etc/netns") / host.name


def _run(*argv: str, check: bool = True) -> str:
    done = subprocess.run(argv, capture_output=True, text=True)
    assert not check or done.returncode == 0, f"{' '.join(argv)}: {done.stderr}"
    return done.stdout
