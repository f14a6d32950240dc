"""A Kubernetes on this machine, as far as runs need it: a real HTTP port, the objects behind it, and a kubelet.

It keeps what it is given, creates a pod for each Job, deletes what a deleted object owns, and refuses a name that
exists already. It does not check manifests: the tests do, against the published schemas.
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
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.command_line import wait_for

Manifest = dict[str, Any]
VERSION = {"major": "1", "minor": "30", "gitVersion": "v1.30.0-fake"}


@dataclass
class Kubelet:
    """Runs nothing: pods have these ``statuses`` and ``logs``, by host name; others wait for ever."""

    statuses: dict[str, Manifest] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)

    def start(self, pod: Manifest) -> None:
        """Begin to run a pod that was just created."""

    def status(self, pod: Manifest) -> Manifest:
        return self.statuses.get(pod["spec"]["hostname"], {"phase": "Pending"})

    def log(self, pod: Manifest) -> str:
        return self.logs.get(pod["spec"]["hostname"], "")

    def stop(self, pod: Manifest) -> None:
        """End a pod that was deleted."""


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

    def select(self, plural: str, selector: str = "") -> list[Manifest]:
        """Return the objects of a kind with these labels."""
        labels = dict(part.split("=") for part in selector.split(",") if part)
        selected = []
        with self.lock:
            for (kind, _), manifest in self.objects.items():
                if kind == plural and labels.items() <= manifest["metadata"]["labels"].items():
                    selected.append(manifest)
        if plural == "pods":
            return [pod | {"status": self.kubelet.status(pod)} for pod in selected]
        return selected

    def create(self, plural: str, manifest: Manifest) -> Manifest:
        with self.lock:
            name = manifest["metadata"]["name"]
            manifest["metadata"]["uid"] = str(uuid.uuid4())
            self.objects[plural, name] = manifest
            self.created.append(manifest)
            if plural == "jobs":
                self._create_pod(manifest, name, manifest["spec"]["template"])
            if plural == "mpijobs":
                self._create_mpi_pods(manifest)
            return manifest

    def delete(self, plural: str, name: str) -> bool:
        """Delete an object and all it owns, if it is there; a pod is there until it has ended."""
        with self.lock:
            deleted = self.objects.get((plural, name))
            if not deleted:
                return False
            if plural == "pods":
                self._end_pod(deleted)
                return True
            del self.objects[plural, name]
            owned = []
            for key, manifest in self.objects.items():
                owners = manifest["metadata"].get("ownerReferences", [])
                if deleted["metadata"]["uid"] in [owner["uid"] for owner in owners]:
                    owned.append(key)
        for key in owned:
            self.delete(*key)
        return True

    def _end_pod(self, pod: Manifest) -> None:
        def end() -> None:
            self.kubelet.stop(pod)
            with self.lock:
                self.objects.pop(("pods", pod["metadata"]["name"]))

        if not pod["metadata"].get("deletionTimestamp"):
            pod["metadata"]["deletionTimestamp"] = "now"
            threading.Thread(target=end).start()

    def _create_mpi_pods(self, job: Manifest) -> None:
        """Do what the operator does: one launcher, and workers with the names it gives them."""
        name, replicas = job["metadata"]["name"], job["spec"]["mpiReplicaSpecs"]
        hostnames = {f"{name}-launcher": "Launcher"}
        hostnames |= {f"{name}-worker-{index}": "Worker" for index in range(replicas["Worker"]["replicas"])}
        for hostname, kind in hostnames.items():
            template = replicas[kind]["template"]
            spec = {**template["spec"], "hostname": hostname, "subdomain": name}
            self._create_pod(job, hostname, {**template, "spec": spec})

    def _create_pod(self, owner: Manifest, name: str, template: Manifest) -> None:
        metadata = {
            **template["metadata"],
            "name": f"{name}-{uuid.uuid4().hex[:5]}",
            "ownerReferences": [{"uid": owner["metadata"]["uid"]}],
        }
        self.kubelet.start(self.create("pods", {"kind": "Pod", "metadata": metadata, "spec": template["spec"]}))


class _Handler(BaseHTTPRequestHandler):
    cluster: FakeKubernetes
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        plural, name, subresource = self._path_parts()
        if plural == "mpijobs" and not self.cluster.has_operator:
            self._refuse(404, "the server could not find the requested resource")
        elif plural == "version":
            self._answer(VERSION)
        elif subresource == "log":
            self._answer(self.cluster.kubelet.log(self.cluster.objects["pods", name]))
        elif not name:
            selector = parse_qs(urlsplit(self.path).query).get("labelSelector", [""])[0]
            self._answer({"kind": "List", "items": self.cluster.select(plural, selector)})
        elif manifest := self.cluster.objects.get((plural, name)):
            self._answer(manifest)
        else:
            self._refuse(404, f'{plural} "{name}" not found')

    def do_POST(self) -> None:
        plural, _, _ = self._path_parts()
        manifest = json.loads(self._body())
        if message := self.cluster.refusals.get(("POST", plural)):
            self._refuse(403, message)
        elif plural == "selfsubjectaccessreviews":
            attributes = manifest["spec"]["resourceAttributes"]
            is_allowed = (attributes["verb"], attributes["resource"]) not in self.cluster.refusals
            self._answer({"status": {"allowed": is_allowed}})
        elif (plural, manifest["metadata"]["name"]) in self.cluster.objects:
            self._refuse(409, f"{plural} {manifest['metadata']['name']!r} already exists")
        else:
            self._answer(self.cluster.create(plural, manifest), 201)

    def do_DELETE(self) -> None:
        plural, name, _ = self._path_parts()
        self._body()
        if message := self.cluster.refusals.get(("DELETE", plural)):
            self._refuse(403, message)
        elif self.cluster.delete(plural, name):
            self._answer({"status": "Success"})
        else:
            self._refuse(404, f'{plural} "{name}" not found')

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""

    def _path_parts(self) -> list[str]:
        """Return the plural of a kind, a name and a subresource; empty where the path has none."""
        path = re.sub(r"^/(api|apis/[^/]+)/[^/]+/(namespaces/[^/]+/)?", "", urlsplit(self.path).path)
        return [*path.strip("/").split("/"), "", ""][:3]

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _refuse(self, status: int, message: str) -> None:
        self._answer({"kind": "Status", "status": "Failure", "message": message, "code": status}, status)

    def _answer(self, content: Manifest | str, status: int = 200) -> None:
        body = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
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
            for pod in cluster.select("pods"):
                cluster.delete("pods", pod["metadata"]["name"])
            wait_for(lambda: not cluster.select("pods"), "the pods to end")
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
