"""The files below a folder: none is left out without a message, and reading never waits for one."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dlperf_study.errors import IdentityError, LogError
from dlperf_study.ingest.identification import describe, identify_logs
from dlperf_study.ingest.log_files import find_log_files
from tests.ingest.conftest import SAMPLES, Ingest, WriteLog, declare, reason

NOBODY = 65534


@pytest.fixture
def half_closed() -> Iterator[Path]:
    """A folder in which one can't be listed. Root may list all, and is nobody meanwhile; nobody enters pytest's own."""
    with tempfile.TemporaryDirectory() as path:
        Path(path).chmod(0o755)
        Path(path, "2n8g").mkdir(mode=0)
        user = os.geteuid()
        os.seteuid(NOBODY if user == 0 else user)
        yield Path(path)
        os.seteuid(user)


def test_a_log_that_is_not_a_file_is_a_failed_run(folder: Path, ingested: Ingest, write_log: WriteLog) -> None:
    write_log("1n1g/r50_b128_fp32_1.log")
    os.mkfifo(folder / "1n1g/r50_b128_fp32_2.log")
    (folder / "1n1g/r50_b128_fp32_3.log").symlink_to(folder / "moved.log")
    os.mkfifo(folder / "1n1g/more.zip")
    dataset = ingested()
    assert reason(dataset, 1) == ""
    assert "r50_b128_fp32_2.log: can't be read: it is a pipe, a socket or a device" in reason(dataset, 2)
    assert "r50_b128_fp32_3.log: can't be read: [Errno 2] No such file" in reason(dataset, 3)
    assert any("not read: 1n1g/more.zip" in message for message in dataset.diagnostics["message"])


def test_a_name_that_is_not_text_is_shown_by_its_bytes(folder: Path, ingested: Ingest, write_log: WriteLog) -> None:
    write_log("1n1g/r50_b128_fp32_1.log")
    write_log("1n1g/mod\udce9le_b128_fp32_2.log", seed=2)
    write_log("caf\udce9.txt", seed=3)
    assert "caf\\xe9.txt" in describe(identify_logs(folder))
    assert {"r50", "mod\\xe9le"} == set(ingested().runs["model"])


def test_a_folder_that_cannot_be_listed_is_an_error(half_closed: Path) -> None:
    with pytest.raises(LogError, match="2n8g: can't be listed and may contain logs: Permission denied"):
        find_log_files(half_closed)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"\x1f\x8b", bytes(range(256)) * 9])
def test_an_archive_that_cannot_be_read_is_an_error(tmp_path: Path, content: bytes) -> None:
    archive = tmp_path / "logs.zip"
    archive.write_bytes(content)
    with pytest.raises(LogError, match=r"logs\.zip: can't be read as an archive: it is damaged or incomplete"):
        identify_logs(archive)


def test_event_files_are_logs_and_their_last_number_is_no_repetition(folder: Path, ingested: Ingest) -> None:
    content = (SAMPLES / "today" / "tensorboard_constructed.out.tfevents.1795407924").read_bytes()
    for batch, damaged in ((128, content), (64, content[:-1]), (32, b"")):
        declare(folder / str(batch), batch_per_device=batch)
        (folder / str(batch) / "events.out.tfevents.1.host.2.7").write_bytes(damaged)
    runs = ingested().runs.set_index("batch_per_device")
    assert set(runs["repetition"]) == {1}
    assert runs.loc[128, "throughput"] == pytest.approx(350, rel=0.002)
    assert "the record at byte 4025 is cut" in runs.loc[64, "reason"]
    assert "events.out.tfevents.1.host.2.7: is empty" in runs.loc[32, "reason"]


def test_event_files_of_one_folder_are_no_ranks(folder: Path, ingested: Ingest) -> None:
    declare(folder, devices_per_node=2)
    for name in ("events.out.tfevents.1.host.2.0", "events.out.tfevents.9.host.3.1"):
        (folder / name).write_bytes(
            (SAMPLES / "today" / "tensorboard_constructed.out.tfevents.1795407924").read_bytes()
        )
    with pytest.raises(IdentityError, match=r"repetition 1 appears 2 times: .*1.host.2.0, .*9.host.3.1"):
        ingested()
