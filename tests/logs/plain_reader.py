"""The records of a log, read the plain way: line by line, by one regular expression, ``float`` and nothing else.

Tests compare the reader of the package with it.
"""

from dataclasses import dataclass

from dlperf_study.logs.format import Line
from dlperf_study.logs.text_lines import LONGEST_RECORD, compile_line


@dataclass(frozen=True)
class Row:
    """One record: its line, step and metrics as printed, in the unit of the metric."""

    line: int
    step: int
    values: dict[str, float]


def plain_rows(format_, content):
    """Return every record of a log without colours or carriage returns."""
    lines = content.split(b"\n")
    kinds = [line for line in format_.lines if isinstance(line, Line)]
    return [row for kind in kinds for index, line in enumerate(lines, 1) for row in _row(kind, index, line)]


def _row(kind, line_number, line):
    pattern = compile_line(kind)
    match = pattern.expression.search(line)
    if sum(line.count(needle.encode()) for needle in kind.needles) != 1 or not match or len(line) > LONGEST_RECORD:
        return
    values: dict[str, float] = {}
    try:
        numbers = {group: float(match[group]) for group in pattern.groups if match[group] is not None}
    except ValueError:
        return
    for group, metric in pattern.metrics.items():
        if group in numbers:
            per = numbers[metric.per] if metric.per else 1.0
            values.setdefault(metric.name, numbers[group] * metric.factor / per)
    step = numbers.get("step", -1)
    if (values or not pattern.metrics) and max(step, numbers.get("epoch", -1), numbers.get("rank", -1)) <= 2**53:
        yield Row(line_number, int(step), values)
