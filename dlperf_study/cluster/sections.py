"""What a cluster file may hold: the shape and the bounds of every key, section by section."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from dlperf_study.study.parameters import MAX_DEVICES_PER_NODE, MAX_NODES
from dlperf_study.study.validation import Section

AUTO = "auto"
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


def _number_or_auto(value: Any) -> int | None:
    if value == AUTO:
        return None
    if type(value) is int and 1 <= value <= MAX_DEVICES_PER_NODE:
        return value
    raise ValueError(f"it must be a whole number from 1 to {MAX_DEVICES_PER_NODE}, or auto")


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


NumberOrAuto = Annotated[
    int | None,
    BeforeValidator(
        _number_or_auto, json_schema_input_type=Annotated[int, Field(ge=1, le=MAX_DEVICES_PER_NODE)] | Literal["auto"]
    ),
]


class IdleSection(Section):
    """How quiet a machine must be before a run starts."""

    max_busy_cores: float = Field(
        default=0.5, gt=0, le=MAX_DEVICES_PER_NODE, description="cores other processes may keep busy"
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


class ClusterFile(Section):
    """The machines a study runs on."""

    launcher: str = Field(min_length=1, description="how processes are started: a file in dlperf_study/launchers")
    hosts: list[HostName] = Field(default=[], description="one name per node, as ssh takes it; with launcher ssh")
    nodes: Annotated[int, Field(ge=1, le=MAX_NODES)] | None = Field(
        default=None, description="machines; left out: as many as hosts"
    )
    devices_per_node: NumberOrAuto = Field(description="devices of each; auto: what this machine has")
    device: Literal["cpu", "gpu", "auto"] = Field(description="auto: gpu where there is an NVIDIA GPU")
    device_name: str = Field(min_length=1, description="as its maker names it; auto: as this machine reports it")
    device_peak_flops: float | None = Field(
        default=None, ge=1e6, le=1e18, description="FLOP/s of one device; without it no MFU"
    )
    link: str = Field(min_length=1, description="what connects the nodes")
    idle: IdleSection = IdleSection()
    python: dict[str, Text] = Field(
        default={}, description="another Python for a framework: name to path; default: for all, and for the guards"
    )
    network_interface: Interface = Field(default="", description="that exchanges use; left out: as each library does")
    shared_files: bool | None = Field(default=None, description="whether outputs/ is the same folder on every node")
    work_folder: str = Field(default="", description="where nodes without it write; left out: their temporary folder")
    environment: Variables = Field(default={}, description="variables of every training process")
    pass_environment: list[VariableName] = Field(default=[], description="further variables to pass from your shell")
    container: Words = Field(default=[], description="what every training command is put behind, as apptainer exec")
    ssh: SshSection | None = None
    slurm: SlurmSection | None = None
    kubernetes: KubernetesSection | None = None


KEYS = {"": tuple(ClusterFile.model_fields), **{name: tuple(s.model_fields) for name, s in SECTIONS.items()}}
