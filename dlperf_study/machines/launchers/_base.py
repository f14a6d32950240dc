"""What a launcher declares."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlperf_study.machines.check import CheckResult
from dlperf_study.machines.cluster import DEFAULT, Cluster, cluster_file
from dlperf_study.machines.node_agent.submission import Execute, Node, Submission
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.job import Job, ProgramFacts


@dataclass(frozen=True)
class Queue:
    """The limits of a queue: waiting time and configurations."""

    start_within_seconds: float
    jobs_in_queue: int = 1


@dataclass(frozen=True)
class Launcher(cluster_file.LauncherFacts):
    """A way to start a job on the nodes of a cluster; ``docs/plugins.md`` describes the fields."""

    name: str
    render: Callable[[Job, Cluster, Path], Submission]
    execute: Execute
    nodes: Callable[[Cluster], Sequence[Node]]
    check: Callable[[Cluster, ProgramFacts], Iterator[CheckResult]]
    # No work of it outlives the process that executes it.
    cancel: Callable[[Path, Cluster], None] = lambda folder, cluster: None
    # The Python that trains is also the Python here.
    representative_node: Callable[[Cluster], Node] = lambda cluster: Node()
    queue: Callable[[Cluster], Queue | None] = lambda cluster: None
    images: Callable[[Cluster], Mapping[str, str]] | None = None
    # Only a node can say whether it can limit its processes, and a run there fails with the reason.
    cpu_limit_obstacle: Callable[[Cluster, Configuration], str] = lambda cluster, configuration: ""
    most_archive_bytes: int | None = None
    archive_remedy: str = ""

    @property
    def uses_images(self) -> bool:
        """Whether tasks run in container images."""
        return self.images is not None

    def image(self, cluster: Cluster, framework: str) -> str:
        """Return the container image in which a framework trains; empty without images."""
        images = self.images(cluster) if self.images else {}
        return images.get(framework) or images.get(DEFAULT) or ""
