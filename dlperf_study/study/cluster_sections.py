"""What a cluster file may hold below its first level: the shape and the bounds of every section."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dlperf_study.study.parameters import MOST_DEVICES_PER_NODE
from dlperf_study.study.problems import Section

DAY_SECONDS = 24 * 3600
MOST_SECONDS = 30 * DAY_SECONDS
#: What the sbatch script says itself, in sbatch's long and short names.
OWN_OPTIONS = (
    *("--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node", "--time", "-t", "--job-name", "-J", "--partition", "-p"),
    *("--account", "-A", "--output", "-o", "--error", "-e", "--array", "-a", "--wait", "-W", "--wrap", "--chdir", "-D"),
    *("--comment", "--export", "--requeue", "--no-requeue", "--parsable"),
)


def _matching(pattern: str, what: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"it must be {what}")
        return text

    return AfterValidator(check)


def _option(text: str) -> str:
    if not re.fullmatch(r"--?[A-Za-z][^\n]*", text):
        raise ValueError("it must be one option of sbatch, as --constraint=v100")
    name = re.split(r"[=\s]", text, maxsplit=1)[0]
    own = [option for option in OWN_OPTIONS if name == option or (len(option) == 2 and name.startswith(option))]
    if own and not (name.startswith("--") and name not in OWN_OPTIONS):
        raise ValueError(f"{own[0]} is set by this package")
    return text


Text = Annotated[str, Field(min_length=1)]
Words = list[Text]
#: Begins with no dash, so that no command takes it for an option.
HostName = Annotated[
    str, _matching(r"(?:[\w.-]+@)?[A-Za-z0-9][\w.-]*", "a host name, an address, or a name of the ssh configuration")
]
VariableName = Annotated[str, _matching(r"[A-Za-z_]\w*", "the name of an environment variable")]
Variables = dict[VariableName, str]
Interface = Annotated[str, _matching(r"[\w.:-]{0,15}", "the name of a network interface, as `ip link` shows it")]
AbsolutePath = Annotated[str, _matching(r"/[^\n]*", "an absolute path")]
SbatchOption = Annotated[str, AfterValidator(_option)]
Quantity = Annotated[
    str, _matching(r"\d+(?:\.\d+)?(?:[munkMGTPE]|[KMGTPE]i)?", 'a Kubernetes quantity in quotes, as "16" or "64Gi"')
]


class IdleSection(Section):
    """How quiet a machine must be before a run starts."""

    max_busy_cores: float = Field(
        default=0.5, gt=0, le=MOST_DEVICES_PER_NODE, description="cores other processes may keep busy"
    )
    wait_seconds: float = Field(default=20.0, ge=0, le=DAY_SECONDS, description="how long to wait for that")


class SshSection(Section):
    """How hosts are reached; only with launcher ssh."""

    config_file: str = Field(default="", description="configuration of ssh, from this file's folder; left out: yours")


class SlurmSection(Section):
    """How jobs are put into the queue; only with launcher slurm."""

    partition: str = Field(default="", description="left out: Slurm's default")
    account: str = Field(default="", description="left out: your default")
    options: list[SbatchOption] = Field(default=[], description="further options of sbatch, one each")
    jobs_in_queue: int = Field(default=1, ge=1, le=1000, description="configurations in the queue at once")
    start_within_seconds: float = Field(
        default=float(DAY_SECONDS), gt=0, le=MOST_SECONDS, description="how long a job may wait to be started"
    )
    poll_seconds: float = Field(default=5.0, gt=0, le=3600, description="how often Slurm is asked")


class KubernetesSection(Section):
    """Where pods run and of what they are made; only with launcher kubernetes."""

    namespace: Text = Field(default="default", description="it must exist")
    context: str = Field(default="", description="of the kubeconfig; left out: its current one")
    kubeconfig: str = Field(default="", description="from this file's folder; left out: as kubectl finds it")
    images: dict[str, Text] = Field(min_length=1, description="image by framework, or default: for all")
    image_pull_secrets: Words = Field(default=[], description="secrets of the namespace that fetch these images")
    start_within_seconds: float = Field(
        default=600.0, gt=0, le=MOST_SECONDS, description="how long a pod may wait for a node and its image"
    )
    resources: dict[str, Quantity] = Field(default={}, description="of each pod, as request and limit")
    node_selector: dict[str, str] = Field(default={}, description="labels of the nodes that may be used")
    tolerations: list[dict[str, Any]] = Field(default=[], description="taints of nodes that may be used, as in a pod")
    host_paths: list[AbsolutePath] = Field(default=[], description="folders of the node that pods see, read-only")
    mpi_operator: bool = Field(default=False, description="start Horovod as an MPIJob; needs the mpi-operator")


SECTIONS: dict[str, type[Section]] = {
    "idle": IdleSection,
    "ssh": SshSection,
    "slurm": SlurmSection,
    "kubernetes": KubernetesSection,
}
