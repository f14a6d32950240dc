"""Numbers, names and what a program printed, in sentences."""

import pytest

from dlperf_study.core.wording import (
    as_yaml,
    closest,
    counted,
    in_sentence,
    last_line,
    list_first,
    rounded,
    shortened,
    unknown_name,
    value_text,
)


@pytest.mark.parametrize(("number", "words"), [(0, "0 devices"), (1, "1 device"), (2, "2 devices")])
def test_a_noun_has_the_number_of_its_number(number, words):
    assert counted(number, "device") == words


@pytest.mark.parametrize(
    ("names", "words"), [([], ""), (["a"], "a"), (["a", "b"], "a; b"), (["a", "b", "c", "d"], "a; b; and 2 more")]
)
def test_of_many_names_the_first_are_said_and_how_many_there_are_more(names, words):
    assert list_first(names, 2, "; ") == words


@pytest.mark.parametrize(
    ("text", "line"), [("", ""), ("\n \n", ""), ("why", "why"), ("first\nRunError: why\n\n", "RunError: why")]
)
def test_the_last_line_is_the_last_that_says_something(text, line):
    assert last_line(text) == line


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("as long as it may be", "as long as it may be"),
        ("the run failed: no such file; make it", "the ru … le; make it"),
        ("x" * 21, "xxxxxx … xxxxxxxxxxx"),
    ],
)
def test_a_long_message_keeps_its_beginning_and_more_of_its_end(message, words):
    assert shortened(message, 20) == words


@pytest.mark.parametrize(("value", "text"), [(19000.4, "19000"), (0.123456, "0.1235"), (1e6, "1000000")])
def test_a_number_has_four_digits_that_count_and_no_exponent(value, text):
    assert rounded(value) == text


def test_of_many_names_a_message_has_the_closest_or_the_first():
    message = unknown_name("value is", "levl_7", "values", [f"level_{position}" for position in range(100)])
    assert message.endswith("; did you mean level_7?")
    message = unknown_name("value is", "x", "values", [f"level_{position}" for position in range(100)])
    assert message.startswith("value is 'x'; the values are level_0, ")
    assert message.endswith(", and 88 more")


def test_unknown_names_are_answered_with_the_closest(snapshot):
    assert unknown_name("a.yaml: tree is", "burch", "trees", ("birch", "oak")) == snapshot
    assert unknown_name("tree is", "x", "trees", iter(("birch", "oak"))) == snapshot
    assert closest("oka", ()) == ""
    trees = ("birch", "oak_red", "oak_white")
    assert closest("oak", trees) == snapshot
    assert closest("b", trees) == ""


def test_values_are_in_the_words_of_yaml(snapshot):
    assert as_yaml({"a": [None, True, False, 1.5, "x"]}) == snapshot
    assert [value_text(value) for value in (True, 1, "true")] == ["true", "1", "true"]


@pytest.mark.parametrize(
    ("label", "words"),
    [("Batch per device", "batch per device"), ("cuDNN autotuning", "cuDNN autotuning"), ("CPU limit", "CPU limit")],
)
def test_abbreviations_keep_their_capitals_in_a_sentence(label, words):
    assert in_sentence(label) == words
