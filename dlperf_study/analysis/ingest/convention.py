"""A proposal: whose logs they are, as DLPerf's names of folders and files say. A person confirms it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from dlperf_study.analysis.ingest.folder import Found
from dlperf_study.analysis.ingest.identity import Extras, LogRun, Stated
from dlperf_study.analysis.ingest.names import Conventional, conventional, one_run
from dlperf_study.analysis.precisions import our_precision
from dlperf_study.errors import LogError
from dlperf_study.logs.blocks import Blocks
from dlperf_study.logs.recognise import recognised, the_one
from dlperf_study.study.configuration import Scalar

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
        "precision": our_precision(said.precision),
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
