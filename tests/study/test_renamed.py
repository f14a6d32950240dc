"""Names of earlier versions: an error in a file that somebody writes, and read in what earlier versions recorded."""

import copy
import re

import pytest
import yaml

from dlperf_study.core.errors import StudyFileError
from dlperf_study.execution.planning import load_cluster
from dlperf_study.machines.cluster.sections import ClusterFile
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.study import renamed
from dlperf_study.study.configuration import FIELD_NAMES
from dlperf_study.study.study import StudyFile
from dlperf_study.study.study_file import load_study

STUDY = {
    "title": "Two devices",
    "sections": ["scaling"],
    "scaling": "weak",
    "constants": {"framework": "paddle_collective", "strategy": "all_reduce", "model": "mobilenet_v2"},
    "factors": {"devices_per_node": [1, 2]},
    "baseline": {"devices_per_node": 1},
}
GIVEN = sorted({*renamed.STUDY_KEYS, *renamed.PROGRAM_KEYS, *renamed.PARAMETERS} - {"program_digest"})
MEASUREMENT = ("computation_steps", "exchange_steps", "input_steps", "repeats")


def renamed_line(key, path):
    return f"unknown key {path}{key}; it was renamed to {renamed.KEYS[key]}"


def test_each_new_name_exists_and_no_old_one():
    new = {*renamed.PARAMETERS.values()}
    assert new <= {*FIELD_NAMES}
    assert {*renamed.STUDY_KEYS.values()} <= {*StudyFile.model_fields}
    assert {*renamed.CLUSTER_KEYS.values()} <= {*ClusterFile.model_fields}
    assert {*renamed.COLUMNS.values()} <= {*COLUMNS}
    assert {*COLUMNS}.isdisjoint({*renamed.PARAMETERS, *renamed.COLUMNS})


@pytest.mark.parametrize("key", GIVEN)
def test_an_old_key_of_a_study_file_is_an_error_that_names_the_new_one(key, tmp_path):
    sections = {
        **dict.fromkeys(renamed.STUDY_KEYS, ""),
        **dict.fromkeys(renamed.PROGRAM_KEYS, "program"),
        **dict.fromkeys(MEASUREMENT, "measurement"),
    }
    section = sections.get(key, "constants")
    study = copy.deepcopy({**STUDY, "measurement": {}, "program": {"name": "mine", "command": "x"}})
    (study[section] if section else study)[key] = 1
    file = tmp_path / "example.yaml"
    file.write_text(yaml.safe_dump(study))
    with pytest.raises(StudyFileError) as caught:
        load_study(file)
    assert renamed_line(key, f"{section}." if section else "") in str(caught.value)


@pytest.mark.parametrize("key", renamed.CLUSTER_KEYS)
def test_an_old_key_of_a_cluster_file_is_an_error_that_names_the_new_one(key, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(f"launcher: local\ndevice: cpu\n{key}: auto\n")
    with pytest.raises(StudyFileError) as caught:
        load_cluster(file)
    assert renamed_line(key, "") in str(caught.value)


def test_a_required_key_by_its_old_name_is_one_error(tmp_path):
    study = {("questions" if key == "sections" else key): value for key, value in STUDY.items()}
    file = tmp_path / "example.yaml"
    file.write_text(yaml.safe_dump(study))
    with pytest.raises(StudyFileError) as caught:
        load_study(file)
    assert str(caught.value).splitlines() == [f"{file}: {renamed_line('questions', '')}"]


@pytest.mark.parametrize(("old", "new"), renamed.ORDERS.items())
def test_an_old_order_is_an_error_that_names_the_new_one(old, new, tmp_path):
    file = tmp_path / "example.yaml"
    file.write_text(yaml.safe_dump({**STUDY, "order": old}))
    with pytest.raises(StudyFileError, match=f"order is '{old}'; it was renamed to {new}"):
        load_study(file)


def test_a_key_that_belongs_to_the_file_itself_is_said(tmp_path):
    file = tmp_path / "example.yaml"
    file.write_text(yaml.safe_dump({**STUDY, "measurement": {"precision": "2 %"}}))
    with pytest.raises(
        StudyFileError, match=r"measurement\.precision; it was renamed to target_ci, at the top of the file"
    ):
        load_study(file)


@pytest.mark.parametrize(
    ("section", "key", "value", "expected"),
    [
        ("", "model", "mobilenet_v2", "unknown key model; move it to constants"),
        ("", "repetitions", 3, "unknown key repetitions; move it to measurement"),
        ("constants", "warmup_steps", 3, "unknown key constants.warmup_steps; move it to measurement"),
        ("constants", "title", "x", "unknown key constants.title; move it to the top of the file"),
        (
            "constants",
            "batch_per_device",
            [4, 8],
            "constants.batch_per_device is a list; list several values under factors",
        ),
    ],
)
def test_a_key_in_the_wrong_section_is_an_error_that_names_the_right_one(section, key, value, expected, tmp_path):
    study = copy.deepcopy(STUDY)
    (study[section] if section else study)[key] = value
    file = tmp_path / "example.yaml"
    file.write_text(yaml.safe_dump(study))
    with pytest.raises(StudyFileError, match=re.escape(expected)):
        load_study(file)


def test_an_old_column_has_its_new_name():
    assert renamed.name_column("exposed_share_low") == "exposed_communication_share_low"
    assert renamed.name_column("servers") == "parameter_servers"
    assert renamed.name_column("throughput_low") is None


def test_the_order_of_earlier_versions_and_their_windows_are_read():
    assert renamed.rename_plan({"order": "blocks", "factors": ["servers", "model"]}) == {
        "order": "sequential",
        "factors": ["parameter_servers", "model"],
    }
    lines = [
        {"kind": "rank", "exchange": "all_reduce", "exchanges": []},
        {"kind": "window", "name": "training"},
        {"kind": "window", "name": "exchange_4096"},
        {"kind": "window", "name": "exchange"},
    ]
    first, *windows = renamed.rename_log(lines)
    assert first == {"kind": "rank", "communication": "all_reduce", "collective_operations": []}
    assert [window["name"] for window in windows] == ["training", "communication_4096", "communication"]


def test_what_is_hashed_has_its_first_names():
    assert renamed.earlier_names({"repetitions": 3, "model": "vgg16"}) == {"repeats": 3, "model": "vgg16"}
