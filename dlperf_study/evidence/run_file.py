"""The records of a run, as ``docs/evidence.md`` describes them: ``run.json``, and the lines of a rank log."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import TypeAdapter

from dlperf_study.evidence.lines import Cores, Flops, Format
from dlperf_study.study.device_peaks import PeakFlops, number_or
from dlperf_study.study.job import Outcome
from dlperf_study.study.record_types import Count, Integer, PositiveCount, Rule, Seconds, TypedDict, record_type
from dlperf_study.study.validation import PastTime

#: As in the cluster file; numbers by a format that this program does not know are read by none.
PeaksOfRecord = Annotated[PeakFlops, number_or(dict[str, PeakFlops])]


@record_type
class ClusterFacts(TypedDict):
    """What a reader of numbers must know of a cluster file."""

    name: str
    launcher: str
    nodes: Count
    devices_per_node: Count
    device: str
    device_name: str
    device_peak_flops: PeaksOfRecord | None
    link: str
    network_interface: NotRequired[str]


@record_type
class HardwareFacts(TypedDict, total=False):
    """The hardware of a node; what could not be found out is missing or null."""

    host: str
    cpu_model: str | None
    cpu_mhz: Annotated[float, Rule(ge=0, le=1e6)] | None
    cpu_cache_bytes: Count | None
    cpu_governor: str | None
    cores: PositiveCount | None
    memory_bytes: Count | None
    gpu_driver: str | None


@record_type
class GpuSupportFacts(TypedDict, total=False):
    """The versions that the library of a node is built with."""

    cuda: str
    cudnn: str
    nccl: str


@record_type
class GitFacts(TypedDict, total=False):
    """The checkout that drove the run, or the version of the installed package; empty for a copy of a checkout."""

    commit: str
    dirty: bool
    installed: str


@record_type
class Environment(TypedDict):
    """The hardware and software of the first node."""

    hardware: HardwareFacts
    software: dict[str, str]
    variables: dict[str, str]
    git: GitFacts


@record_type
class RecordedLoad(TypedDict):
    """What other processes did on the nodes: seconds, cores, and those that earlier runs had left."""

    waited_seconds: Seconds | None
    busy_cores_before: Cores | None
    busy_cores_during: Cores | None
    survivors_ended: list[str]


@record_type
class NodeReport(TypedDict):
    """What a node reported."""

    name: str
    address: NotRequired[str]
    interface: NotRequired[str]
    hardware: NotRequired[HardwareFacts]
    gpu_support: NotRequired[GpuSupportFacts]


@record_type
class DiagnosticRecord(TypedDict):
    """A diagnostic that was found when the run was recorded."""

    subject: str
    message: str


@record_type
class ProgramRecord(TypedDict):
    """The user's program that trained: what was started, of which commit, and how much work a step of it is.

    ``digest``: of its declaration and its files. ``dirty``: a file that git tracks differs from the commit.
    """

    name: str
    command: str
    start: str
    steps: str
    digest: str
    commit: str
    dirty: bool
    remote: str
    tokens_per_step: Annotated[float, Rule(gt=0, le=1e18)] | None
    flops_per_sample: Flops | None


@record_type
class RunRecord(TypedDict):
    """The content of ``run.json``."""

    format: Format
    configuration: dict[str, Any]
    configuration_identity: str
    repetition: PositiveCount
    order: Literal["rounds", "blocks", "by hand"]
    round: PositiveCount | None
    position: PositiveCount | None
    fingerprint: str
    fingerprint_definition: NotRequired[PositiveCount]
    code: str
    worker_code: NotRequired[str]
    program: NotRequired[ProgramRecord]
    outcome: Annotated[Outcome, Rule(strict=False)]
    reason: str
    started: PastTime | None
    seconds: Seconds | None
    exit_codes: dict[str, Integer | None]
    ranks_expected: PositiveCount
    ranks_seen: list[Count]
    cluster: ClusterFacts
    environment: Environment
    nodes: list[NodeReport]
    load: RecordedLoad
    diagnostics: list[DiagnosticRecord]
    tail: NotRequired[dict[str, list[str]]]
    files: NotRequired[dict[str, str]]
    digest: NotRequired[str]


RUN_RECORD = TypeAdapter(RunRecord)
