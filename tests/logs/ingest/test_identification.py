"""Identity: declared, proposed and confirmed, never guessed."""

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from dlperf_study.core.errors import DlperfStudyError, LogError, MetadataError
from dlperf_study.logs.declared_metadata import read_metadata_file
from dlperf_study.logs.identification import describe, identify_logs
from dlperf_study.logs.metadata import metadata_problems
from tests.logs.ingest.conftest import declare


def values(logs, *names):
    """Return these parameters of each configuration."""
    return [tuple(map(metadata.parameters.get, names)) for metadata in logs.study.configurations]


@pytest.mark.usefixtures("small_archive")
def test_a_proposal_is_written_once_and_not_confirmed(folder):
    logs = identify_logs(folder)
    assert not logs.confirmed
    assert values(logs, "nodes", "devices_per_node", "framework") == [
        *((1, 1, "paddle_resnet50"), (1, 8, "paddle_resnet50"), (10, 8, "paddle_resnet50"))
    ]
    text = logs.file.read_text().replace("model: r50", "model: resnet50")
    logs.file.write_text(text)
    again = identify_logs(folder)
    assert logs.file.read_text() == text
    assert set(values(again, "model")) == {("resnet50",)}
    assert not again.confirmed


@pytest.mark.usefixtures("small_archive")
@pytest.mark.parametrize("name", ["Läufe", "_old", "2020.09", "-x", "a b"])
def test_a_proposal_of_any_folder_can_be_accepted_later(tmp_path, folder, name):
    shutil.copytree(folder, tmp_path / name)
    proposed = identify_logs(tmp_path / name).study.name
    assert identify_logs(tmp_path / name, confirm=True).study.name == proposed


@pytest.mark.parametrize("name", ["../elsewhere", "/elsewhere", "..", "a b", "-x", "a\n"])
def test_a_name_that_is_no_folder_of_outputs_is_refused_and_nothing_is_written(folder, name):
    with pytest.raises(MetadataError, match=re.escape(repr(name))):
        identify_logs(folder, name)
    assert not (folder / "metadata.yaml").exists()


@pytest.mark.usefixtures("small_archive")
def test_accepting_confirms_the_file_as_it_was_edited(folder):
    file = identify_logs(folder).file
    file.write_text(file.read_text().replace("model: r50", "model: resnet50 # mine"))
    assert identify_logs(folder, confirm=True).confirmed
    configuration_id, confirmed = read_metadata_file(file)
    assert confirmed
    assert "resnet50 # mine" in file.read_text()
    assert configuration_id.configurations[0].parameters["model"] == "resnet50"


@pytest.mark.usefixtures("small_archive")
def test_a_proposal_names_unstated_parameters_and_how_to_confirm(folder, write_log, snapshot):
    write_log("notes.txt")
    text = describe(identify_logs(folder))
    [unstated] = [line for line in text.splitlines() if line.startswith("Not stated")]
    assert {"image_size", "data_loader"} <= set(unstated.split(", "))
    assert "batch_per_device" not in unstated
    assert text.replace(unstated, "") == snapshot


def test_precisions_batches_and_models_never_share_a_configuration(folder, write_log):
    for name in ("r50_b128_fp32_1", "r50_b64_fp32_1", "r50_b128_fp16_1", "r101_b128_fp32_1"):
        write_log(f"1n1g/{name}.log")
    configurations = identify_logs(folder).study.configurations
    assert len({metadata.key for metadata in configurations}) == 4
    assert {metadata.parameters["precision"] for metadata in configurations} == {"fp32", "amp_fp16"}


def test_metadata_with_problems_are_refused(folder, write_log, refused):
    write_log("july/1n1g/r50_b128_fp32_1.log")
    write_log("august/1n1g/r50_b128_fp32_1.log")
    identified = identify_logs(folder, confirm=True)
    assert "Not yet: " in describe(identified)
    with refused(MetadataError):
        identified.study.checked()


def test_a_program_that_is_not_recognised_must_be_declared(folder, refused):
    (folder / "1n1g").mkdir()
    (folder / "1n1g/r50_b128_fp32_1.log").write_text("hello\n")
    with refused(MetadataError):
        identify_logs(folder, confirm=True).study.checked()


def test_a_configuration_next_to_logs_needs_no_confirmation(folder, write_log):
    declare(folder / "one")
    write_log("one/train_1.log")
    write_log("one/train_2.log")
    logs = identify_logs(folder)
    assert logs.confirmed
    assert not logs.file.exists()
    [metadata] = logs.study.configurations
    assert [(run.repetition, run.logs) for run in metadata.runs] == [
        (1, ("one/train_1.log",)),
        (2, ("one/train_2.log",)),
    ]
    assert "image_size" in metadata.unstated
    assert "model" not in metadata.unstated


def test_a_table_is_a_log_only_where_there_is_no_other(folder):
    declare(folder / "with_log")
    declare(folder / "alone", batch_per_device=64)
    for name in ("with_log", "alone"):
        (folder / name / "results.csv").write_text("epoch,time,train/box_loss\n1,10.0,1.5\n")
    (folder / "with_log" / "training.log").write_text("iter 1: loss 2.5, time 250.0ms\n")
    logs = {metadata.logs[0]: len(metadata.logs) for metadata in identify_logs(folder).study.configurations}
    assert {Path(name).name: count for name, count in logs.items()} == {"results.csv": 1, "training.log": 1}


def test_equal_configurations_in_several_folders_are_one(folder, write_log):
    for repetition in (1, 2):
        declare(folder / f"runs/{repetition}", repetition=repetition)
        write_log(f"runs/{repetition}/train.log")
    [metadata] = identify_logs(folder).study.configurations
    assert [run.repetition for run in metadata.runs] == [1, 2]


@pytest.mark.parametrize(
    "changes",
    [
        {"nodes": "1"},
        {"batch_per_device": 0},
        {"repetition": 0},
        {"tokens_per_sample": 0},
        {"devices_per_process": -8},
        {"batch_per_device": 1, "devices_per_node": 4, "global_batch": 8},
    ],
    ids=lambda changes: " ".join(changes),
)
def test_a_wrong_configuration_file_is_named(folder, write_log, refused, changes):
    declare(folder / "one", **changes)
    write_log("one/train_1.log")
    with refused(DlperfStudyError):
        identify_logs(folder)


@pytest.mark.parametrize(
    "text", ['{"nodes": 1, "nodes": 2}', "[" * 100_000, "{", "[]"], ids=["twice", "deep", "cut", "list"]
)
def test_an_ambiguous_or_invalid_configuration_file_is_named(folder, text):
    (folder / "configuration.json").write_text(text)
    with pytest.raises(MetadataError, match=r"configuration\.json: "):
        identify_logs(folder)


def test_a_configuration_file_that_is_damaged_in_its_archive_is_named(tmp_path):
    # So long that its damage is seen when it is read, and not when it is opened.
    archive, text = tmp_path / "all.zip", json.dumps({"nodes": 1, "devices_per_node": 1}) + " " * 100_000
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("one/configuration.json", text)
    archive.write_bytes(archive.read_bytes().replace(text.encode(), text.replace("1", "2").encode()))
    with pytest.raises(LogError, match=r"configuration\.json: .*Bad CRC-32"):
        identify_logs(archive)


def test_what_can_not_be_identified_is_an_error_with_a_remedy(tmp_path, folder, write_log, refused):
    log = write_log("train.log")
    with refused(MetadataError):
        identify_logs(folder, confirm=True)
    with refused(LogError):
        identify_logs(folder / "nowhere")
    # The file system accepts a file name of this length, but not that of the unfinished file, which is longer.
    archive = tmp_path / f"{'x' * 240}.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.write(log, "1n1g/r50_b128_fp32_1.log")
    with refused(MetadataError):
        identify_logs(archive)


def test_the_file_with_its_former_name_is_refused(folder, write_log):
    write_log("1n1g/r50_b128_fp32_1.log")
    (folder / "identity.yaml").write_text("study: july\n")
    with pytest.raises(MetadataError, match=r"identity\.yaml: is named metadata\.yaml now; rename it"):
        identify_logs(folder)


def test_an_unknown_key_is_named(folder, write_log):
    write_log("1n1g/r50_b128_fp32_1.log")
    file = identify_logs(folder).file
    file.write_text(file.read_text().replace("nodes: 1\n", "node: 1\n"))
    with pytest.raises(DlperfStudyError, match=r"metadata\.yaml: configurations\[0\]: .* node;"):
        identify_logs(folder, confirm=True)
    file.unlink()
    declare(folder, modell="x")
    with pytest.raises(DlperfStudyError, match=r"configuration\.json: unknown key modell;"):
        identify_logs(folder)


@pytest.mark.usefixtures("small_archive")
def test_an_archive_is_read_in_place_and_its_proposal_is_next_to_it(folder, tmp_path):
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for file in sorted(folder.rglob("*.log")):
            opened.write(file, file.relative_to(folder))
    logs = identify_logs(archive)
    assert logs.file == tmp_path / "all.metadata.yaml"
    assert len(logs.study.configurations) == 3
    assert logs.study.name == "all"


def test_a_contradictory_identity_is_never_confirmed(folder, write_log):
    for case in ("1n1g", "1N1G"):
        write_log(f"{case}/r50_b128_fp32_1.log")
    logs = identify_logs(folder, confirm=True)
    assert list(metadata_problems(logs.study.configurations))
    assert not logs.file.exists()
    assert not identify_logs(folder).confirmed
    identify_logs(folder, confirm=True)
    assert "confirmed: false" in logs.file.read_text()
