"""A Kubernetes on this machine, as far as runs need it: a real HTTP port, the objects behind it, and a kubelet.

It keeps what it is given, makes a pod for each Job, deletes what a deleted object owns, and refuses a name that is
there already. What it does not do is check: the tests do, against the published schemas.
"""

import json
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from tests.command_line import wait_for

Manifest = dict[str, Any]
VERSION = {"major": "1", "minor": "30", "gitVersion": "v1.30.0-fake"}


class Kubelet(Protocol):
    """Who runs pods."""

    def start(self, pod: Manifest) -> None:
        """Begin to run a pod that was just made."""

    def status(self, pod: Manifest) -> Manifest:
        """Return what a pod's status is now."""

    def log(self, pod: Manifest) -> str:
        """Return what a pod has printed."""

    def stop(self, pod: Manifest) -> None:
        """End a pod that was deleted."""


@dataclass
class Scripted:
    """A kubelet that runs nothing: ``statuses`` and ``logs`` by a pod's host name; others wait for ever."""

    statuses: dict[str, Manifest] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)

    def start(self, pod: Manifest) -> None:
        pass

    def status(self, pod: Manifest) -> Manifest:
        return self.statuses.get(pod["spec"]["hostname"], {"phase": "Pending"})

    def log(self, pod: Manifest) -> str:
        return self.logs.get(pod["spec"]["hostname"], "")

    def stop(self, pod: Manifest) -> None:
        pass


@dataclass
class FakeKubernetes:
    """The objects by plural of their kind and by name; ``refusals`` are messages by method and plural.

    ``has_operator``: whether it knows MPIJobs.
    """

    kubelet: Kubelet
    kubeconfig: Path
    objects: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    created: list[Manifest] = field(default_factory=list)
    refusals: dict[tuple[str, str], str] = field(default_factory=dict)
    has_operator: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)

    def of(self, plural: str, selector: str = "") -> list[Manifest]:
        """Return the objects of a kind with these labels."""
        wanted = dict(part.split("=") for part in selector.split(",") if part)
        with self.lock:
            return [
                made
                for (kind, _), made in self.objects.items()
                if kind == plural and wanted.items() <= made["metadata"]["labels"].items()
            ]

    def create(self, plural: str, made: Manifest) -> Manifest:
        with self.lock:
            made["metadata"]["uid"] = str(uuid.uuid4())
            self.objects[plural, made["metadata"]["name"]] = made
            self.created.append(made)
            if plural == "jobs":
                self._make_pod(made, made["metadata"]["name"], made["spec"]["template"])
            if plural == "mpijobs":
                self._make_mpi_pods(made)
            return made

    def delete(self, plural: str, name: str) -> Manifest | None:
        """Delete an object and all it owns; a pod is there until it has ended."""
        with self.lock:
            gone = self.objects.get((plural, name))
            if gone and plural == "pods":
                self._end_pod(gone)
            elif gone:
                del self.objects[plural, name]
            owned = [key for key, made in self.objects.items() if gone and _owned(made, gone)]
        for key in owned:
            self.delete(*key)
        return gone

    def _end_pod(self, pod: Manifest) -> None:
        def end() -> None:
            self.kubelet.stop(pod)
            with self.lock:
                self.objects.pop(("pods", pod["metadata"]["name"]))

        if not pod["metadata"].get("deletionTimestamp"):
            pod["metadata"]["deletionTimestamp"] = "now"
            threading.Thread(target=end).start()

    def pods(self, selector: str) -> list[Manifest]:
        return [pod | {"status": self.kubelet.status(pod)} for pod in self.of("pods", selector)]

    def _make_mpi_pods(self, job: Manifest) -> None:
        """Do what the operator does: one launcher, and workers with the names it gives them."""
        name, replicas = job["metadata"]["name"], job["spec"]["mpiReplicaSpecs"]
        names = [("Launcher", f"{name}-launcher")]
        names += [("Worker", f"{name}-worker-{k}") for k in range(replicas["Worker"]["replicas"])]
        for kind, hostname in names:
            template = replicas[kind]["template"]
            named = {**template["spec"], "hostname": hostname, "subdomain": name}
            self._make_pod(job, hostname, {**template, "spec": named})

    def _make_pod(self, owner: Manifest, name: str, template: Manifest) -> None:
        reference = {"kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        metadata = {**template["metadata"], "name": f"{name}-{uuid.uuid4().hex[:5]}", "ownerReferences": [reference]}
        pod = self.create("pods", {"kind": "Pod", "metadata": metadata, "spec": template["spec"]})
        self.kubelet.start(pod)


def _owned(made: Manifest, owner: Manifest) -> bool:
    return owner["metadata"]["uid"] in [one["uid"] for one in made["metadata"].get("ownerReferences", [])]


class _Handler(BaseHTTPRequestHandler):
    cluster: FakeKubernetes
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, query = self._asked()
        plural, name, sub = path
        if plural == "mpijobs" and not self.cluster.has_operator:
            self._refuse(404, "the server could not find the requested resource")
        elif plural == "version":
            self._answer(VERSION)
        elif sub == "log":
            self._text(self.cluster.kubelet.log(self.cluster.objects["pods", name]))
        elif name:
            found = self.cluster.objects.get((plural, name))
            self._answer(found) if found else self._refuse(404, f'{plural} "{name}" not found')
        else:
            selector = query.get("labelSelector", [""])[0]
            items = self.cluster.pods(selector) if plural == "pods" else self.cluster.of(plural, selector)
            self._answer({"kind": "List", "items": items})

    def do_POST(self) -> None:
        (plural, _, _), _ = self._asked()
        made = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if message := self.cluster.refusals.get(("POST", plural)):
            self._refuse(403, message)
        elif plural == "selfsubjectaccessreviews":
            asked = made["spec"]["resourceAttributes"]
            self._answer({"status": {"allowed": (asked["verb"], asked["resource"]) not in self.cluster.refusals}})
        elif (plural, made["metadata"]["name"]) in self.cluster.objects:
            self._refuse(409, f"{plural} {made['metadata']['name']!r} already exists")
        else:
            self._answer(self.cluster.create(plural, made), 201)

    def do_DELETE(self) -> None:
        (plural, name, _), _ = self._asked()
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if message := self.cluster.refusals.get(("DELETE", plural)):
            self._refuse(403, message)
            return
        gone = self.cluster.delete(plural, name)
        self._answer({"status": "Success"}) if gone else self._refuse(404, f'{plural} "{name}" not found')

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""

    def _asked(self) -> tuple[tuple[str, str, str], dict[str, list[str]]]:
        url = urlsplit(self.path)
        rest = re.sub(r"^/(api|apis/[^/]+)/[^/]+/(namespaces/[^/]+/)?", "", url.path).strip("/")
        plural, name, sub = [*rest.split("/"), "", ""][:3]
        return (plural, name, sub), parse_qs(url.query)

    def _answer(self, content: Manifest, status: int = 200) -> None:
        self._send(json.dumps(content).encode(), "application/json", status)

    def _refuse(self, status: int, message: str) -> None:
        self._answer({"kind": "Status", "status": "Failure", "message": message, "code": status}, status)

    def _text(self, text: str) -> None:
        self._send(text.encode(), "text/plain", 200)

    def _send(self, body: bytes, kind: str, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def fake_kubernetes(folder: Path, kubelet: Kubelet) -> Iterator[FakeKubernetes]:
    """Serve a cluster on a free port of this machine, and write the kubeconfig that leads to it."""
    cluster = FakeKubernetes(kubelet, folder / "kubeconfig")
    handler = type("Handler", (_Handler,), {"cluster": cluster})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        cluster.kubeconfig.write_text(_kubeconfig(server.server_address[1]))
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield cluster
        finally:
            for pod in cluster.of("pods"):
                cluster.delete("pods", pod["metadata"]["name"])
            wait_for(lambda: not cluster.of("pods"), "the pods to end")
            server.shutdown()


def _kubeconfig(port: int) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "nobody"}}],
            "current-context": "fake",
        }
    )
