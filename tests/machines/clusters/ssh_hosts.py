"""Hosts with ssh servers: each also has processes of its own, which die with it."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dlperf_study.machines.supervision.processes import end
from tests.command_line import wait_for
from tests.machines.clusters.namespaces import Host, left

SERVER = "/usr/sbin/sshd"
CLIENT = """\
Host *
  User root
  IdentityFile {folder}/{key}
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  StrictHostKeyChecking yes
  BatchMode yes
"""
HOST = "Host {name}\n  HostName {address}\n  HostKeyAlias {name}\n"


@dataclass(frozen=True)
class SshHosts:
    """The hosts, and where their keys lie; they don't see what lies in ``hidden``.

    What they write in ``work`` is seen by nobody else.
    """

    hosts: tuple[Host, ...]
    folder: Path
    servers: "dict[Host, subprocess.Popen[bytes]]" = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self.folder / "config"

    @property
    def config_with_wrong_key(self) -> Path:
        return self.folder / "wrong"

    @property
    def hidden(self) -> Path:
        return self.folder / "hidden"

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def start(self, host: Host, before: str = "true") -> None:
        """Start the server of a host; ``before`` is a command for its shell, which may mount what only it sees."""
        server = f"{SERVER} -D -f {self.folder}/server -h {self.folder}/{host.name} -E {self.folder}/{host.name}.log"
        mounts = " && ".join(f"mount -t tmpfs none {folder}" for folder in (self.hidden, self.work))
        script = f"{mounts} && {before} && exec {server} -o ListenAddress={host.address}"
        apart = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script)
        self.servers[host] = subprocess.Popen(host.argv(*apart), stdin=subprocess.DEVNULL)
        wait_for(lambda: self.answers(host), f"the ssh server of {host.name}")

    def stop(self, host: Host) -> None:
        """Let a host die, with all that runs on it."""
        end(host.processes())
        self.servers.pop(host).wait()

    def answers(self, host: Host) -> bool:
        return self.run(host, "true").returncode == 0

    def run(self, host: Host, command: str) -> "subprocess.CompletedProcess[str]":
        argv = ["ssh", "-F", str(self.config), host.name, command]
        return subprocess.run(argv, capture_output=True, text=True, timeout=30)

    def left(self) -> list[str]:
        """Return what runs on the hosts besides their servers."""
        return left(self.hosts)


@contextmanager
def running_servers(folder: Path, hosts: Sequence[Host]) -> Iterator[SshHosts]:
    """Start the servers of all hosts; at the end none is left."""
    made = SshHosts(tuple(hosts), folder)
    _write_keys(made)
    Path("/run/sshd").mkdir(exist_ok=True)
    try:
        for host in hosts:
            made.start(host)
        yield made
    finally:
        for host in tuple(made.servers):
            made.stop(host)


def _write_keys(made: SshHosts) -> None:
    folder = made.folder
    made.hidden.mkdir()
    made.work.mkdir()
    for name in ("right", "wrong_key", *(host.name for host in made.hosts)):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    known = (f"{host.name} {(folder / f'{host.name}.pub').read_text()}" for host in made.hosts)
    (folder / "known_hosts").write_text("".join(known))
    aliases = "".join(HOST.format(name=host.name, address=host.address) for host in made.hosts)
    made.config.write_text(aliases + CLIENT.format(folder=folder, key="right"))
    made.config_with_wrong_key.write_text(aliases + CLIENT.format(folder=folder, key="wrong_key"))
    (folder / "server").write_text(_SERVER.format(folder=folder))


_SERVER = """\
Port 22
AuthorizedKeysFile {folder}/right.pub
PidFile none
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
MaxStartups 100:30:200
PrintMotd no
"""
