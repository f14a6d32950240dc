"""Metadata of logs: their configurations and runs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain

from dlperf_study.core.errors import MetadataError
from dlperf_study.core.wording import counted
from dlperf_study.logs.log_files import LogFile
from dlperf_study.logs.rank_checks import JobSize
from dlperf_study.study.configuration import FIELD_NAMES, PARAMETERS, Configuration
from dlperf_study.study.grid import format_values
from dlperf_study.study.parameter import Scalar

#: Parameters that the ingestion itself sets.
_SET_BY_INGESTION = ("study", "quick", "repetitions")
#: What must be declared of every configuration: without it no throughput is a job's, and no two can be compared.
REQUIRED = tuple(name for name, entry in PARAMETERS.items() if entry.always_known and name not in _SET_BY_INGESTION)
UNSTATED = "unstated"


@dataclass(frozen=True)
class LogRun:
    """One repetition: the paths of its logs, and which ``part`` of them, from 1."""

    repetition: int
    logs: tuple[str, ...]
    part: int = 0


@dataclass(frozen=True)
class Extras:
    """Optional metadata besides the parameters.

    ``format``: of logs with several formats. ``global_batch``: of one update, if devices have no whole number of
    samples. ``steps_planned``: the requested steps of every run. ``tokens_per_sample``: for programs that print tokens.
    ``samples_per_epoch``: for programs that print the time of an epoch. ``devices_per_process``: devices of one process
    that prints for all of them; default 1. The rest as in the columns of the same name.
    """

    format: str = ""
    global_batch: int | None = None
    steps_planned: int | None = None
    tokens_per_sample: int | None = None
    samples_per_epoch: int | None = None
    devices_per_process: int | None = None
    device: str | None = None
    device_name: str | None = None
    interconnect: str | None = None
    library: str | None = None
    library_version: str | None = None


EXTRAS = tuple(field.name for field in fields(Extras))


@dataclass(frozen=True)
class LogMetadata:
    """Declared or inferred metadata of one configuration, and its runs.

    ``parameters``: by column of the dataset; others are unstated. ``extras``: what helps to read the logs. ``source``:
    where the metadata are from, for messages.
    """

    parameters: Mapping[str, Scalar]
    runs: tuple[LogRun, ...]
    source: str
    extras: Extras

    def configuration(self, study: str) -> Configuration:
        """Return it as a configuration; unstated parameters have meaningless values there."""
        strings = dict.fromkeys(("cluster", "strategy"), UNSTATED)
        values = {**strings, **self.parameters, "study": study, "quick": False, "repetitions": len(self.runs)}
        return Configuration.from_mapping(values, self.source)

    @property
    def devices(self) -> int:
        """The number of all devices."""
        return int(self.parameters["nodes"]) * int(self.parameters["devices_per_node"])

    @property
    def global_batch(self) -> int:
        """The samples of one update of the whole job."""
        return self.extras.global_batch or int(self.parameters["batch_per_device"]) * self.devices

    @property
    def job_size(self) -> JobSize:
        """The size of the job; each process counts as a rank."""
        nodes, devices_per_node = int(self.parameters["nodes"]), int(self.parameters["devices_per_node"])
        per_process = self.extras.devices_per_process or 1
        batch = self.global_batch * per_process / self.devices
        return JobSize(nodes, devices_per_node // per_process, int(batch) if batch.is_integer() else batch, per_process)

    @property
    def key(self) -> tuple[tuple[str, Scalar], ...]:
        """All parameters, so that two configurations can be compared."""
        return tuple(sorted(self.parameters.items()))

    @property
    def missing(self) -> list[str]:
        """The required parameters that it does not have."""
        return [name for name in REQUIRED if name not in self.parameters]

    @property
    def unstated(self) -> tuple[str, ...]:
        """The parameters of a configuration that it does not have."""
        return tuple(name for name in FIELD_NAMES if name not in self.parameters and name not in _SET_BY_INGESTION)

    @property
    def logs(self) -> list[str]:
        """The paths of all its logs."""
        return list(chain.from_iterable(run.logs for run in self.runs))


@dataclass(frozen=True)
class StudyMetadata:
    """Metadata of a study; ``baseline``: values of its baselines."""

    name: str
    scaling: str
    baseline: Mapping[str, Scalar]
    configurations: tuple[LogMetadata, ...]

    @property
    def logs(self) -> list[str]:
        """The paths of all logs that it names."""
        return list(chain.from_iterable(metadata.logs for metadata in self.configurations))

    @property
    def first_logs(self) -> dict[tuple[str, int], str]:
        """The first log of each run, by identity and repetition."""
        logs: dict[tuple[str, int], str] = {}
        for metadata in self.configurations:
            configuration_id = metadata.configuration(self.name).configuration_id
            logs |= {(configuration_id, run.repetition): run.logs[0] for run in metadata.runs}
        return logs

    def unused_files(self, files: Iterable[LogFile]) -> list[str]:
        """Return the files that belong to no run."""
        named = set(self.logs)
        return [file.relative_path for file in files if file.relative_path not in named]

    def checked(self) -> "StudyMetadata":
        """Return it; raises MetadataError with all its problems."""
        problems = list(metadata_problems(self.configurations))
        if problems:
            raise MetadataError("\n".join(dict.fromkeys(problems)))
        return self


def merge_equal(configurations: Sequence[LogMetadata]) -> list[LogMetadata]:
    """Merge configurations with equal metadata."""
    merged: dict[tuple[object, Extras], LogMetadata] = {}
    for metadata in configurations:
        key = (metadata.key, metadata.extras)
        earlier = merged.get(key)
        merged[key] = replace(earlier, runs=(*earlier.runs, *metadata.runs)) if earlier else metadata
    return list(merged.values())


def metadata_problems(configurations: Sequence[LogMetadata]) -> Iterator[str]:
    """Yield why configurations can't be ingested."""
    for metadata in configurations:
        yield from _required_problems(metadata)
        repetitions: dict[int, list[LogRun]] = defaultdict(list)
        for run in metadata.runs:
            repetitions[run.repetition].append(run)
        for repetition, runs in repetitions.items():
            if len(runs) > 1:
                logs = ", ".join(chain.from_iterable(run.logs for run in runs))
                yield f"{metadata.source}: repetition {repetition} appears {len(runs)} times: {logs}"
    runs_of_all = chain.from_iterable(metadata.runs for metadata in configurations)
    counts = Counter((log, run.part) for run in runs_of_all for log in run.logs)
    for (log, part), count in counts.items():
        if count > 1 or (part and (log, 0) in counts):
            times = count + counts[log, 0] * bool(part)
            remedy = "if it has several runs, state the part of each"
            yield f"{log}: named {times} times, but a log belongs to one run; {remedy}"
    yield from _equal_configurations(configurations)


def _required_problems(metadata: LogMetadata) -> Iterator[str]:
    if metadata.missing:
        yield f"{metadata.source}: {', '.join(metadata.missing)} not stated"
        return
    if not metadata.runs:
        yield f"{metadata.source}: has no run"
    devices = int(metadata.parameters["devices_per_node"])
    per_process = metadata.extras.devices_per_process or 1
    if devices % per_process:
        node = counted(devices, "device")
        yield f"{metadata.source}: devices_per_process is {per_process}, but a node has {node}, not a multiple"


def _equal_configurations(configurations: Sequence[LogMetadata]) -> Iterator[str]:
    """Yield configurations that do not differ."""
    earlier: dict[str, LogMetadata] = {}
    for metadata in configurations:
        if metadata.missing:
            continue
        first = earlier.setdefault(metadata.configuration(UNSTATED).configuration_id, metadata)
        if first is not metadata:
            parameters = format_values({name: metadata.parameters[name] for name in REQUIRED})
            logs = f"{next(iter(first.logs), first.source)} and {next(iter(metadata.logs), metadata.source)}"
            yield f"{metadata.source}: {logs} state the same ({parameters}); state the difference, or separate them"
