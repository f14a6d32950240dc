"""Whose logs they are: what somebody stated of each configuration, and which logs are which of its runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from dlperf_study.errors import IdentityError
from dlperf_study.logs.rank_merge import Devices
from dlperf_study.study.configuration import FIELD_NAMES, PARAMETERS, Configuration
from dlperf_study.study.grid import format_values
from dlperf_study.study.parameter import Scalar
from dlperf_study.wording import counted

#: What the ingestion itself gives.
_GIVEN = ("study", "quick", "repeats")
#: What must be stated of every configuration: without it no rate is a job's, and no two can be compared.
NEEDED = tuple(name for name, entry in PARAMETERS.items() if entry.always_known and name not in _GIVEN)
#: What stands in a configuration for a text that nobody stated.
UNSTATED = "unstated"


@dataclass(frozen=True)
class LogRun:
    """One repetition: the places of its logs below the folder."""

    repetition: int
    logs: tuple[str, ...]


@dataclass(frozen=True)
class Extras:
    """What may be stated besides the parameters.

    ``format``: of logs that hold several. ``steps_planned``: how many steps every run was asked for.
    ``tokens_per_sample``: for programs that print tokens. ``devices_per_process``: how many devices one process drives
    that prints for all of them; one where it is not stated. The rest as in the columns of the same name.
    """

    format: str = ""
    steps_planned: int | None = None
    tokens_per_sample: int | None = None
    devices_per_process: int | None = None
    device: str | None = None
    device_name: str | None = None
    link: str | None = None
    library: str | None = None
    library_version: str | None = None


@dataclass(frozen=True)
class Stated:
    """One configuration as somebody stated it, and its runs.

    ``parameters``: in the words of our columns; what is not in it nobody stated. ``extras``: what helps to read the
    logs, by the names of ``EXTRAS``. ``source``: who states it, for messages.
    """

    parameters: Mapping[str, Scalar]
    runs: tuple[LogRun, ...]
    source: str
    extras: Extras

    def configuration(self, study: str) -> Configuration:
        """Return it as a configuration; what is not stated has a value there that means nothing."""
        texts = dict.fromkeys(("cluster", "strategy"), UNSTATED)
        values = {**texts, **self.parameters, "study": study, "quick": False, "repeats": len(self.runs)}
        return Configuration.from_mapping(values, self.source)

    @property
    def jobs_devices(self) -> Devices:
        """What its logs are of, with a process for a rank: its batch is that of all devices it drives."""
        names = ("nodes", "devices_per_node", "batch_per_device")
        nodes, devices, batch = (int(self.parameters[name]) for name in names)
        driven = self.extras.devices_per_process or 1
        return Devices(nodes, devices // driven, batch * driven)

    @property
    def key(self) -> tuple[tuple[str, Scalar], ...]:
        """All that is stated of the configuration, so that two can be compared."""
        return tuple(sorted(self.parameters.items()))

    @property
    def unstated(self) -> tuple[str, ...]:
        """The parameters that nobody stated."""
        return tuple(name for name in FIELD_NAMES if name not in self.parameters and name not in _GIVEN)


EXTRAS = tuple(field.name for field in fields(Extras))


@dataclass(frozen=True)
class Identity:
    """Everything that is stated about some logs. ``baseline``: values that make a configuration its baseline."""

    study: str
    scaling: str
    baseline: Mapping[str, Scalar]
    configurations: tuple[Stated, ...]

    @property
    def logs(self) -> list[str]:
        """The places of all logs that it names."""
        return [log for stated in self.configurations for run in stated.runs for log in run.logs]

    def of_no_run(self, places: Iterable[str]) -> list[str]:
        """Return the places that it names no run of."""
        named = set(self.logs)
        return [place for place in places if place not in named]

    def checked(self) -> "Identity":
        """Return it; raises IdentityError with everything that contradicts itself."""
        problems = list(problems_of(self.configurations))
        if problems:
            raise IdentityError("\n".join(dict.fromkeys(problems)))
        return self


def problems_of(configurations: Sequence[Stated]) -> Iterator[str]:
    """Yield what keeps stated configurations from being ingested: each log is one run's, each run is there once."""
    for stated in configurations:
        yield from _lacking(stated)
        counts = Counter(run.repetition for run in stated.runs)
        for repetition in (number for number, count in counts.items() if count > 1):
            logs = ", ".join(log for run in stated.runs if run.repetition == repetition for log in run.logs)
            yield f"{stated.source}: repetition {repetition} is there {counts[repetition]} times: {logs}"
    named = Counter(log for stated in configurations for run in stated.runs for log in run.logs)
    yield from (f"{log}: named {count} times, but it is one run's" for log, count in named.items() if count > 1)
    yield from _same(configurations)


def _lacking(stated: Stated) -> Iterator[str]:
    lacking = [name for name in NEEDED if name not in stated.parameters]
    if lacking:
        yield f"{stated.source}: {', '.join(lacking)} not stated"
        return
    if not stated.runs:
        yield f"{stated.source}: it names no run"
    devices, driven = int(stated.parameters["devices_per_node"]), stated.extras.devices_per_process or 1
    if devices % driven:
        said = f"devices_per_process is {driven}, but a node has {counted(devices, 'device')}, no multiple of it"
        yield f"{stated.source}: {said}"


def _same(configurations: Sequence[Stated]) -> Iterator[str]:
    seen: dict[str, Stated] = {}
    for stated in configurations:
        if any(name not in stated.parameters for name in NEEDED):
            continue
        other = seen.setdefault(stated.configuration(UNSTATED).identity, stated)
        if other is not stated:
            said = format_values({name: stated.parameters[name] for name in NEEDED})
            places = f"{_first_log(other)} and {_first_log(stated)}"
            yield f"{stated.source}: {places} state the same ({said}): state in what they differ, or part them"


def _first_log(stated: Stated) -> str:
    return next((log for run in stated.runs for log in run.logs), stated.source)


def merged(configurations: Sequence[Stated]) -> list[Stated]:
    """Return configurations that state the same as one, with the runs of both."""
    groups: dict[tuple[object, Extras], Stated] = {}
    for stated in configurations:
        key = (stated.key, stated.extras)
        known = groups.get(key)
        groups[key] = replace(known, runs=(*known.runs, *stated.runs)) if known else stated
    return list(groups.values())
