"""Identity: declared, proposed and confirmed, never guessed."""

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from dlperf_study.errors import DlperfStudyError, IdentityError, LogError
from dlperf_study.ingest.declared_metadata import read_identity
from dlperf_study.ingest.identification import describe, identify_logs
from dlperf_study.ingest.identity import identity_problems
from tests.ingest.conftest import WriteLog, declare


@pytest.mark.usefixtures("small_archive")
def test_a_proposal_is_written_once_and_not_confirmed(folder: Path) -> None:
    logs = identify_logs(folder)
    assert not logs.confirmed
    sizes = [
        (metadata.parameters["nodes"], metadata.parameters["devices_per_node"])
        for metadata in logs.identity.configurations
    ]
    assert sizes == [(1, 1), (1, 8), (10, 8)]
    assert {metadata.parameters["framework"] for metadata in logs.identity.configurations} == {"paddle_resnet50"}
    text = logs.file.read_text().replace("model: r50", "model: resnet50")
    logs.file.write_text(text)
    again = identify_logs(folder)
    assert logs.file.read_text() == text
    assert {metadata.parameters["model"] for metadata in again.identity.configurations} == {"resnet50"}
    assert not again.confirmed


@pytest.mark.usefixtures("small_archive")
@pytest.mark.parametrize("name", ["Läufe", "_old", "2020.09", "-x", "a b"])
def test_a_proposal_of_any_folder_can_be_accepted_later(tmp_path: Path, folder: Path, name: str) -> None:
    shutil.copytree(folder, tmp_path / name)
    proposed = identify_logs(tmp_path / name).identity.study
    assert identify_logs(tmp_path / name, accept=True).identity.study == proposed


@pytest.mark.parametrize("name", ["../elsewhere", "/elsewhere", "..", "a b", "-x", "a\n"])
def test_a_name_that_is_no_folder_of_outputs_is_refused_and_nothing_is_written(folder: Path, name: str) -> None:
    with pytest.raises(IdentityError, match="invalid study name"):
        identify_logs(folder, name)
    assert not (folder / "identity.yaml").exists()


@pytest.mark.usefixtures("small_archive")
def test_accepting_confirms_the_file_as_it_was_edited(folder: Path) -> None:
    file = identify_logs(folder).file
    file.write_text(file.read_text().replace("model: r50", "model: resnet50 # mine"))
    assert identify_logs(folder, accept=True).confirmed
    identity, confirmed = read_identity(file)
    assert confirmed
    assert "resnet50 # mine" in file.read_text()
    assert identity.configurations[0].parameters["model"] == "resnet50"


@pytest.mark.usefixtures("small_archive")
def test_a_proposal_names_unstated_parameters_and_how_to_confirm(folder: Path, write_log: WriteLog) -> None:
    write_log("notes.txt")
    text = describe(identify_logs(folder))
    for expected in ("10  ", "image_size", "data_source", "notes.txt", "--accept", "confirmed: true"):
        assert expected in text
    assert "batch_per_device," not in text.partition("Not stated")[2]


def test_precisions_batches_and_models_never_share_a_configuration(folder: Path, write_log: WriteLog) -> None:
    for name in ("r50_b128_fp32_1", "r50_b64_fp32_1", "r50_b128_fp16_1", "r101_b128_fp32_1"):
        write_log(f"1n1g/{name}.log")
    configurations = identify_logs(folder).identity.configurations
    assert len({metadata.key for metadata in configurations}) == 4
    assert {metadata.parameters["precision"] for metadata in configurations} == {"fp32", "amp_fp16"}


def test_a_log_per_node_is_one_run_and_a_second_log_of_a_rank_is_none(folder: Path, write_log: WriteLog) -> None:
    write_log("2n8g/node0/r50_b128_fp32_1.log")
    write_log("2n8g/node1/r50_b128_fp32_1.log")
    [metadata] = identify_logs(folder).identity.configurations
    assert [len(run.logs) for run in metadata.runs] == [2]


def test_the_same_repetition_twice_is_refused(folder: Path, write_log: WriteLog) -> None:
    write_log("1n1g/r50_b128_fp32_1.log")
    write_log("1n1g/old/r50_b128_fp32_1.log")
    logs = identify_logs(folder, accept=True)
    assert "repetition 1 appears 2 times" in describe(logs)
    with pytest.raises(IdentityError, match=r"repetition 1 appears 2 times: .*old/r50_b128_fp32_1\.log"):
        logs.identity.checked()


def test_two_folders_of_one_case_are_not_mixed(folder: Path, write_log: WriteLog) -> None:
    write_log("july/1n1g/r50_b128_fp32_1.log")
    write_log("august/1n1g/r50_b128_fp32_1.log")
    logs = identify_logs(folder, accept=True)
    with pytest.raises(IdentityError, match="state the same") as raised:
        logs.identity.checked()
    assert "july" in str(raised.value)
    assert "august" in str(raised.value)


def test_a_program_that_is_not_recognised_must_be_declared(folder: Path) -> None:
    (folder / "1n1g").mkdir()
    (folder / "1n1g/r50_b128_fp32_1.log").write_text("hello\n")
    logs = identify_logs(folder, accept=True)
    with pytest.raises(IdentityError, match=r"1n1g \(none of its logs has one known format\): framework not stated"):
        logs.identity.checked()


def test_a_configuration_next_to_logs_needs_no_confirmation(folder: Path, write_log: WriteLog) -> None:
    declare(folder / "one")
    write_log("one/train_1.log")
    write_log("one/train_2.log")
    logs = identify_logs(folder)
    assert logs.confirmed
    assert not logs.file.exists()
    [metadata] = logs.identity.configurations
    assert [(run.repetition, run.logs) for run in metadata.runs] == [
        (1, ("one/train_1.log",)),
        (2, ("one/train_2.log",)),
    ]
    assert "image_size" in metadata.unstated
    assert "model" not in metadata.unstated


def test_a_table_is_a_log_only_where_there_is_no_other(folder: Path) -> None:
    declare(folder / "with_log")
    declare(folder / "alone", batch_per_device=64)
    for name in ("with_log", "alone"):
        (folder / name / "results.csv").write_text("epoch,time,train/box_loss\n1,10.0,1.5\n")
    (folder / "with_log" / "training.log").write_text("iter 1: loss 2.5, time 250.0ms\n")
    logs = {metadata.logs[0]: len(metadata.logs) for metadata in identify_logs(folder).identity.configurations}
    assert {Path(name).name: count for name, count in logs.items()} == {"results.csv": 1, "training.log": 1}


def test_equal_configurations_in_several_folders_are_one(folder: Path, write_log: WriteLog) -> None:
    for repetition in (1, 2):
        declare(folder / f"runs/{repetition}", repetition=repetition)
        write_log(f"runs/{repetition}/train.log")
    [metadata] = identify_logs(folder).identity.configurations
    assert [run.repetition for run in metadata.runs] == [1, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"modell": "x"}, r"unknown key modell; did you mean model\?"),
        ({"nodes": "1"}, r"nodes is '1', which is not an integer"),
        ({"batch_per_device": 0}, r"batch_per_device is 0; it must be at least 1"),
        ({"repetition": 0}, r"repetition is 0"),
        ({"tokens_per_sample": 0}, r"tokens_per_sample is 0"),
        ({"devices_per_process": -8}, r"devices_per_process is -8"),
    ],
)
def test_a_wrong_configuration_file_is_named(
    folder: Path, write_log: WriteLog, changes: dict[str, object], message: str
) -> None:
    declare(folder / "one", **changes)
    write_log("one/train_1.log")
    with pytest.raises(DlperfStudyError, match=r"one/configuration\.json.*" + message):
        identify_logs(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"nodes": 1, "nodes": 2}', "can't be read as JSON: 'nodes' appears twice"),
        ("[" * 100_000, "can't be read as JSON: maximum recursion depth"),
        ("{", "can't be read as JSON: Expecting"),
    ],
)
def test_an_ambiguous_or_invalid_configuration_file_is_named(folder: Path, text: str, message: str) -> None:
    (folder / "configuration.json").write_text(text)
    with pytest.raises(IdentityError, match=message):
        identify_logs(folder)


def test_a_configuration_file_that_is_damaged_in_its_archive_is_named(tmp_path: Path) -> None:
    # So long that its damage is seen when it is read, and not when it is opened.
    archive, text = tmp_path / "all.zip", json.dumps({"nodes": 1, "devices_per_node": 1}) + " " * 100_000
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("one/configuration.json", text)
    archive.write_bytes(archive.read_bytes().replace(text.encode(), text.replace("1", "2").encode()))
    with pytest.raises(IdentityError, match=r"configuration\.json: can't be read as JSON: Bad CRC-32"):
        identify_logs(archive)


def test_a_missing_required_parameter_is_named(folder: Path, write_log: WriteLog) -> None:
    declare(folder / "one", precision=None, servers=None)
    write_log("one/train_1.log")
    with pytest.raises(IdentityError, match="servers, precision not stated"):
        identify_logs(folder).identity.checked()


def test_processes_share_the_devices_of_a_node_evenly(folder: Path, write_log: WriteLog) -> None:
    declare(folder / "one", devices_per_node=8, devices_per_process=3)
    write_log("one/train_1.log")
    with pytest.raises(IdentityError, match="devices_per_process is 3, but a node has 8 devices, no multiple"):
        identify_logs(folder).identity.checked()


def test_a_wrong_identity_file_is_named(folder: Path, write_log: WriteLog) -> None:
    write_log("1n1g/r50_b128_fp32_1.log")
    file = identify_logs(folder).file
    file.write_text(file.read_text().replace("nodes: 1\n", "node: 1\n"))
    with pytest.raises(DlperfStudyError, match=r"identity\.yaml: configurations\[0\]: unknown key node; did you mean"):
        identify_logs(folder, accept=True)


def test_logs_without_metadata_are_an_error_with_a_remedy(folder: Path, write_log: WriteLog) -> None:
    write_log("train.log")
    with pytest.raises(IdentityError, match=re.escape("train.log): put a configuration.json")):
        identify_logs(folder, accept=True)
    with pytest.raises(LogError, match="there is no such folder"):
        identify_logs(folder / "nowhere")


@pytest.mark.usefixtures("small_archive")
def test_an_archive_is_read_in_place_and_its_proposal_is_next_to_it(folder: Path, tmp_path: Path) -> None:
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        for file in sorted(folder.rglob("*.log")):
            opened.write(file, file.relative_to(folder))
    logs = identify_logs(archive)
    assert logs.file == tmp_path / "all.identity.yaml"
    assert len(logs.identity.configurations) == 3
    assert logs.identity.study == "all"


def test_a_proposal_that_cannot_be_written_is_one_message(tmp_path: Path, folder: Path, write_log: WriteLog) -> None:
    log = write_log("1n1g/r50_b128_fp32_1.log")
    # The file system accepts a file name of this length, but not that of the unfinished file, which is longer.
    archive = tmp_path / f"{'x' * 240}.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.write(log, log.relative_to(folder))
    message = r"identity\.yaml: the identity of the logs can't be written there \(File name too long\): ingest a copy"
    with pytest.raises(IdentityError, match=message):
        identify_logs(archive)


def test_a_contradictory_identity_is_never_confirmed(folder: Path, write_log: WriteLog) -> None:
    for case in ("1n1g", "1N1G"):
        write_log(f"{case}/r50_b128_fp32_1.log")
    logs = identify_logs(folder, accept=True)
    assert list(identity_problems(logs.identity.configurations))
    assert not logs.file.exists()
    assert not identify_logs(folder).confirmed
    identify_logs(folder, accept=True)
    assert "confirmed: false" in logs.file.read_text()
