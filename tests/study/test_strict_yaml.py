"""What plain values mean, and what is refused because it would mean something else than it looks."""

import pytest

from dlperf_study.errors import StudyFileError
from dlperf_study.study.strict_yaml import MAX_VALUES, read_mapping
from tests.study.examples import write


def read(folder, text):
    return read_mapping(write(folder, text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10),
        ("-3", -3),
        ("0", 0),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("1.5e+12", 1.5e12),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
    ],
)
def test_plain_values_are_those_of_yaml_1_2(tmp_path, text, value):
    loaded = read(tmp_path, f"a: {text}")["a"]
    assert (loaded, type(loaded)) == (value, type(value))


@pytest.mark.parametrize("text", ["yes", "no", "on", "off", "y", "1_000", "1:30", "1:30.5", "0b11", "2024-01-01", "="])
def test_what_only_yaml_1_1_takes_for_something_else_is_a_string(tmp_path, text):
    assert read(tmp_path, f"a: {text}") == {"a": text}


@pytest.mark.parametrize("text", ["010", "-010", "08", "00"])
def test_a_number_with_a_leading_zero_is_refused(tmp_path, text):
    with pytest.raises(
        StudyFileError, match=f"line 2, column 4: b: {text} starts with a zero, so YAML 1.1 and 1.2 read"
    ):
        read(tmp_path, f"a: 1\nb: {text}\n")
    assert read(tmp_path, f"a: '{text}'") == {"a": text}


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".nan", "1e999"])
def test_a_number_must_be_finite(tmp_path, text):
    with pytest.raises(StudyFileError, match="is not a finite number"):
        read(tmp_path, f"a: {text}")


@pytest.mark.parametrize("number", ["9" * 5000, "0." + "1" * 5000])
def test_a_number_of_too_many_digits_is_refused(tmp_path, number):
    with pytest.raises(StudyFileError, match=r"a number of 500\d digits; the most are 40"):
        read(tmp_path, f"a: {number}")


@pytest.mark.parametrize(
    "text", ["!!int '8'", "!!set {b}", "!!timestamp x", "!!python/name:os.system", "! 5", "!!map {}"]
)
def test_tags_are_refused(tmp_path, text):
    with pytest.raises(StudyFileError, match=r"line 1, column 4: a: a tag \(.*values are plain strings, numbers, true"):
        read(tmp_path, f"a: {text}")


def in_flow(levels):
    return f"a: {'[' * levels}{']' * levels}"


def in_blocks(levels):
    return "".join(f"{' ' * level}a:\n" for level in range(levels))


@pytest.mark.parametrize("text", [in_flow(5000), in_blocks(2000)], ids=["flow", "blocks"])
def test_too_deeply_nested_values_are_one_message(tmp_path, text):
    with pytest.raises(StudyFileError, match="lists and mappings nested more than 20 deep"):
        read(tmp_path, text)


def test_values_nested_as_deeply_as_in_any_study_are_read(tmp_path):
    assert read(tmp_path, in_flow(10))


LAUGHS = "a0: &a0 [x]\n" + "".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 10))
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{k}: &a{k} {{<<: [{', '.join([f'*a{k - 1}'] * 10)}]}}\n" for k in range(1, 10))
WIDE = "a: [" + "1, " * MAX_VALUES + "]"


@pytest.mark.timeout(20)
def test_a_file_of_many_bytes_is_not_parsed(tmp_path):
    with pytest.raises(StudyFileError, match="has more than 4,194,304 bytes"):
        read(tmp_path, "title: " + "a " * (25 << 20))


@pytest.mark.parametrize("text", [LAUGHS, MERGES, WIDE], ids=["aliases", "merges", "a long list"])
def test_too_many_values_are_one_message(tmp_path, text):
    with pytest.raises(StudyFileError, match="more than 100,000 values, those that anchors repeat included"):
        read(tmp_path, text)


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: *a}", "a: &a {<<: *a}"])
def test_a_value_can_not_hold_itself(tmp_path, text):
    with pytest.raises(StudyFileError, match="an anchor named within itself"):
        read(tmp_path, text)


def test_an_anchor_may_be_repeated_and_merged(tmp_path):
    text = "base: &base {x: 1, y: 2}\nagain: *base\nmerged: {<<: *base, y: 3}\n"
    assert read(tmp_path, text) == {"base": {"x": 1, "y": 2}, "again": {"x": 1, "y": 2}, "merged": {"x": 1, "y": 3}}


def test_a_key_that_is_merged_over_is_not_a_duplicate(tmp_path):
    """Also when the mapping that is merged into another has itself merged a third, further down in the file."""
    text = "z: &z {x: 1}\ndeep: {deeper: {a: &a {<<: *z, x: 2}}}\nb: {<<: *a}\n"
    assert read(tmp_path, text)["b"] == {"x": 2}
