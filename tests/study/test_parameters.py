"""The bounds of parameters: a slip of the keyboard is a message, not a full memory."""

import pytest

from dlperf_study.errors import StudyFileError
from dlperf_study.study.parameter_types import MAX_POINTS
from dlperf_study.study.precision import canonical_precision
from dlperf_study.study.study_file import load_study
from tests.study.examples import STUDY, write

SLIPS = [
    ("image_size: 224000", "image_size is 224000; it must be at most 16384"),
    ("classes: 1000000000", "classes is 1000000000; it must be at most 100000000"),
    ("nodes: 100000", "nodes is 100000; it must be at most 10000"),
    ("servers: 100000", "servers is 100000; it must be at most 10000"),
    ("batch_per_device: 64000000", "batch_per_device is 64000000; it must be at most 1000000"),
    ("threads_per_device: 5000", "threads_per_device is 5000; it must be at most 4096"),
    ("seed: 4294967296", "seed is 4294967296; it must be at most 4294967295"),
    ("fusion_mib: 134217728", "fusion_mib is 134217728; it must be at most 65536"),
    ("cycle_time_ms: -0.5", "cycle_time_ms is -0.5; it must be at least 0, or -1"),
    ("hierarchical: yes", "hierarchical is 'yes', which is not true or false"),
]


@pytest.mark.parametrize(("written", "message"), SLIPS)
def test_a_parameter_out_of_its_bounds_is_refused(tmp_path, written, message):
    file = write(tmp_path, STUDY.replace("fixed: {", f"fixed: {{{written}, "))
    with pytest.raises(StudyFileError) as caught:
        load_study(file)
    assert str(caught.value) == f"{file}: fixed.{message}"


@pytest.mark.parametrize(
    ("written", "most"),
    [
        ("measured_steps: 100000000", 1_000_000),
        ("warmup_steps: 100000000", 1_000_000),
        ("repeats: 10000", 1_000),
        ("timeout_seconds: 1000000000", 2_592_000),
    ],
)
def test_a_measurement_out_of_its_bounds_is_refused(tmp_path, written, most):
    file = write(tmp_path, f"{STUDY}measurement: {{{written}}}\n")
    with pytest.raises(StudyFileError) as caught:
        load_study(file)
    assert str(caught.value) == f"{file}: measurement.{written.replace(':', ' is')}; it must be at most {most}"


@pytest.mark.parametrize("value", ["-1", "0", "0.5", "5"])
def test_a_time_may_be_left_to_the_library(tmp_path, value):
    study = load_study(write(tmp_path, STUDY.replace("fixed: {", f"fixed: {{cycle_time_ms: {value}, ")))
    assert study.fixed["cycle_time_ms"] == float(value)


LEVELS = ", ".join(map(str, range(1, 23)))
GRID = f"{{nodes: [{LEVELS}], devices_per_node: [{LEVELS}], servers: [{LEVELS}]}}"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (
            "factors",
            STUDY.replace("factors:\n", f"factors: {GRID}\n").replace("  model: [resnet50, mobilenet_v2]\n", ""),
        ),
        ("include[0]", f"{STUDY}include: [{GRID}]\n"),
        ("quick.factors", f"{STUDY}quick: {{factors: {GRID}}}\n"),
    ],
)
def test_a_grid_that_nobody_could_list_is_refused(tmp_path, place, text):
    file = write(tmp_path, text.replace("  devices_per_node: [1, 2]\n", "") if place == "factors" else text)
    with pytest.raises(StudyFileError) as caught:
        load_study(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: {place} is {{nodes: [1, 2")
    assert message.endswith(f"its levels give 10,648 points; the most are {MAX_POINTS:,}")
    assert len(message) < 500


@pytest.mark.parametrize(
    ("word", "ours"),
    [("fp16", "amp_fp16"), ("AMP", "amp_fp16"), ("bf16", "amp_bf16"), ("fp32", "fp32"), ("TF32", "TF32")],
)
def test_what_others_call_a_precision(word: str, ours: str) -> None:
    assert canonical_precision(word) == ours
