"""What the JSON objects of lines contain, and which lines are left out."""

import math

import pytest

from dlperf_study.logs.blocks import Block
from dlperf_study.logs.formats import load
from dlperf_study.logs.json_lines import read_json_lines
from dlperf_study.logs.layouts import number_shape

STEP = 'DLLL {"timestamp": "1600000010.5", "type": "LOG", "step": [%s], "data": {%s}}'
PARAMETER = 'DLLL {"type": "LOG", "step": "PARAMETER", "data": {"total_ips": 1.5}}'
NAN, INFINITY = math.nan, math.inf


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (STEP % ("1, 20", '"total_ips": 2.5'), (1, 20, 2.5)),
        (STEP % ("1, 20", '"total_ips": "2.5"'), (1, 20, 2.5)),
        (STEP % ("1, 20", '"total_ips": 1e-05'), (1, 20, 1e-5)),
        (STEP % ("1, 20", '"total_ips": -0'), (1, 20, 0.0)),
        (STEP % ("1, 20", '"total_ips": 2e999'), (1, 20, INFINITY)),
        (STEP % ("1, 20", '"total_ips": NaN'), (1, 20, NAN)),
        (STEP % ("1, 123456789012345678", '"total_ips": 2.5'), (1, 123456789012345678, 2.5)),
        (STEP % ("1, 0.75", '"total_ips": 2.5'), (1, 0, 2.5)),
        # Understood, and of no number.
        (PARAMETER, "used"),
        (STEP % ("1, 20", '"total_ips": true'), "used"),
        (STEP % ("1, 12345678901234567890", '"total_ips": 2.5'), "used"),
        # No object of the program.
        (STEP % ("1, 020", '"total_ips": 2.5'), "unused"),
        (STEP % ("1, 2e999", '"total_ips": 2.5'), "unused"),
        (STEP % ("1, null", '"total_ips": 2.5'), "unused"),
        (STEP % ("1, ", '"total_ips": 2.5'), "unused"),
        ('DLLL {"type": "LOG"}', "unused"),
        ("DLLL [1, 2]", "unused"),
        ("DLLL " + "[" * 100_000, "unused"),
    ],
)
def test_a_line_is_read_counted_or_left_out(line, expected):
    last = STEP % ("9, 9", '"total_ips": 9.5')
    matches = read_json_lines(load("dllogger").lines[0], Block(f"noise\n{line}\n{last}\n".encode(), first_line=100))
    records = matches.records
    rows = list(zip(records.epoch.tolist(), records.step.tolist(), records.values["throughput"].tolist(), strict=True))
    assert matches.candidates.tolist() == [1, 2]
    assert matches.used.tolist() == ([2] if expected == "unused" else [1, 2])
    assert matches.nan_lines.tolist() == ([1] if expected == (1, 20, NAN) else [])
    read = [expected] if isinstance(expected, tuple) else []
    assert str(rows) == str([*read, (9, 9, 9.5)])
    assert records.line.tolist() == [101, 102][-len(rows) :]


@pytest.mark.timeout(30)
def test_digits_are_read_in_time_linear_in_their_number():
    """Tried in every way, so many would take half an hour."""
    text = b"1" * 300_000 + b"x"
    assert number_shape(text) == text
