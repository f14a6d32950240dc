"""The message about an invalid study file: the file, the key, the value, and what would be right."""

import re

import pytest

from dlperf_study.core.errors import StudyFileError
from dlperf_study.study.study_file import load_study
from dlperf_study.study.validation import MAX_ERRORS
from tests.study.examples import STUDY, write

#: The error, and what replaces what in the file.
ERRORS = {
    "syntax error": ("[scaling]", "[scaling"),
    "tab": ("  model:", "\tmodel:"),
    "a key without its colon": ("constants:", "constants"),
    "no baseline": ("baseline: {devices_per_node: 1}\n", ""),
    "duplicate key": ("scaling: weak", "scaling: weak\nscaling: strong"),
    "not a mapping": (STUDY, "- a\n- b\n"),
    "one value": (STUDY, "true\n"),
    "empty": (STUDY, ""),
    "unknown key": ("title:", "titel:"),
    "unknown factor": ("  devices_per_node: [1, 2]", "  device_per_node: [1, 2]"),
    "unknown key of the baseline": ("{devices_per_node: 1}", "{devices: 1}"),
    "a rule without values": ("{devices_per_node: 1}", "[{devices_per_node: 1}]"),
    "unknown measurement": ("constants:", "measurement: {steps: 5}\nconstants:"),
    "a parameter of an earlier version": ("constants:", "measurement: {trace_steps: 5}\nconstants:"),
    "a largest batch of nothing": ("constants:", "largest_batch: {at_most: 0}\nconstants:"),
    "a largest batch without its limit": ("constants:", "largest_batch: {up_to: 8}\nconstants:"),
    "a largest batch under strong scaling": (
        "scaling: weak\nconstants: {",
        "largest_batch: {at_most: 8}\nscaling: strong\nconstants: {global_batch: 64, ",
    ),
    "precision in words": ("constants:", "target_ci: high\nconstants:"),
    "a share above the largest precision": ("constants:", "target_ci: 2\nconstants:"),
    "a precision above the largest": ("constants:", "target_ci: 51%\nconstants:"),
    "a precision below the smallest": ("constants:", "target_ci: 0.009 %\nconstants:"),
    "limit without precision": ("constants:", "max_repetitions: 9\nconstants:"),
    "precision of blocks": ("constants:", "target_ci: 2 %\norder: sequential\nconstants:"),
    "precision of two runs": ("constants:", "target_ci: 2 %\nmeasurement: {repetitions: 2}\nconstants:"),
    "fewer than the repeats at most": (
        "constants:",
        "target_ci: 2 %\nmax_repetitions: 4\nmeasurement: {repetitions: 5}\nconstants:",
    ),
    "a breakdown of too few runs": ("constants:", "measurement: {repetitions: 6, breakdown_from: 5}\nconstants:"),
    "a breakdown of no run": ("constants:", "measurement: {repetitions: 1, breakdown_from: 2}\nconstants:"),
    "a key that is not a string": ("title:", "7: x\ntitle:"),
    "a list as key": ("title:", "? [a]\n: x\ntitle:"),
    "a section without content": ("{devices_per_node: 1}", ""),
    "wrong type": ("devices_per_node: [1, 2]", "devices_per_node: [1, two]"),
    "a number in quotes": ("devices_per_node: [1, 2]", "devices_per_node: [1, '2']"),
    "a boolean is not a number": ("devices_per_node: [1, 2]", "devices_per_node: [true]"),
    "a title without text": ("title: An example", "title:"),
    "a number that the versions of YAML read differently": ("devices_per_node: [1, 2]", "devices_per_node: [1, 010]"),
    "a boolean twice": ("devices_per_node: [1, 2]", "devices_per_node: [1, 2]\n  hierarchical: [true, true]"),
    "a value that is not a list": ("devices_per_node: [1, 2]", "devices_per_node: 2"),
    "unknown value": ("constants: {", "constants: {precision: fp64, "),
    "unknown question": ("[scaling]", "[speed]"),
    "empty factor": ("devices_per_node: [1, 2]", "devices_per_node: []"),
    "negative repeats": ("constants:", "measurement: {repetitions: -1}\nconstants:"),
    "a share above one": ("constants: {", "constants: {sample_ratio: 1.5, "),
    "a value of exclude, written without a list": ("baseline:", "exclude: [{nodes: 0}]\nbaseline:"),
    "fixed and factor": ("constants: {", "constants: {model: vgg16, "),
    "a question twice": ("[scaling]", "[scaling, quality, scaling]"),
    "no framework": ("framework: paddle_collective, ", ""),
    "global batch under weak scaling": ("constants: {", "constants: {global_batch: 64, "),
    "batch per device under strong scaling": (
        "scaling: weak\nconstants: {",
        "scaling: strong\nconstants: {batch_per_device: 64, ",
    ),
    "no global batch under strong scaling": ("scaling: weak", "scaling: strong"),
    "include without a factor": ("baseline:", "include: [{model: vgg16}]\nbaseline:"),
    "comparison without a reference": ("[scaling]", "[scaling, comparison]"),
    "a reference without comparison": ("baseline:", "reference: {framework: paddle_collective}\nbaseline:"),
    "published without sources": ("[scaling]", "[scaling, published]"),
    "a page that was merged": ("[scaling]", "[scaling, replication]"),
    "a page that became a table": ("[scaling]", "[scaling, compliance]"),
    "published sources without the question": ("baseline:", "published: [tensorpack_multigpu]\nbaseline:"),
    "a published source twice": ("[scaling]", "[published]\npublished: [tensorpack_multigpu, tensorpack_multigpu]"),
    "an error in quick": ("baseline:", "quick: {factors: {devices_per_node: [0]}}\nbaseline:"),
    "a contradiction in quick": ("baseline:", "quick: {constants: {model: vgg16}}\nbaseline:"),
}


@pytest.mark.parametrize("change", ERRORS.values(), ids=ERRORS.keys())
def test_an_error_is_one_message(tmp_path, refused, change):
    assert change[0] in STUDY
    file = write(tmp_path, STUDY.replace(*change))
    with refused(StudyFileError):
        load_study(file)


def test_several_errors_are_reported_at_once(tmp_path, snapshot):
    file = write(tmp_path, STUDY.replace("weak", "week").replace("[1, 2]", "[]"))
    with pytest.raises(StudyFileError) as caught:
        load_study(file)
    assert str(caught.value).splitlines() == snapshot


def test_a_missing_or_unreadable_study_or_file_is_named(refused, tmp_path):
    with refused(StudyFileError):
        load_study("quickstrat")
    with refused(StudyFileError):
        load_study(tmp_path / "nowhere.yaml")
    with refused(StudyFileError):
        load_study(tmp_path)
    with refused(StudyFileError):
        load_study("/dev/null")
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"title: \xff")
    with pytest.raises(StudyFileError, match="not UTF-8"):
        load_study(file)


def test_messages_name_files_from_the_projects_folder():
    assert load_study("quickstart").source == "params/studies/quickstart.yaml"


def test_a_name_must_be_fit_for_folders_and_the_quick_suffix(tmp_path, refused):
    with refused(StudyFileError):
        load_study(write(tmp_path, name="example-quick"))


def test_a_name_must_not_be_that_of_one_of_our_studies(tmp_path):
    file = write(tmp_path, name="quickstart")
    message = f"{file}: params/studies/quickstart.yaml has the same name, and both would write to outputs/quickstart"
    with pytest.raises(StudyFileError, match=re.escape(message)):
        load_study(file)


def test_a_long_value_is_cut(tmp_path):
    with pytest.raises(StudyFileError) as caught:
        load_study(write(tmp_path, STUDY.replace("scaling: weak", f"scaling: {'weak' * 1000}")))
    assert str(caught.value).endswith("weakweakwea…; the choices are 'weak' or 'strong'")
    assert len(str(caught.value)) < 400


def test_many_errors_are_counted(tmp_path, snapshot):
    values = ", ".join(["x"] * 50)
    file = write(tmp_path, STUDY.replace("[1, 2]", f"[{values}]"))
    with pytest.raises(StudyFileError) as caught:
        load_study(file)
    lines = str(caught.value).splitlines()
    assert len(lines) == MAX_ERRORS + 1
    assert lines[0] == snapshot
    assert lines[-1] == f"{file}: and 30 more"
