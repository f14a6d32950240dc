"""The bounds of parameters: a slip of the keyboard is a message, not a full memory."""

import pytest

from dlperf_study.core.errors import StudyFileError
from dlperf_study.study.configuration import PARAMETERS
from dlperf_study.study.parameter import LARGEST_NUMBER, typed
from dlperf_study.study.precision import canonical_precision
from dlperf_study.study.study_file import load_study
from tests.study.examples import STUDY, write

SLIPS = [
    ("image_size: 224000", "image_size is 224000; it must be at most 16384"),
    ("nodes: 100000", "nodes is 100000; it must be at most 10000"),
    ("seed: 4294967296", "seed is 4294967296; it must be at most 4294967295"),
    ("cycle_time_ms: -0.5", "cycle_time_ms is -0.5; it must be at least 0, or -1"),
    ("hierarchical: yes", "hierarchical is 'yes', which is not true or false"),
]


@pytest.mark.parametrize(("written", "message"), SLIPS)
def test_a_parameter_out_of_its_bounds_is_refused(tmp_path, written, message):
    file = write(tmp_path, STUDY.replace("constants: {", f"constants: {{{written}, "))
    with pytest.raises(StudyFileError) as caught:
        load_study(file)
    assert str(caught.value) == f"{file}: constants.{message}"


def test_a_number_of_64_bits_is_read_and_no_larger_one():
    seed = PARAMETERS["seed"]
    assert typed("a study", seed, LARGEST_NUMBER) == LARGEST_NUMBER
    for number in (LARGEST_NUMBER + 1, -LARGEST_NUMBER - 1):
        with pytest.raises(StudyFileError, match="which is not a number up to"):
            typed("a study", seed, number)


def test_a_measurement_out_of_its_bounds_is_refused(tmp_path, refused):
    file = write(tmp_path, f"{STUDY}measurement: {{measured_steps: 100000000}}\n")
    with refused(StudyFileError):
        load_study(file)


@pytest.mark.parametrize("value", ["-1", "0", "0.5", "5"])
def test_a_time_may_be_left_to_the_library(tmp_path, value):
    study = load_study(write(tmp_path, STUDY.replace("constants: {", f"constants: {{cycle_time_ms: {value}, ")))
    assert study.constants["cycle_time_ms"] == float(value)


VALUES = ", ".join(map(str, range(1, 23)))
GRID = f"{{nodes: [{VALUES}], devices_per_node: [{VALUES}], parameter_servers: [{VALUES}]}}"
GRID_POINTS, STUDY_POINTS = 22**3, 4
FACTORS = "factors:\n  model: [resnet50, mobilenet_v2]\n  devices_per_node: [1, 2]\n"


@pytest.mark.parametrize(
    ("source", "points", "text"),
    [
        (
            "factors give",
            GRID_POINTS,
            STUDY.replace("constants: {", "constants: {model: resnet50, ").replace(FACTORS, f"factors: {GRID}\n"),
        ),
        ("factors and include give", STUDY_POINTS + GRID_POINTS, f"{STUDY}include: [{{model: resnet50, {GRID[1:]}]\n"),
    ],
)
def test_a_grid_that_may_be_an_accident_is_refused_unless_the_file_allows_it(tmp_path, source, points, text, refused):
    file = write(tmp_path, text)
    with refused(StudyFileError):
        load_study(file)
    assert len(load_study(write(tmp_path, f"{text}max_configurations: {points}\n")).points) == points


def test_a_grid_of_a_quick_variant_is_counted_too(tmp_path, refused):
    with refused(StudyFileError):
        load_study(write(tmp_path, f"{STUDY}quick: {{factors: {GRID}}}\n"))


def test_an_exclude_of_many_levels_is_no_grid(tmp_path):
    assert len(load_study(write(tmp_path, f"{STUDY}exclude: [{GRID}]\n")).factors) == 2


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        ("fp16", "amp_fp16"),
        ("AMP", "amp_fp16"),
        ("TF32", "tf32"),
        ("pure_fp16", "amp_fp16_o2"),
        ("int8", "int8"),
    ],
)
def test_what_others_call_a_precision(word, ours):
    assert canonical_precision(word) == ours
