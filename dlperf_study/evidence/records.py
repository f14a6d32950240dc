"""The records of a run, as ``docs/evidence.md`` describes them: ``run.json``, and the lines of a rank log."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from dlperf_study.evidence.rank_log_writer import FORMAT, WarmupEnd
from dlperf_study.study.device_peaks import PeakFlops, number_or
from dlperf_study.study.job import Outcome
from dlperf_study.study.json_record import (
    RECORD,
    Count,
    Integer,
    PastTime,
    PositiveCount,
    Seconds,
    format_number,
)

Format = Annotated[int, format_number(FORMAT)]
#: As in the cluster file; numbers by a format that this program does not know are read by none.
PeaksOfRecord = Annotated[PeakFlops, number_or(dict[str, PeakFlops])]
Flops = Annotated[float, Field(ge=1, le=1e18)]
#: It is halved at every overflow and doubled again: a factor of 0 or beyond float32 is none.
LossScale = Annotated[float, Field(gt=0, le=3.4e38)]
Cores = Annotated[float, Field(ge=0, le=1e6)]
#: The clock of the windows counts nanoseconds.
StepSeconds = Annotated[float, Field(ge=1e-9, le=1e9)]
#: How gradients travel: not at all, by averaging among the ranks, or to servers and back as parameters; in the last way
#: servers apply the mean of a step once all ranks have pushed.
Exchange = Literal["none", "all_reduce", "push_pull", "synchronous_push_pull"]


@with_config(RECORD)
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


@with_config(RECORD)
class HardwareFacts(TypedDict, total=False):
    """The hardware of a node; what could not be found out is missing or null."""

    host: str
    cpu_model: str | None
    cpu_governor: str | None
    cores: PositiveCount | None
    memory_bytes: Count | None
    gpu_driver: str | None


@with_config(RECORD)
class GpuSupportFacts(TypedDict, total=False):
    """The versions that the library of a node is built with."""

    cuda: str
    cudnn: str
    nccl: str


@with_config(RECORD)
class GitFacts(TypedDict, total=False):
    """The checkout that drove the run; empty outside of one."""

    commit: str
    dirty: bool


@with_config(RECORD)
class Environment(TypedDict):
    """The hardware and software of the first node."""

    hardware: HardwareFacts
    software: dict[str, str]
    variables: dict[str, str]
    git: GitFacts


@with_config(RECORD)
class Load(TypedDict):
    """What other processes did on the nodes: seconds, cores, and those that earlier runs had left."""

    waited_seconds: Seconds | None
    busy_cores_before: Cores | None
    busy_cores_during: Cores | None
    survivors_ended: list[str]


@with_config(RECORD)
class NodeReport(TypedDict):
    """What a node reported."""

    name: str
    address: NotRequired[str]
    interface: NotRequired[str]
    hardware: NotRequired[HardwareFacts]
    gpu_support: NotRequired[GpuSupportFacts]


@with_config(RECORD)
class DiagnosticRecord(TypedDict):
    """A diagnostic that was found when the run was recorded."""

    subject: str
    message: str


@with_config(RECORD)
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
    code: str
    outcome: Annotated[Outcome, Field(strict=False)]
    reason: str
    started: PastTime | None
    seconds: Seconds | None
    exit_codes: dict[str, Integer | None]
    ranks_expected: PositiveCount
    ranks_seen: list[Count]
    cluster: ClusterFacts
    environment: Environment
    nodes: list[NodeReport]
    load: Load
    diagnostics: list[DiagnosticRecord]
    tail: NotRequired[dict[str, list[str]]]


@with_config(RECORD)
class WallAnchor(TypedDict):
    """The same moment on the clock of the wall and on that of the windows."""

    unix_ns: Count
    clock_ns: Count


@with_config(RECORD)
class Tuning(TypedDict, total=False):
    """The levels that the library had after the first step; without what it can't be asked."""

    memory_format: Literal["nchw", "nhwc"]
    cudnn_autotune: Literal["enabled", "disabled"]
    fused_optimizer: Literal["fused", "foreach", "for_loop"]


@with_config(RECORD)
class RankLine(TypedDict):
    """The first line of a rank log: which process measured."""

    kind: Literal["rank"]
    format: Format
    run: str
    code: str
    rank: Count
    world_size: PositiveCount
    node: Count
    local_rank: Count
    host: str
    pid: Count
    wall_anchor: WallAnchor
    device: str
    library: str
    library_version: str
    parameters: PositiveCount
    gradient_bytes: Count
    flops_per_sample: Flops | None
    exchange: Exchange
    exchange_threads: Count
    exchange_library: NotRequired[str]
    computed_in: NotRequired[str]
    first_steps: NotRequired[PositiveCount]
    first_steps_seconds: NotRequired[Seconds]
    tuning: NotRequired[Tuning]


@with_config(RECORD)
class WindowLine(TypedDict):
    """A window. Losses may be any numbers here: whether a run with such losses counts is not a matter of its form."""

    kind: Literal["window"]
    name: str
    steps: Count
    seconds: Seconds
    step_seconds: list[StepSeconds]
    losses: list[Annotated[float, Field(allow_inf_nan=True)]]
    input_seconds: NotRequired[list[Seconds]]
    bytes: NotRequired[Count | None]
    ended_by: NotRequired[Annotated[WarmupEnd, Field(strict=False)] | None]
    skipped_steps: NotRequired[Count]
    begin_ns: NotRequired[Count]


@with_config(RECORD)
class PlantedWait(TypedDict):
    """The waits that a study of the self-test added to the steps of a rank."""

    steps: Count
    step_seconds: StepSeconds
    waited_seconds: Seconds


@with_config(RECORD)
class PeakMemory(TypedDict, total=False):
    """The most bytes that a rank held in its training window; without what its library or kernel does not count."""

    process_bytes: PositiveCount
    allocated_bytes: PositiveCount
    reserved_bytes: PositiveCount


@with_config(RECORD)
class CpuLimit(TypedDict):
    """How many cores a rank could use, and what was counted of it in its training window."""

    cores: Cores
    cpu_seconds: Seconds
    periods: Count
    throttled_periods: Count
    throttled_seconds: Seconds


@with_config(RECORD)
class EndLine(TypedDict):
    """The last line of a rank log."""

    kind: Literal["end"]
    windows: Count
    parameter_checksum: str
    initial_checksum: str
    drain_seconds: Seconds
    drain_resolution_seconds: Seconds
    peak_memory: NotRequired[PeakMemory]
    loss_scale: NotRequired[LossScale]
    planted: NotRequired[PlantedWait]
    cpu_limit: NotRequired[CpuLimit]


RUN_RECORD = TypeAdapter(RunRecord)
RANK_LINE, WINDOW_LINE, END_LINE = TypeAdapter(RankLine), TypeAdapter(WindowLine), TypeAdapter(EndLine)
