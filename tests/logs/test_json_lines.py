"""Lines of one layout that are read at once give the same records as one by one."""

import json
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dlperf_study.logs import json_lines
from dlperf_study.logs.blocks import Block
from dlperf_study.logs.format import JsonLine
from dlperf_study.logs.formats import load
from dlperf_study.logs.json_lines import read_json_lines
from dlperf_study.logs.layouts import group_by_layout, number_shape
from dlperf_study.logs.records import COLUMNS, Matches
from dlperf_study.logs.text_lines import lines_with

LINES = {name: load(name).lines[0] for name in ("dllogger", "mllog")}
#: Numbers as programs print them, and as no program does.
NUMBERS = st.one_of(
    st.integers(-20, 3000).map(str),
    st.floats(0, 1e4).map(lambda value: f"{value:.3f}"),
    st.floats(allow_nan=True).map(json.dumps),
    st.sampled_from(
        ["007", "1e5", "1e-05", "2e999", "9e998", "1" * 20, "NaN", "-0.0", "-0", "0", "null", '"12.50"', ""]
    ),
)
DLLOGGER = (
    'DLLL {"timestamp": "16000000%s.5", "type": "LOG", "step": [%s, %s], "data": {"train.loss": %s, "top%s": %s}}',
    'DLLL {"timestamp": "1600000010.500000", "type": "LOG", "step": %s, "data": {"val.top1": %s, "total_ips": %s}}',
    'DLLL {"type": "LOG", "step": "", "data": {"total_ips": %s, "when": "2020-0%s-0%s"}}',
    'DLLL {"type": "LOG", "step": {"epoch": %s, "iteration": %s}, "data": {"a\\"b": "%s", "total_ips": %s}}',
)
MLLOG = (
    ':::MLLOG {"time_ms": %s, "event_type": "INTERVAL_START", "key": "block%s", "metadata": {"epoch_num": %s}}',
    ':::MLLOG {"time_ms": 16000%s, "key": "tracked_stats", "value": {"throughput": %s}, "metadata": {"step": %s}}',
    ':::MLLOG {"time_ms": %s, "key": "seed", "value": %s}',
)


@st.composite
def printed(draw: st.DrawFn) -> tuple[JsonLine, bytes]:
    """Return lines of few layouts, many of each."""
    name, templates = draw(st.sampled_from([("dllogger", DLLOGGER), ("mllog", MLLOG)]))
    lines = []
    for template in draw(st.lists(st.sampled_from(templates), min_size=1, max_size=3)):
        columns = [draw(_column(draw(st.booleans()))) for _ in range(template.count("%s"))]
        lines += [template % values for values in zip(*columns, strict=True)]
    return LINES[name], "".join(f"{line}\n" for line in draw(st.permutations(lines))).encode()


def _column(have_one_layout: bool) -> st.SearchStrategy[list[str]]:
    """Return twelve numbers, mostly of as many digits."""
    digits = st.sampled_from(["{:02d}", "{:d}", "0.{:02d}", "{:d}.5", '"{:d}"']).flatmap(
        lambda template: st.lists(st.integers(0, 99).map(template.format), min_size=12, max_size=12)
    )
    return digits if have_one_layout else st.lists(NUMBERS, min_size=12, max_size=12)


def read_as(line: JsonLine, data: bytes, worth_trials: int) -> Matches:
    """Return what lines contain; with ``worth_trials`` lines or more, a layout is read by trials."""
    block = Block(data, 1)
    with mock.patch.object(json_lines, "WORTH_TRIALS", worth_trials):
        return read_json_lines(line, block, group_by_layout(block, lines_with(line.needles, block)))


def dllogger(step: str, data: str, *columns: range) -> tuple[JsonLine, bytes]:
    """Return lines of dllogger with numbers of some columns put in."""
    template = f'DLLL {{"type": "LOG", "step": {step}, "data": {{{data}}}}}\n'
    return LINES["dllogger"], "".join(template % values for values in zip(*columns, strict=True)).encode()


#: More columns of one digit than trials can tell apart.
MANY = [range(10) if index % 2 else range(9, -1, -1) for index in range(40)]


@settings(max_examples=300, deadline=None)
@given(printed())
@example(dllogger("[0, 0.%02d]", '"a": 1', range(20)))
@example(dllogger("[0, -%d]", '"total_ips": 1.5', range(9, -1, -1)))
@example(dllogger("[0, %02d]", '"a": 1', range(20)))
@example(dllogger("[0, 0]", '"total_ips": 1.5e%03d', range(999, 0, -9)))
@example(dllogger("[0, 123456789012345%02d]", '"total_ips": 1.5', range(10, 99)))
@example(dllogger("[0, 0]", ", ".join(f'"{chr(index + 65)}": %d' for index in range(40) if index != 27), *MANY[1:]))
def test_lines_of_one_layout_give_the_same_records_as_one_by_one(printed_lines: tuple[JsonLine, bytes]) -> None:
    slow, quick = read_as(*printed_lines, worth_trials=len(printed_lines[1])), read_as(*printed_lines, worth_trials=2)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(quick.records, name), getattr(slow.records, name), name)
    assert quick.records.values.keys() == slow.records.values.keys()
    for name, column in slow.records.values.items():
        np.testing.assert_array_equal(quick.records.values[name], column, name)
    for name in ("used", "candidates", "nan_lines"):
        np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name), name)


@pytest.mark.parametrize(
    ("format_name", "template"),
    [
        ("dllogger", DLLOGGER[0] % ("%02d", "%02d", "%02d", "%02d", 5, "%d.25")),
        ("mllog", MLLOG[1] % ("%08d", "%d.5", "%d")),
    ],
)
def test_many_lines_of_one_layout_are_read_by_trials(format_name: str, template: str) -> None:
    line = LINES[format_name]
    record = mock.Mock(side_effect=line.record)
    data = "".join(f"{template % ((k,) * template.count('%'))}\n" for k in range(10, 99)).encode()
    matches = read_as(JsonLine(line.needles, record, line.facts), data, worth_trials=json_lines.WORTH_TRIALS)
    assert (len(matches.records), record.call_count) == (89, json_lines.TRIALS)


@pytest.mark.timeout(30)
def test_digits_are_read_in_time_linear_in_their_number() -> None:
    """Tried in every way, so many would take half an hour."""
    text = b"1" * 300_000 + b"x"
    assert number_shape(text) == text
