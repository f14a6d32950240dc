"""Lines that a person writes with names in place of numbers."""

import re
from dataclasses import replace

import pytest

from dlperf_study.logs.line_template import evaluation_line, needle, template_line
from dlperf_study.logs.printed import JOB_THROUGHPUT, LOSS
from dlperf_study.logs.text_lines import compile_line

METRICS = {"rate": JOB_THROUGHPUT, "loss": LOSS, "many": replace(JOB_THROUGHPUT, has_thousands=True)}


def numbers(template, line, *evaluation):
    match = compile_line(template_line(template, METRICS, evaluation)).expression.search(line.encode())
    return {name: value.decode() for name, value in match.groupdict().items()} if match else None


@pytest.mark.parametrize(
    ("template", "line", "expected"),
    [
        ("it {step} {rate} img/s", "x it   5  1.5e3 img/s y", ("5", "1.5e3")),
        ("it {step} {rate} img/s", "it 5 1500img/s", None),
        ("it {step} {rate}img/s", "it 5 1500img/s", ("5", "1500")),
        ("it {step} {rate}it/s", "it 5 2.5it/s", ("5", "2.5")),
        ("it {step} {rate}", "it 5 2.5K", None),
        ("it {step} {rate}", "it 5 1,500.0", None),
        ("it {step} {many}", "it 5 1,500.0", ("5", "1,500.0")),
        ("it {step} {rate} img/s", "it 5 10 img/s/GPU", None),
        ("it {step} {rate} img/s", "it 5 10 img/sec", None),
        ("step {step} {rate}", "global_step 5 10", None),
        ("it {step} {*} rate {rate}", "it 5 rate of decay 7, rate 10", ("5", "10")),
        ("[{step}/{*}] {rate}", "[  5/100] -nan", ("5", "-nan")),
        ("[{step}] {*} {rate} img", "[5] a1 2.5 img", ("5", "2.5")),
        ("gpu0 {step} top1 {rate}", "gpu7 5 top5 9", ("5", "9")),
        ("a+b (c) {step} {rate}", "a+b (c) 5 9", ("5", "9")),
        ("{step}: loss={rate}.", "17: loss=2.5.", ("17", "2.5")),
    ],
)
def test_numbers_are_where_their_names_are(template, line, expected):
    values = numbers(template, line)
    assert (tuple(values.values()) if values else None) == expected


def test_a_line_with_a_word_of_evaluation_is_not_of_training():
    template = "it {step} {rate}"
    assert numbers(template, "it 5 9", "eval", "top5") is not None
    assert numbers(template, "eval it 5 9", "eval", "top5") is None
    assert numbers(template, "it 5 9 top1", "eval", "top5") is None
    assert re.search(evaluation_line([template], ["top5"]).head, "it 5 9 top1")


def test_the_needle_appears_once_and_a_long_line_is_rejected_in_no_time():
    assert needle("it {step} loss {loss} loss {*} img/s2000") == "img/s"
    assert needle("{step},{loss},{rate}") == ""
    line = template_line("a {step} {*} b {rate} {*} c {loss} {*} end", METRICS)
    text = b"a 1 " + b"b 2 c 3 " * 500
    assert compile_line(line).expression.search(text) is None
