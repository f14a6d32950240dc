"""The few calls of the Kubernetes API that a run needs, by the official client. Objects are plain mappings."""

import json
from contextlib import suppress
from typing import Any

from dlperf_study.errors import RunError, StudyFileError
from dlperf_study.kubernetes.manifests import Manifest
from dlperf_study.kubernetes.settings import KubernetesSettings

#: The path of each kind of object that a run consists of.
PATHS = {
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
    "MPIJob": "/apis/kubeflow.org/v2beta1/namespaces/{namespace}/mpijobs",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "Secret": "/api/v1/namespaces/{namespace}/secrets",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
}
ACCESS_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REQUEST_SECONDS = 30.0
NOT_FOUND = 404


class KubernetesError(RunError):
    """What the API refused, or that it can't be reached; ``status`` is that of HTTP, 0 without an answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """One namespace of one cluster.

    Raises KubernetesError from every method, StudyFileError when the kubeconfig has no such cluster.
    """

    def __init__(self, settings: KubernetesSettings) -> None:
        from kubernetes.dynamic import DynamicClient

        self.namespace = settings.namespace
        # Nothing is discovered: the paths above have been the same since Kubernetes 1.21.
        self._client = DynamicClient(_connection(settings), discoverer=lambda client, cache_file: None)

    def version(self) -> str:
        """Return the version of the API server."""
        return str(self._json("get", "/version")["gitVersion"])

    def create(self, manifest: Manifest) -> Manifest:
        """Create an object; return it as it is kept."""
        return self._json("post", self._path(manifest["kind"]), body=manifest)

    def find(self, kind: str, name: str) -> Manifest | None:
        """Return an object by its name, or None."""
        return self._get(f"{self._path(kind)}/{name}")

    def list(self, kind: str, labels: str) -> list[Manifest]:
        """Return the objects with these labels; none of a kind that the cluster doesn't know."""
        objects = self._get(self._path(kind), label_selector=labels)
        return list(objects["items"]) if objects else []

    def has_kind(self, kind: str) -> bool:
        """Return whether the cluster has objects of this kind at all."""
        return self._get(self._path(kind)) is not None

    def log(self, pod: str) -> str:
        """Return what a pod has printed."""
        return self._request("get", f"{self._path('Pod')}/{pod}/log").decode(errors="replace")

    def delete(self, kind: str, name: str) -> None:
        """Delete an object and, in the background, what it owns; one that has gone is deleted."""
        try:
            self._request("delete", f"{self._path(kind)}/{name}", propagation_policy="Background")
        except KubernetesError as error:
            if error.status != NOT_FOUND:
                raise

    def is_allowed(self, verb: str, kind: str, subresource: str = "") -> bool:
        """Return whether we may do this to objects of a kind, or to a subresource of them, as their log."""
        group = PATHS[kind].split("/")[2] if PATHS[kind].startswith("/apis/") else ""
        attributes = {
            "namespace": self.namespace,
            "verb": verb,
            "group": group,
            "resource": PATHS[kind].rpartition("/")[2],
            "subresource": subresource,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        return bool(self._json("post", ACCESS_REVIEW, body=review)["status"]["allowed"])

    def _path(self, kind: str) -> str:
        return PATHS[kind].format(namespace=self.namespace)

    def _get(self, path: str, **options: Any) -> Manifest | None:
        """Return what is at a path, None when nothing is."""
        try:
            return self._json("get", path, **options)
        except KubernetesError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def _json(self, method: str, path: str, **options: Any) -> Manifest:
        return dict(json.loads(self._request(method, path, **options)))

    def _request(self, method: str, path: str, **options: Any) -> bytes:
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        try:
            response = self._client.request(method, path, serialize=False, _request_timeout=REQUEST_SECONDS, **options)
        except ApiException as error:
            message = error.body
            with suppress(TypeError, ValueError, KeyError):
                message = json.loads(error.body)["message"]
            raise KubernetesError(f"Kubernetes: {method} {path}: {error.status} {message}", error.status) from error
        except HTTPError as error:
            raise KubernetesError(f"Kubernetes can't be reached: {method} {path}: {error}") from error
        return bytes(response.data)


def _connection(settings: KubernetesSettings) -> Any:
    import urllib3
    from kubernetes import client, config
    from kubernetes.config.config_exception import ConfigException

    configuration = client.Configuration()
    try:
        config.load_kube_config(
            config_file=settings.kubeconfig or None,
            context=settings.context or None,
            client_configuration=configuration,
        )
    except ConfigException as error:
        raise StudyFileError(f"kubernetes: {error}; name kubeconfig and context in the cluster file") from error
    if not configuration.verify_ssl:
        # The kubeconfig wants it so; a warning at every request would bury everything else.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return client.ApiClient(configuration)
