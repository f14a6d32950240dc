"""A proposal: whose logs they are, as DLPerf's names of folders and files say. A person confirms it."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dlperf_study.errors import LogError
from dlperf_study.ingest.identity import Extras, LogRun, Stated
from dlperf_study.ingest.log_files import Found, stem
from dlperf_study.logs.blocks import Blocks
from dlperf_study.logs.format_detection import recognised, the_one
from dlperf_study.study.configuration import canonical_precision
from dlperf_study.study.parameter import Scalar

# What names of files and folders tell: DLPerf's convention, and which rank or node printed a log.


#: ``{N}n{G}g``: nodes, and GPUs of each; nobody has a million of them.
CASE = re.compile(r"(?P<nodes>[1-9]\d{0,5})n(?P<devices_per_node>[1-9]\d{0,5})[gd]", re.IGNORECASE)
#: ``{model}_b{batch}_{precision}_{repetition}``; the last may be a date with its time.
RUN = re.compile(
    r"(?P<model>.+)_b(?:s|z)?(?P<batch>[1-9]\d{0,8})_(?P<precision>.+)_(?P<repetition>\d{1,18})", re.IGNORECASE
)
#: What numbers a rank or a node at the end of a name: ``rank-3``, ``workerlog.0``, ``node1``, an address.
_PRINTER = re.compile(
    r"(?:^|[-_. ])(?:(?:rank|node|host|trainer|proc(?:ess)?|worker(?:log)?)s?[-_. ]?\d+|\d{1,3}(?:\.\d{1,3}){3})$",
    re.IGNORECASE,
)
#: What numbers a repetition, and so nobody who printed it.
_REPETITION = re.compile(
    r"(?:^|[-_. ])(?:runs?|rep|repeats?|repetitions?|trials?|try|attempts?)[-_. ]?\d+$", re.IGNORECASE
)
#: A number at the end of a name, as long as a table can hold it.
_NUMBER = re.compile(r"(?<!\d)\d{1,18}$")


@dataclass(frozen=True)
class Conventional:
    """What a place says that follows the convention.

    ``above``: the folders over the case. ``printer``: the part that tells logs of one run apart, empty without one.
    """

    above: tuple[str, ...]
    case: str
    nodes: int
    devices_per_node: int
    model: str
    batch_per_device: int
    precision: str
    repetition: int
    printer: str

    @property
    def world_size(self) -> int:
        """All devices of all nodes."""
        return self.nodes * self.devices_per_node


def conventional(parts: Sequence[str]) -> Conventional | None:
    """Return what a place says, or None where it does not follow the convention."""
    stems = [stem(part) for part in parts]
    cases = [index for index, part in enumerate(map(_without_archive, stems)) if CASE.fullmatch(part)]
    runs = [index for index, part in enumerate(stems) if RUN.fullmatch(_without_printer(part))]
    if not cases or not runs or runs[-1] <= cases[-1]:
        return None
    case = _without_archive(stems[cases[-1]])
    size, run = CASE.fullmatch(case), RUN.fullmatch(_without_printer(stems[runs[-1]]))
    if not size or not run:
        return None
    rest = [part for index, part in enumerate(stems) if index > cases[-1] and index != runs[-1]]
    own = stems[runs[-1]].removeprefix(_without_printer(stems[runs[-1]]))
    return Conventional(
        above=tuple(parts[: cases[-1]]),
        case=case,
        nodes=int(size["nodes"]),
        devices_per_node=int(size["devices_per_node"]),
        model=run["model"],
        batch_per_device=int(run["batch"]),
        precision=run["precision"],
        repetition=int(run["repetition"]),
        printer="/".join(filter(None, [*rest, own])),
    )


def below_configuration(parts: Sequence[str]) -> tuple[int | None, str]:
    """Return repetition and printer of a log by its names below the folder of its configuration.

    The repetition is the number that the first of these ends in, unless that is a rank's or a node's.
    """
    first, *rest = map(stem, parts)
    name = _without_printer(first)
    found = _NUMBER.search(name)
    return (int(found[0]) if found else None), "/".join(filter(None, [first.removeprefix(name), *rest]))


def one_run(printers: Sequence[str], devices: int) -> bool:
    """Say whether several logs of one repetition are those of its ranks or nodes: each names another one."""
    return len(set(printers)) == len(printers) <= devices and all(map(_names_a_printer, printers))


def _names_a_printer(printer: str) -> bool:
    return any(_PRINTER.search(part) or _is_number_of_rank(part) for part in printer.split("/"))


def _is_number_of_rank(part: str) -> bool:
    return bool(_NUMBER.search(part)) and not _REPETITION.search(part)


def _without_printer(part: str) -> str:
    """Return a name without the rank or node behind it."""
    return _PRINTER.sub("", part)


def _without_archive(part: str) -> str:
    return part.removesuffix(".zip")


#: A trainer per device and no server, as everywhere in DLPerf.
NO_SERVERS = 0

Group = tuple[tuple[str, ...], int, int, str, int, str]


def proposed(files: Sequence[Found]) -> list[Stated]:
    """Return the configurations that the names of files tell; the names of others tell none."""
    groups: dict[Group, list[tuple[Conventional, Found]]] = defaultdict(list)
    for file in files:
        said = conventional(file.parts)
        if said:
            groups[_group(said)].append((said, file))
    return [_stated(members) for members in groups.values()]


def _group(said: Conventional) -> Group:
    return (said.above, said.nodes, said.devices_per_node, said.model, said.batch_per_device, said.precision)


def _stated(members: Sequence[tuple[Conventional, Found]]) -> Stated:
    said, _ = members[0]
    program = next(filter(None, (_program(file) for _, file in members)), "")
    place = "/".join((*said.above[1:], said.case))
    source = place if program else f"{place} (none of its logs is of one known format)"
    return Stated(_parameters(said, program), tuple(_runs(members)), source, Extras())


def _parameters(said: Conventional, program: str) -> Mapping[str, Scalar]:
    known: dict[str, Scalar] = {
        "model": said.model,
        "nodes": said.nodes,
        "devices_per_node": said.devices_per_node,
        "servers": NO_SERVERS,
        "batch_per_device": said.batch_per_device,
        "precision": canonical_precision(said.precision),
    }
    return {"framework": program, **known} if program else known


def _program(file: Found) -> str:
    """Return the name of the format a log is in; empty where it can't be told, so that a person must."""
    try:
        with file.source.open() as opened:
            found = next(filter(None, map(recognised, Blocks(opened))), [])
        return the_one(found, str(file.source)).name
    except LogError:
        return ""


def _runs(members: Sequence[tuple[Conventional, Found]]) -> Iterator[LogRun]:
    """Yield the runs: logs of one repetition are one run only if their names tell ranks or nodes apart."""
    repetitions: dict[int, list[tuple[Conventional, Found]]] = defaultdict(list)
    for said, file in members:
        repetitions[said.repetition].append((said, file))
    for repetition, logs in sorted(repetitions.items()):
        yield from runs_of(repetition, [(said.printer, file) for said, file in logs], members[0][0].world_size)


def runs_of(repetition: int, logs: Sequence[tuple[str, Found]], devices: int) -> Iterator[LogRun]:
    """Yield the one run that these logs are of; each of them as a run, which is refused, if their names say no more."""
    if len(logs) == 1 or one_run([printer for printer, _ in logs], devices):
        yield LogRun(repetition, tuple(file.place for _, file in logs))
    else:
        yield from (LogRun(repetition, (file.place,)) for _, file in logs)
