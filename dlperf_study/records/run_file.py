"""The record of a run, ``run.json``, as ``docs/files.md`` describes it, and its digests of what the run left.

The digests tell a file that was changed later from the one that the run wrote. They are no signature: whoever changes a
file on purpose can write another digest. They find what an editor, a merge, a copy or a disk did.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from pydantic import TypeAdapter

from dlperf_study.core.errors import RecordError
from dlperf_study.core.large_files import require_end
from dlperf_study.core.paths import RunPaths
from dlperf_study.records.lines import Cores, Flops, Format
from dlperf_study.study import device_peaks, validation
from dlperf_study.study.job import RunStatus
from dlperf_study.study.record_types import Count, Integer, PositiveCount, Rule, Seconds, TypedDict, record_type

#: As in the cluster file; numbers by a format that this program does not know are read by none.
PeaksOfRecord = Annotated[device_peaks.PeakFlops, device_peaks.number_or(dict[str, device_peaks.PeakFlops])]
#: The keys of ``run.json``: the digests of the other files of the run, by name, and that of the record itself.
FILES, DIGEST = "files", "digest"


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
    interconnect: str
    network_interface: NotRequired[str]


@record_type
class HardwareFacts(TypedDict, total=False):
    """The hardware of a node, as far as known."""

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
    """The checkout that drove the run, or the version."""

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
    """What other processes did on the nodes."""

    waited_seconds: Seconds | None
    busy_cores_before: Cores | None
    busy_cores_during: Cores | None
    orphans_ended: list[str]


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
    """The user's program that trained, and its work in a step.

    ``digest``: of its declaration and its files. ``dirty``: a file that git tracks differs from the commit.
    """

    name: str
    command: str
    launch: str
    timing: str
    digest: str
    commit: str
    dirty: bool
    remote: str
    tokens_per_step: Annotated[float, Rule(gt=0, le=1e18)] | None
    flops_per_sample: Flops | None


@record_type
class CacheKeyParts(TypedDict, total=False):
    """What a fingerprint is made of besides the configuration.

    ``code``: the name of the benchmark code. ``packages``: versions by package. ``container``: the container image.
    ``image_folder``: where the images are. ``program``: a digest of the user's program.
    """

    code: str
    device: str
    python: str
    packages: dict[str, str]
    container: str
    image_folder: str
    program: str


@record_type
class RunRecord(TypedDict):
    """The content of ``run.json``."""

    format: Format
    configuration: dict[str, Any]
    configuration_id: str
    repetition: PositiveCount
    order: Literal["interleaved", "sequential", "by hand"]
    round: PositiveCount | None
    position: PositiveCount | None
    cache_key: str
    cache_key_definition: NotRequired[PositiveCount]
    cache_key_parts: NotRequired[CacheKeyParts]
    code: str
    code_modules: NotRequired[dict[str, str]]
    worker_code: NotRequired[str]
    program: NotRequired[ProgramRecord]
    flops_per_sample: NotRequired[Flops]
    status: Annotated[RunStatus, Rule(strict=False)]
    reason: str
    started: validation.PastTime | None
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


def add_digests(facts: Mapping[str, Any], paths: RunPaths) -> dict[str, Any]:
    """Return the record with digests of its files and its own."""
    files = {file.name: _digest_of_file(file) for file in paths.evidence_files}
    complete = {**facts, FILES: files}
    return complete | {DIGEST: _digest_of_record(complete)}


def check_digest(facts: Mapping[str, Any], source: str) -> None:
    """Raise RecordError where a record was changed, or lacks the digest that its version writes."""
    if DIGEST not in facts and {"cache_key_definition", "cache_key_parts", "code_modules"} <= facts.keys():
        raise RecordError(f"{source}: has no digest, which every record of this version has: it was changed")
    if DIGEST in facts and facts[DIGEST] != _digest_of_record(facts):
        raise RecordError(f"{source}: was changed after the run: it does not have the digest that it states")


def changed_files(facts: Mapping[str, Any], paths: RunPaths) -> Iterator[str]:
    """Yield which files are not those that the run left."""
    for name, digest in facts.get(FILES, {}).items():
        file = paths.folder / Path(name).name
        try:
            require_end(file)
            is_changed = _digest_of_file(file) != digest
        except OSError as error:
            yield f"{name} existed when the run ended, but cannot be read: {error.strerror}"
            continue
        except ValueError:
            yield f"{name!a} is not a file name: run.json was changed"
            continue
        if is_changed:
            yield f"{name} was changed after the run"


def _digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of_record(facts: Mapping[str, Any]) -> str:
    content = {key: value for key, value in facts.items() if key != DIGEST}
    return _digest(json.dumps(content, sort_keys=True).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
