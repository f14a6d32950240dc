"""A kubelet whose nodes are the hosts: a pod is a process in a host's network, with mounts of its own."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dlperf_study.core.paths import PROJECT
from dlperf_study.machines.supervision.processes import end
from tests.machines.clusters.kubernetes import FakeKubernetes, Kubelet, Manifest
from tests.machines.clusters.namespaces import Host

GRACE_SECONDS = 10
#: The processes of a pod see only each other, and go when the first of them goes.
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")
#: Mounts the pod's folders over /run, and the names of the pods over those of the host; then becomes the command.
ENTER = """
mount --make-rprivate / && mount -t tmpfs none /run && mount --bind "$1/hosts" /etc/hosts || exit 99
mkdir -p /run/dlperf-study && mount --bind "$1" /run/dlperf-study || exit 99
hostname "$2"
shift 2
while [ ! -e /run/dlperf-study/secret/environment.json ]; do sleep 0.05; done
exec "$@"
"""


@dataclass(kw_only=True)
class Pods(Kubelet):
    """Pods as processes; each gets the next free host. The image is this machine's Python."""

    folder: Path
    hosts: Sequence[Host]
    cluster: FakeKubernetes | None = None
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    placed: dict[str, Host] = field(default_factory=dict)

    def start(self, pod: Manifest) -> None:
        name, spec = pod["metadata"]["name"], pod["spec"]
        home = self._home(name)
        host = next(host for host in self.hosts if host not in self.placed.values())
        self.placed[name] = host
        self._write_names(f"{host.address} {spec['hostname']}.{spec['subdomain']} {spec['hostname']}\n")
        [container] = spec["containers"]
        command = [word.replace("$(POD_IP)", host.address) for word in container["command"]]
        with open(home / "log", "wb") as log:
            self.running[name] = subprocess.Popen(
                host.argv(*UNSHARE, "sh", "-c", ENTER, "sh", str(home), spec["hostname"], *command),
                env={**os.environ, "POD_IP": host.address, "PYTHONPATH": str(PROJECT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def status(self, pod: Manifest) -> Manifest:
        name = pod["metadata"]["name"]
        self._mount_files(name)
        code = self.running[name].poll() if name in self.running else None
        if code is None:
            return {"phase": "Running"}
        terminated = {"exitCode": code % 256, "reason": "Completed" if code == 0 else "Error"}
        phase = "Failed" if code else "Succeeded"
        return {"phase": phase, "containerStatuses": [{"state": {"terminated": terminated}}]}

    def log(self, pod: Manifest) -> str:
        return (self._home(pod["metadata"]["name"]) / "log").read_text()

    def stop(self, pod: Manifest) -> None:
        name = pod["metadata"]["name"]
        process = self.running[name]
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        del self.running[name], self.placed[name]

    def kill(self, hostname: str) -> None:
        """End everything in a pod at once, as a node that goes away does."""
        for name, host in self.placed.items():
            if f"-{hostname}-" in name:
                end(host.processes())

    def _home(self, name: str) -> Path:
        home = self.folder / name
        for part in ("secret", "node"):
            (home / part).mkdir(parents=True, exist_ok=True)
        (home / "hosts").touch()
        return home

    def _write_names(self, line: str) -> None:
        """Add the name of a pod to what all pods know, those to come included."""
        names = self.folder / "names"
        with open(names, "a") as file:
            file.write(line)
        for home in self.folder.glob("*/hosts"):
            home.write_text("127.0.0.1 localhost\n" + names.read_text())

    def _mount_files(self, name: str) -> None:
        """Write what the pod mounts to where it waits for it, once it was created."""
        assert self.cluster
        for manifest in self.cluster.select("secrets"):
            if name.startswith(manifest["metadata"]["name"]):
                for file_name, text in manifest["stringData"].items():
                    file = self._home(name) / "secret" / file_name
                    file.with_suffix(".new").write_text(text)
                    file.with_suffix(".new").rename(file)
