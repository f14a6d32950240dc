"""What a log says, read the plain way: line by line, by one regular expression, ``float`` and nothing else.

It stands beside the engine as the truth that the engine is held against.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dlperf_study.logs.format import Format, Line
from dlperf_study.logs.text_lines import LONGEST_RECORD, compile_line


@dataclass(frozen=True)
class Row:
    """One record: its line, place and metrics as printed, in the unit of the metric."""

    line: int
    step: int
    values: dict[str, float]


def plain_rows(format_: Format, text: bytes) -> list[Row]:
    """Return every record of a log without colours or carriage returns."""
    lines = text.split(b"\n")
    kinds = [line for line in format_.lines if isinstance(line, Line)]
    return [row for kind in kinds for number, line in enumerate(lines, 1) for row in _row(kind, number, line)]


def _row(kind: Line, number: int, line: bytes) -> Iterator[Row]:
    pattern = compile_line(kind)
    match = pattern.expression.search(line)
    if sum(line.count(needle.encode()) for needle in kind.needles) != 1 or not match or len(line) > LONGEST_RECORD:
        return
    values: dict[str, float] = {}
    try:
        texts = {group: float(match[group]) for group in pattern.groups if match[group] is not None}
    except ValueError:
        return
    for group, metric in pattern.metrics.items():
        if group in texts:
            per = texts[metric.per] if metric.per else 1.0
            values.setdefault(metric.name, texts[group] * metric.factor / per)
    step = texts.get("step", -1)
    if (values or not pattern.metrics) and max(step, texts.get("epoch", -1), texts.get("rank", -1)) <= 2**53:
        yield Row(number, int(step), values)
