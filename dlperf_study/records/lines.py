"""The lines of rank logs and of telemetry, as ``docs/files.md`` describes them: declared once.

Standard library only: every training process writes such lines.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, NotRequired, TypeVar

from dlperf_study.study.communication import CollectiveKind, Communication, ProgramCommunication
from dlperf_study.study.record_types import Count, FormatNumber, PositiveCount, Rule, Seconds, TypedDict, record_type

#: The format of the record and the logs of a run, as ``docs/files.md`` describes it.
FORMAT = 2
#: The names of windows. Computation alone is measured before and after training, the communication of all gradients
#: alone last; a transfer of a part of them is named after its bytes.
WARMUP, TRAINING, COMMUNICATION_ALONE = "warmup", "training", "communication"
COMPUTATION_BEFORE, COMPUTATION_AFTER = "computation_before", "computation_after"
#: In this one batches arrive and nothing is trained.
INPUT = "input"
#: The kind of the last line of a log whose program ended early.
INCOMPLETE = "incomplete"
#: The windows of which every step has a batch.
WITH_BATCHES = (WARMUP, COMPUTATION_BEFORE, TRAINING, COMPUTATION_AFTER)


class WarmupEnd(StrEnum):
    """Why a warm-up ended."""

    STEADY = "steady"
    LIMIT = "limit"
    STEPS = "steps"


def part_of_communication(part: int | str) -> str:
    """Return the window's name of a part of the communication."""
    return f"{COMMUNICATION_ALONE}_{part}"


Format = Annotated[int, FormatNumber(FORMAT)]
Flops = Annotated[float, Rule(ge=1, le=1e18)]
#: It is halved at every overflow and doubled again: a factor of 0 or beyond float32 is none.
LossScale = Annotated[float, Rule(gt=0, le=3.4e38)]
Cores = Annotated[float, Rule(ge=0, le=1e6)]
#: The clock of the windows counts nanoseconds.
StepSeconds = Annotated[float, Rule(ge=1e-9, le=1e9)]
#: The format of telemetry.
TELEMETRY_FORMAT = 1
Amount = Annotated[float, Rule(ge=0, le=1e18)]
Share = Annotated[float, Rule(ge=0, le=1)]
Celsius = Annotated[int, Rule(ge=-273, le=1000)]
Megahertz = Annotated[int, Rule(ge=0, le=1_000_000)]


@record_type
class WallAnchor(TypedDict):
    """The same moment on the wall clock and the windows' clock."""

    unix_ns: Count
    clock_ns: Count


@record_type
class Tuning(TypedDict, total=False):
    """What the library has of ``TUNED`` after the first step, as far as known."""

    memory_format: Literal["nchw", "nhwc"]
    cudnn_autotune: Literal["enabled", "disabled"]
    fused_optimizer: Literal["fused", "foreach", "for_loop"]


@record_type
class CollectiveLine(TypedDict):
    """The collectives of one kind and group in a step.

    ``group``: the dimensions of the layout along which these differ, as ``data``; logs of earlier versions have none.
    """

    kind: CollectiveKind
    group: NotRequired[str]
    ranks: PositiveCount
    calls: PositiveCount
    bytes: PositiveCount


def communication_window_name(kind: CollectiveKind | None, group: str | None) -> str:
    """Return the window's name of collectives of a kind or group."""
    if kind:
        return part_of_communication(kind)
    return part_of_communication(f"over_{group}") if group else COMMUNICATION_ALONE


def size_of_collectives(
    collectives: Iterable[CollectiveLine], kind: CollectiveKind | None = None, group: str | None = None
) -> int:
    """Return the bytes of the collectives of a kind or group."""
    chosen = (line for line in collectives if kind in (None, line["kind"]) and group in (None, line.get("group")))
    return sum(line["bytes"] for line in chosen)


@record_type
class HeldBytes(TypedDict):
    """The bytes of parameters, gradients and optimizer state of a rank."""

    weights: Count
    gradients: Count
    optimizer: Count


class RecordedBy(StrEnum):
    """Who measured a rank."""

    WORKER = "worker"
    RECORDER = "recorder"
    LOG = "log"


class Scope(StrEnum):
    """Whether a rank log is of one rank or of the job."""

    RANK = "rank"
    JOB = "job"


@record_type
class MeasuringProcess(TypedDict):
    """The first line of every rank log: which process measured."""

    kind: Literal["rank"]
    format: Format
    run: str
    code: str
    recorded_by: NotRequired[Annotated[RecordedBy, Rule(strict=False)]]
    scope: NotRequired[Annotated[Scope, Rule(strict=False)]]
    rank: Count
    world_size: PositiveCount
    node: Count
    local_rank: Count
    host: str
    pid: Count
    clock: NotRequired[str]
    wall_anchor: WallAnchor
    device: str
    library: str
    library_version: str
    library_commit: NotRequired[str]
    interpreter: NotRequired[str]
    cuda: NotRequired[str]
    communication_library: NotRequired[str]
    computed_in: NotRequired[str]
    first_steps: NotRequired[PositiveCount]
    first_steps_seconds: NotRequired[Seconds]
    tuning: NotRequired[Tuning]


@record_type
class RankLine(MeasuringProcess):
    """The first line of a rank log of the worker."""

    parameters: PositiveCount
    gradient_bytes: Count
    communication: Communication
    flops_per_sample: Flops | None
    flops_source: NotRequired[str]
    hardware_flops_per_sample: NotRequired[Flops]
    communication_threads: Count
    collective_operations: NotRequired[list[CollectiveLine]]
    held_bytes: NotRequired[HeldBytes]


@record_type
class ProgramRankLine(MeasuringProcess):
    """The first line of a rank log of a user's program."""

    communication: ProgramCommunication
    recorder: NotRequired[PositiveCount]
    flops_per_sample: NotRequired[Flops | None]
    communication_threads: NotRequired[Count]
    parameters: NotRequired[PositiveCount]
    gradient_bytes: NotRequired[Count]
    sharded: NotRequired[bool]


Values = TypeVar("Values")


@dataclass(frozen=True)
class MeasuredWindow(Generic[Values]):
    """Measured steps of one kind: in memory, and in a log.

    ``step_seconds`` has one value per step; ``losses`` too, or none, and they may be any numbers: whether a run with
    such losses counts is not a matter of its form. ``input_seconds``: how much of each step was waiting for its batch.
    ``bytes`` is of a transfer only, ``ended_by`` of the warm-up only, ``skipped_steps`` of steps with loss scaling:
    how many updated nothing. ``begin_ns`` is when it began, on the clock of its node. ``samples``, ``tokens``: what
    this rank trained in each step, where its program says that. A log that prints the mean of ``steps_per_value``
    steps has one value for them. The second type of a field of values is the type in a line.
    """

    name: str
    steps: Count
    seconds: Seconds
    step_seconds: Annotated[Values, list[StepSeconds]]
    losses: Annotated[Values, list[Annotated[float, Rule(allow_inf_nan=True)]]]
    input_seconds: Annotated[Values | None, list[Seconds]] = None
    bytes: Annotated[int | None, Count | None] = None
    ended_by: Annotated[WarmupEnd | None, Annotated[WarmupEnd, Rule(strict=False)] | None] = None
    skipped_steps: Annotated[int | None, Count] = None
    begin_ns: Annotated[int | None, Count] = None
    samples: Annotated[Values | None, list[Amount]] = None
    tokens: Annotated[Values | None, list[Amount]] = None
    steps_per_value: PositiveCount = 1

    def line(self) -> dict[str, Any]:
        """Return the line of a log, without empty fields."""
        line = {"kind": "window"}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value != entry.default:
                line[entry.name] = value
        return line


#: A window of a training process.
TimedWindow = MeasuredWindow[list[float]]


@record_type
class Calibration(TypedDict):
    """A fixed loop before and after training: iterations, and both times."""

    iterations: PositiveCount
    seconds: list[StepSeconds]


@record_type
class InjectedWait(TypedDict):
    """The waits that the self-test added to the steps."""

    steps: Count
    step_seconds: StepSeconds
    waited_seconds: Seconds


@record_type
class PeakMemory(TypedDict, total=False):
    """The peak memory of a rank in training, as far known."""

    process_bytes: PositiveCount
    allocated_bytes: PositiveCount
    reserved_bytes: PositiveCount


@record_type
class CpuLimit(TypedDict):
    """The cores of a rank, and their use in training."""

    cores: Cores
    cpu_seconds: Seconds
    periods: Count
    throttled_periods: Count
    throttled_seconds: Seconds


@record_type
class LogEnd(TypedDict):
    """The last line of every rank log."""

    kind: Literal["end"]
    windows: Count
    drain_seconds: Seconds
    drain_resolution_seconds: Seconds
    peak_memory: NotRequired[PeakMemory]
    loss_scale: NotRequired[LossScale]
    injected: NotRequired[InjectedWait]
    cpu_limit: NotRequired[CpuLimit]
    calibration: NotRequired[Calibration]
    background_cores: NotRequired[Cores]
    computation_obstacle: NotRequired[str]


@record_type
class EndLine(LogEnd):
    """The last line of a rank log of the worker."""

    parameter_checksum: str
    initial_checksum: str


@record_type
class ProgramEndLine(LogEnd):
    """The last line of a rank log of a user's program.

    ``copied_bytes``: of what was restored after compute-only steps.
    """

    parameter_checksum: NotRequired[str]
    initial_checksum: NotRequired[str]
    copied_bytes: NotRequired[Count]


@record_type
class IncompleteLine(TypedDict):
    """The last line of a program that ended early."""

    kind: Literal["incomplete"]
    steps: Count
    requested: PositiveCount
    reason: str


@record_type
class GpuFacts(TypedDict):
    """A GPU that ranks of the node use, and what limits it."""

    uuid: str
    name: NotRequired[str]
    memory_bytes: NotRequired[Count]
    power_limit_watts: NotRequired[Amount]
    default_power_limit_watts: NotRequired[Amount]
    largest_sm_clock_mhz: NotRequired[Megahertz]
    largest_memory_clock_mhz: NotRequired[Megahertz]


@record_type
class GpuSample(TypedDict, total=False):
    """The state of a GPU, as far as it reports it."""

    utilisation: Share
    memory_used_bytes: Count
    power_watts: Amount
    energy_joules: Amount
    sm_clock_mhz: Megahertz
    memory_clock_mhz: Megahertz
    temperature_celsius: Celsius
    clock_limits: Count
    process_ids: list[Count]
    run_process_ids: list[Count]


@record_type
class NodeSample(TypedDict):
    """The state of a node at one time."""

    kind: Literal["before", "sample"]
    clock_ns: Count
    sampling_seconds: Seconds
    memory_used_bytes: Count
    cpu_energy_joules: dict[str, Amount]
    network_bytes: NotRequired[dict[str, Count]]
    gpus: list[GpuSample]


@record_type
class FirstLine(TypedDict):
    """Whose telemetry it is."""

    kind: Literal["telemetry"]
    format: Annotated[int, FormatNumber(TELEMETRY_FORMAT)]
    node: Count
    host: str
    interval_seconds: Seconds
    clock: NotRequired[str]
    wall_anchor: WallAnchor
    gpus: list[GpuFacts]
    obstacles: dict[str, str]


@record_type
class LastLine(TypedDict):
    """How many samples there are, and what was not reported."""

    kind: Literal["end"]
    samples: PositiveCount
    not_reported: dict[str, dict[str, str]]
