"""The files below a folder: none is left out without a message, and reading never waits for one."""

import json
import os
import tempfile
import zipfile
from pathlib import Path

import pytest

from dlperf_study.core.errors import LogError, MetadataError
from dlperf_study.logs.identification import describe, identify_logs
from dlperf_study.logs.log_files import find_log_files
from tests.logs.ingest.conftest import REQUIRED_METADATA, SAMPLES, declare, elapse_lines

NOBODY = 65534
EVENTS = SAMPLES / "today" / "tensorboard_constructed.out.tfevents.1795407924"


@pytest.fixture
def half_closed():
    """A folder in which one can't be listed. Root may list all, and is nobody meanwhile; nobody enters pytest's own."""
    with tempfile.TemporaryDirectory() as path:
        Path(path).chmod(0o755)
        Path(path, "2n8g").mkdir(mode=0)
        user = os.geteuid()
        os.seteuid(NOBODY if user == 0 else user)
        yield Path(path)
        os.seteuid(user)


def test_a_name_that_is_not_text_is_shown_by_its_bytes(folder, ingested, write_log):
    write_log("1n1g/r50_b128_fp32_1.log")
    write_log("1n1g/mod\udce9le_b128_fp32_2.log", seed=2)
    write_log("caf\udce9.txt", seed=3)
    assert "caf\\xe9.txt" in describe(identify_logs(folder))
    assert {"r50", "mod\\xe9le"} == set(ingested().runs["model"])


def test_a_folder_that_cannot_be_listed_is_an_error(half_closed):
    with pytest.raises(LogError, match=r"2n8g: .*Permission denied"):
        find_log_files(half_closed)


def test_a_linked_folder_is_read_once(tmp_path):
    results, scratch = tmp_path / "results", tmp_path / "scratch"
    for folder in (results / "run1", scratch / "run2"):
        folder.mkdir(parents=True)
        (folder / "train.log").touch()
    (results / "run2").symlink_to(scratch / "run2")
    for twice, target in (("latest", results / "run1"), ("again", scratch / "run2"), ("above", tmp_path)):
        (results / twice).symlink_to(target)
    (scratch / "run2" / "back").symlink_to(scratch)
    files = [log_file.relative_path for log_file in find_log_files(results)]
    assert "run1/train.log" in files
    assert len(files) == 2


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"\x1f\x8b", bytes(range(256)) * 9])
def test_an_archive_that_cannot_be_read_is_an_error(tmp_path, content):
    archive = tmp_path / "logs.zip"
    archive.write_bytes(content)
    for path in (archive, tmp_path):
        with pytest.raises(LogError, match=r"logs\.zip: .*damaged or incomplete"):
            identify_logs(path)


def test_event_files_of_one_folder_are_no_ranks_and_their_last_number_is_no_repetition(folder, ingested, refused):
    declare(folder)
    names = ("events.out.tfevents.1.host.2.7", "events.out.tfevents.9.host.3.1")
    (folder / names[0]).write_bytes(EVENTS.read_bytes())
    [run] = ingested().runs.itertuples()
    assert (run.repetition, run.throughput) == (1, pytest.approx(350, rel=0.002))
    (folder / names[1]).write_bytes(EVENTS.read_bytes())
    declare(folder, devices_per_node=2)
    with refused(MetadataError):
        ingested()


#: What is changed in an archive: the bytes before it, after them by how many, and the new bytes.
@pytest.mark.parametrize(
    ("mark", "offset", "changed"),
    [(b"PK\x01\x02", 6, b"\xff\x00"), ("ä".encode(), 0, b"\xff"), (b"PK\x03\x04", 60, b"\xff" * 40)],
    ids=["a version that no archive has", "a name that is no UTF-8", "damaged LZMA"],
)
def test_an_archive_that_is_none_is_refused(tmp_path, folder, mark, offset, changed):
    packed = tmp_path / "logs.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("configuration.json", json.dumps(REQUIRED_METADATA))
        archive.writestr("ä/run_1.log", "\n".join(elapse_lines(1, 128, 1)))
    assert len(identify_logs(packed).study.configurations) == 1
    content = bytearray(packed.read_bytes())
    # Names are in the list of members, too, behind all members.
    position = (content.rindex if offset == 0 else content.index)(mark) + offset
    content[position : position + len(changed)] = changed
    packed.write_bytes(content)
    with pytest.raises(LogError, match="can't be read"):
        identify_logs(packed)


@pytest.mark.parametrize("name", ["logs.tar.gz", "logs.tar", "logs.7z"])
def test_an_archive_of_another_kind_is_to_be_unpacked(tmp_path, name):
    (tmp_path / name).write_bytes(b"\0" * 600)
    with pytest.raises(LogError, match="only zip archives are read; unpack it"):
        find_log_files(tmp_path / name)


def test_why_a_member_of_an_archive_can_not_be_read_is_said(tmp_path):
    archive = tmp_path / "logs.zip"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("1n1g/r50_b128_fp32_1.log", "Epoch: [0][ 1/10] Time 0.1\n")
    content = bytearray(archive.read_bytes())
    for position in (6, content.find(b"PK\1\2") + 8):
        # The mark of an encrypted member.
        content[position] |= 1
    archive.write_bytes(content)
    described = describe(identify_logs(archive, "x", False))
    assert "r50_b128_fp32_1.log: can't be read: File '1n1g/r50_b128_fp32_1.log' is encrypted" in described


def test_folders_that_are_too_deep_are_refused(tmp_path):
    (tmp_path / Path(*["f"] * 101)).mkdir(parents=True)
    with pytest.raises(LogError, match="its folders are more than 100 deep; name the folder of the logs"):
        find_log_files(tmp_path)
