"""What plain values mean, and what is refused because it would mean something else than it looks."""

import pytest

from dlperf_study.core.errors import StudyFileError
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
def test_a_number_with_a_leading_zero_is_refused(tmp_path, text, refused):
    with refused(StudyFileError):
        read(tmp_path, f"a: 1\nb: {text}\n")
    assert read(tmp_path, f"a: '{text}'") == {"a": text}


def in_flow(levels):
    return f"a: {'[' * levels}{']' * levels}"


def in_blocks(levels):
    return "".join(f"{' ' * level}a:\n" for level in range(levels))


LAUGHS = "a0: &a0 [x]\n" + "".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 10))
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{k}: &a{k} {{<<: [{', '.join([f'*a{k - 1}'] * 10)}]}}\n" for k in range(1, 10))
#: Numbers that are not finite or too long, tags, nesting without end, too many values, and values that hold themselves.
REFUSED = {
    "null byte": 'a: [{b: "x\\0y"}]',
    "null byte in a key": 'a: {"x\\0y": 1}',
    **{text: f"a: {text}" for text in (".inf", "-.Inf", ".nan", "1e999")},
    "a number of many digits": f"a: {'9' * 5000}",
    "a fraction of many digits": f"a: 0.{'1' * 5000}",
    **{tag: f"a: {tag}" for tag in ("!!int '8'", "!!set {b}", "!!timestamp x", "!!python/name:os.system", "! 5")},
    "!!map": "a: !!map {}",
    "deep in flow": in_flow(5000),
    "deep in blocks": in_blocks(2000),
    "many aliases": LAUGHS,
    "many merges": MERGES,
    "a long list": f"a: [{'1, ' * MAX_VALUES}]",
    "a list in itself": "a: &a [*a]",
    "a mapping in itself": "a: &a {b: *a}",
    "a mapping merged into itself": "a: &a {<<: *a}",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_a_value_that_is_none_of_a_study_is_refused(tmp_path, text, refused):
    with refused(StudyFileError):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("title: T\nfixed\n  model: a\n", "line 2: fixed has no colon"),
        ("title: T\nconstants:\n  model resnet50\n  batch: 4\n", "line 3: model resnet50 has no colon"),
        ("title: T\nconstants:\n  model: a\n  batch 4\nfactors: {}\n", "line 4: batch 4 has no colon"),
    ],
)
def test_a_key_without_its_colon_is_named_with_its_own_line(tmp_path, text, line):
    with pytest.raises(StudyFileError, match=f", {line}$"):
        read(tmp_path, text)


def test_a_text_with_a_colon_is_not_taken_for_a_key_without_one(tmp_path, refused):
    with refused(StudyFileError):
        read(tmp_path, "title: T\nabout: one: two\n")


@pytest.mark.timeout(20)
def test_a_file_of_many_bytes_is_not_parsed(tmp_path, refused):
    with refused(StudyFileError):
        read(tmp_path, "title: " + "a " * (25 << 20))


def test_anchors_may_be_repeated_and_merged_and_merged_over(tmp_path):
    text = "base: &base {x: 1, y: 2}\nagain: *base\nmerged: {<<: *base, y: 3}\n"
    assert read(tmp_path, text) == {"base": {"x": 1, "y": 2}, "again": {"x": 1, "y": 2}, "merged": {"x": 1, "y": 3}}
    # Also when the mapping that is merged into another has itself merged a third, further down in the file.
    text = "z: &z {x: 1}\ndeep: {deeper: {a: &a {<<: *z, x: 2}}}\nb: {<<: *a}\n"
    assert read(tmp_path, text)["b"] == {"x": 2}
    assert read(tmp_path, in_flow(10))
