"""Metadata inferred from DLPerf's names of folders and files, and the format."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dlperf_study.core.errors import LogError
from dlperf_study.logs.blocks import Blocks
from dlperf_study.logs.format_detection import detect_formats
from dlperf_study.logs.json_lines import as_lines
from dlperf_study.logs.log_files import LogFile, stem
from dlperf_study.logs.metadata import Extras, LogMetadata, LogRun
from dlperf_study.logs.tracker_files import names_by_people
from dlperf_study.study.parameter import Scalar
from dlperf_study.study.precision import canonical_precision

#: ``{N}n{G}g``: nodes, and GPUs of each; no cluster has a million of them.
_CASE = re.compile(r"(?P<nodes>[1-9]\d{0,5})n(?P<devices_per_node>[1-9]\d{0,5})[gd]", re.IGNORECASE)
#: ``{model}_b{batch}_{precision}_{repetition}``; the last may be a date with its time.
_RUN = re.compile(
    r"(?P<model>.+)_b(?:s|z)?(?P<batch>[1-9]\d{0,8})_(?P<precision>.+)_(?P<repetition>\d{1,18})", re.IGNORECASE
)
#: The rank or node at the end of a name: ``rank-3``, ``workerlog.0``, ``node1``, an address.
_PRINTER = re.compile(
    r"(?:^|[-_. ])(?:(?:rank|node|host|trainer|proc(?:ess)?|worker(?:log)?)s?[-_. ]?\d+|\d{1,3}(?:\.\d{1,3}){3})$",
    re.IGNORECASE,
)
#: A longer number at the end of a name is none of a repetition.
_MOST_DIGITS = 18
#: The repetition at the end of a name, which is no rank and no node.
_REPETITION = re.compile(
    r"(?:^|[-_. ])(?:runs?|rep|repeats?|repetitions?|trials?|try|attempts?)[-_. ]?\d+$", re.IGNORECASE
)
#: A number at the end of a name; longer ones do not fit a table.
_NUMBER = re.compile(r"(?<!\d)\d{1,18}$")
#: DLPerf's jobs have a trainer per device and no server.
_NO_SERVERS = 0


@dataclass(frozen=True)
class NameMetadata:
    """Metadata in a path that follows DLPerf's names.

    ``above``: the folders above the case. ``printer``: the part that names the rank or node, if any.
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


def infer_configurations(files: Sequence[LogFile]) -> list[LogMetadata]:
    """Return the configurations in file names; skip other files."""
    groups: dict[tuple[object, ...], list[tuple[NameMetadata, LogFile]]] = defaultdict(list)
    for file in files:
        name = parse_name(file.parts)
        if name:
            size = (name.nodes, name.devices_per_node, name.batch_per_device)
            groups[name.above, name.model, name.precision, *size].append((name, file))
    return [_log_metadata(members) for members in groups.values()]


def parse_name(parts: Sequence[str]) -> NameMetadata | None:
    """Return the metadata in a path, or None."""
    stems = list(map(stem, parts))
    case = run = None
    case_index = run_index = -1
    for index, part in enumerate(stems):
        if case_match := _CASE.fullmatch(part.removesuffix(".zip")):
            case, case_index = case_match, index
        if run_match := _RUN.fullmatch(_PRINTER.sub("", part)):
            run, run_index = run_match, index
    if not case or not run or run_index <= case_index:
        return None
    printer = stems[run_index].removeprefix(run[0])
    printers = [*stems[case_index + 1 : run_index], *stems[run_index + 1 :], printer]
    return NameMetadata(
        above=tuple(parts[:case_index]),
        case=case[0],
        nodes=int(case["nodes"]),
        devices_per_node=int(case["devices_per_node"]),
        model=run["model"],
        batch_per_device=int(run["batch"]),
        precision=run["precision"],
        repetition=int(run["repetition"]),
        printer="/".join(filter(None, printers)),
    )


def parse_name_below(parts: Sequence[str]) -> tuple[int | None, str]:
    """Return repetition and printer from names below the configuration's folder."""
    first, *lower = map(stem, names_by_people(parts) or ("",))
    name = _PRINTER.sub("", first)
    match = _NUMBER.search(name)
    repetition = int(match[0]) if match and len(match[0]) <= _MOST_DIGITS else None
    return repetition, "/".join(filter(None, [first.removeprefix(name), *lower]))


def runs_of_repetitions(repetitions: Mapping[int, Sequence[tuple[str, LogFile]]], devices: int) -> tuple[LogRun, ...]:
    """Group the logs of a configuration, by printer and file, into runs.

    Logs of one repetition are one run only if their names distinguish ranks or nodes. Else each is a run, and the
    repeated repetition is rejected later.
    """
    runs = []
    for repetition, logs in sorted(repetitions.items()):
        printers, files = zip(*logs, strict=True)
        paths = [file.relative_path for file in files]
        if len(logs) == 1 or are_one_run(printers, devices):
            runs.append(LogRun(repetition, tuple(paths)))
        else:
            runs += [LogRun(repetition, (path,)) for path in paths]
    return tuple(runs)


def are_one_run(printers: Sequence[str], devices: int) -> bool:
    """Return whether each log of a repetition names another rank or node."""
    for printer in printers:
        for part in printer.split("/"):
            is_rank_number = _NUMBER.search(part) and not _REPETITION.search(part)
            if _PRINTER.search(part) or is_rank_number:
                break
        else:
            return False
    return len(set(printers)) == len(printers) <= devices


def _log_metadata(members: Sequence[tuple[NameMetadata, LogFile]]) -> LogMetadata:
    name = members[0][0]
    repetitions: dict[int, list[tuple[str, LogFile]]] = defaultdict(list)
    for member_name, file in members:
        repetitions[member_name.repetition].append((member_name.printer, file))
    program = problem = ""
    for _, file in members:
        program, problem_of_file = _detect_format(file)
        problem = problem or problem_of_file
        if program:
            break
    folder = "/".join((*name.above[1:], name.case))
    source = folder if program else f"{folder} ({problem or 'none of its logs has one known format'})"
    runs = runs_of_repetitions(repetitions, name.nodes * name.devices_per_node)
    parameters: dict[str, Scalar] = {"framework": program} if program else {}
    parameters |= {
        "model": name.model,
        "nodes": name.nodes,
        "devices_per_node": name.devices_per_node,
        "parameter_servers": _NO_SERVERS,
        "batch_per_device": name.batch_per_device,
        "precision": canonical_precision(name.precision),
    }
    return LogMetadata(parameters, runs, source, Extras())


def _detect_format(file: LogFile) -> tuple[str, str]:
    """Return the format of a log, empty if uncertain, and why it can't be read, if so."""
    if file.source.own_format:
        return file.source.own_format.name, ""
    try:
        with file.source.open() as opened:
            blocks = Blocks(as_lines(str(file.source), opened))
            formats = next(filter(None, map(detect_formats, blocks)), [])
    except LogError as error:
        return "", str(error)
    if len(formats) == 1:
        return formats[0].name, ""
    if blocks.damage:
        return "", f"{file.source}: is damaged: {blocks.damage}"
    return "", ""
