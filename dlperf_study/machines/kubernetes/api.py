"""The API of Kubernetes as far as a run needs it, by the official client; the section ``kubernetes`` of a cluster file.

Objects are plain mappings. Only for the controller: training images may have no pydantic.
"""

import json
from contextlib import suppress
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from dlperf_study.core.errors import RunError, StudyFileError
from dlperf_study.core.user_commands import require_module
from dlperf_study.machines.cluster.sections import MAX_SECONDS, FilePath, String
from dlperf_study.machines.kubernetes.manifests import Manifest
from dlperf_study.study.validation import Section, matching

AbsolutePath = Annotated[str, matching(r"/[^\n]*", "an absolute path")]
Quantity = Annotated[
    str,
    # Outside of quotes, YAML reads a count as an integer.
    BeforeValidator(lambda value: str(value) if type(value) is int else value, json_schema_input_type=str | int),
    matching(r"\d+(?:\.\d+)?(?:[munkMGTPE]|[KMGTPE]i)?", 'a Kubernetes quantity in quotes, as "16" or "64Gi"'),
]


class KubernetesSettings(Section):
    """Where pods run, and their images and resources."""

    namespace: String = Field(default="default", description="it must exist")
    context: str = Field(default="", description="of the kubeconfig; left out: its current one")
    kubeconfig: FilePath = Field(default="", description="from this file's folder; left out: as kubectl finds it")
    images: dict[str, String] = Field(min_length=1, description="image by framework, or default: for all")
    image_pull_secrets: list[String] = Field(default=[], description="secrets of the namespace that fetch these images")
    start_within_seconds: float = Field(
        default=600.0, gt=0, le=MAX_SECONDS, description="how long a pod may wait for a node and its image"
    )
    resources: dict[str, Quantity] = Field(
        default={},
        description="of each pod, as request and limit; names with a '/', as rdma/hca, of pods of trainers only",
    )
    ipc_lock: bool = Field(default=False, description="capability IPC_LOCK for pods of ranks; RDMA needs it")
    host_network: bool = Field(default=False, description="pods of trainers use the network of their machine")
    node_selector: dict[str, str] = Field(default={}, description="labels of the nodes that may be used")
    tolerations: list[dict[str, Any]] = Field(default=[], description="taints of nodes that may be used, as in a pod")
    host_paths: list[AbsolutePath] = Field(default=[], description="folders of the node that pods see, read-only")
    mpi_operator: bool = Field(default=False, description="start Horovod as an MPIJob; needs the mpi-operator")


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
NOT_FOUND, FORBIDDEN = 404, 403


class KubernetesError(RunError):
    """An error of the API; ``status`` is 0 without an answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """One namespace of one cluster.

    Raises KubernetesError from every method, StudyFileError when the kubeconfig has no such cluster.
    """

    def __init__(self, settings: KubernetesSettings) -> None:
        require_module("kubernetes")
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
        """Return the objects of a kind with these labels."""
        objects = self._get(self._path(kind), label_selector=labels)
        if objects:
            return list(objects["items"])
        return []

    def has_kind(self, kind: str) -> bool:
        """Return whether the cluster has objects of this kind at all."""
        return self._get(self._path(kind)) is not None

    def log(self, pod: str) -> str:
        """Return what a pod has printed."""
        return self._request("get", f"{self._path('Pod')}/{pod}/log").decode(errors="replace")

    def delete(self, kind: str, name: str) -> None:
        """Delete an object and what it owns."""
        try:
            self._request("delete", f"{self._path(kind)}/{name}", propagation_policy="Background")
        except KubernetesError as error:
            if error.status != NOT_FOUND:
                raise

    def is_allowed(self, verb: str, kind: str, subresource: str = "") -> bool:
        """Return whether we may do this to a kind."""
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
