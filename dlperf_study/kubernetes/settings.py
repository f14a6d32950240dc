"""The section ``kubernetes`` of a cluster file. Only for the driver: training images may have no pydantic."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from dlperf_study.cluster.cluster import DEFAULT
from dlperf_study.cluster.sections import MAX_SECONDS, FilePath, String, matching
from dlperf_study.study.validation import Section

AbsolutePath = Annotated[str, matching(r"/[^\n]*", "an absolute path")]
Quantity = Annotated[
    str,
    # Outside of quotes, YAML reads a count as an integer.
    BeforeValidator(lambda value: str(value) if type(value) is int else value, json_schema_input_type=str | int),
    matching(r"\d+(?:\.\d+)?(?:[munkMGTPE]|[KMGTPE]i)?", 'a Kubernetes quantity in quotes, as "16" or "64Gi"'),
]


class KubernetesSettings(Section):
    """Where pods run and of what they are made; only with launcher kubernetes."""

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
    ipc_lock: bool = Field(default=False, description="capability IPC_LOCK for pods of trainers, which RDMA needs")
    host_network: bool = Field(default=False, description="pods of trainers use the network of their machine")
    node_selector: dict[str, str] = Field(default={}, description="labels of the nodes that may be used")
    tolerations: list[dict[str, Any]] = Field(default=[], description="taints of nodes that may be used, as in a pod")
    host_paths: list[AbsolutePath] = Field(default=[], description="folders of the node that pods see, read-only")
    mpi_operator: bool = Field(default=False, description="start Horovod as an MPIJob; needs the mpi-operator")

    def image_for(self, framework: str) -> str | None:
        """Return the image that has the framework's library, if the cluster file names one."""
        return self.images.get(framework) or self.images.get(DEFAULT)
