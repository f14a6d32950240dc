"""A proposed declaration for unknown logs, from their repeated lines."""

import re
from collections import Counter
from dataclasses import dataclass

from dlperf_study.core.errors import LogError, StudyFileError
from dlperf_study.logs.blocks import DAMAGE, Block, LogSource
from dlperf_study.logs.format import Line
from dlperf_study.logs.format_detection import detect_formats
from dlperf_study.logs.own_format import read_own_format
from dlperf_study.logs.records import POSITION_COLUMNS

#: How much of a log is searched, how often a line must repeat, and how long it may be.
_START_BYTES, _FEWEST_LINES, _LONGEST_LINE = 1 << 16, 3, 400
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d++(?:\.\d++)?+(?:[eE][-+]?\d++)?+(?![\d.]*+\w*+[:-]\d)")
_NAME_BEFORE = re.compile(r"(?:^|\W)\d*+([A-Za-z_]\w*+)[\s:=(\[]*+$")
#: What is after a number of each unit.
_UNITS = {
    "samples/s": r"\s*(img|imgs|images|samples|examples|seqs?|sequences)\s?/\s?s",
    "tokens/s": r"\s*(tok|tokens)\s?/\s?s",
    "steps/s": r"\s*(it|iter|steps|batches)\s?/\s?s",
    "ms/step": r"\s*(ms|msec)\b",
    "s/step": r"\s*(s|sec|seconds)\b",
}
#: Names of throughputs whose unit is printed nowhere.
_THROUGHPUT_NAMES = ("speed", "throughput", "ips", "samples_per_sec", "images_per_sec", "samples_per_second")
_NAMELESS = "throughput"
_STEP_NAMES = ("step", "iter", "iteration", "batch", "global_step")


@dataclass(frozen=True)
class ProposedFormat:
    """A repeated line and a file that reads it; ``throughput``: its number."""

    line: str
    throughput: str
    unit: str
    text: str


def proposed_format(source: LogSource) -> ProposedFormat | None:
    """Return a declaration for the most frequent line with a throughput."""
    try:
        with source.open() as file:
            data = file.read(_START_BYTES)
    except (OSError, LogError, *DAMAGE):
        return None
    if source.own_format or detect_formats(Block(data, 1)):
        return None
    text_lines = data.decode(errors="replace").splitlines()
    lines = [line for line in text_lines if len(line) < _LONGEST_LINE and _NUMBER.search(line)]
    kinds = [_NUMBER.sub("0", line) for line in lines]
    for kind, count in Counter(kinds).most_common():
        if count < _FEWEST_LINES:
            break
        line = lines[kinds.index(kind)]
        template, units = _propose_template(line)
        if not units:
            continue
        throughput, unit = next(iter(units.items()))
        entries = "".join(f"  {name}: {{unit: {unit}, of: job}}\n" for name, unit in units.items())
        declaration = f"name: my_program\nlines: ['{template}']\nnumbers:\n{entries}"
        if _reads(declaration, line):
            return ProposedFormat(line.strip(), throughput, unit, declaration)
    return None


def _propose_template(line: str) -> tuple[str, dict[str, str]]:
    """Return the template of a line, and the units of its throughputs."""
    parts, end, names, units = [""], 0, set[str](), dict[str, str]()
    for match in _NUMBER.finditer(line):
        before = line[end : match.start()]
        named = _NAME_BEFORE.search(before)
        unit = _find_unit(named[1].lower() if named else "", line[match.end() :])
        name = _NAMELESS if unit else ""
        if named:
            name = "step" if named[1].lower() in _STEP_NAMES else named[1].lower()
        is_read = name not in ("", *names) and (unit or name in (*POSITION_COLUMNS, "loss"))
        if named and is_read and not names:
            before = before[named.start() :]
            parts = [""]
        parts += [before.replace("'", "''"), f"{{{name}}}" if is_read else "{*}"]
        if is_read:
            names.add(name)
            if unit:
                units[name] = unit
        end = match.end()
    if rest := re.match(r"[\s)\]]*[\w/%]*", line[end:]):
        parts.append(rest[0].rstrip())
    return "".join(parts), units


def _find_unit(name: str, after: str) -> str:
    """Return the unit of a number, or empty if it is no throughput."""
    if name in (*POSITION_COLUMNS, *_STEP_NAMES, "loss"):
        return ""
    for unit, pattern in _UNITS.items():
        if re.match(pattern, after):
            return unit
    return "samples/s" if name in _THROUGHPUT_NAMES else ""


def _reads(text: str, line: str) -> bool:
    """Return whether a declaration is valid and reads its line."""
    try:
        declared = read_own_format(text.encode(), "log_format.yaml")
    except StudyFileError:
        return False
    return any(isinstance(kind, Line) and re.search(kind.head, line) for kind in declared.lines)
