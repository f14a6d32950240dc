"""No file of a log fills the memory: what is compressed, a length that is wrong, a table that is computed."""

import csv
import gzip
import io
import json
import sqlite3
import struct
import zipfile
from contextlib import closing

import pytest

from dlperf_study.core.errors import LogError
from dlperf_study.logs import mlflow_database, wandb_files
from dlperf_study.logs.event_files import _masked_checksum, event_rows
from dlperf_study.logs.identification import identify_logs
from dlperf_study.logs.json_lines import CSV_ROW, as_lines
from dlperf_study.logs.log_files import find_log_files
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.scalar_rows import LONGEST_RECORD, DamagedRecordError
from dlperf_study.logs.tracker_files import collect_tracker_runs
from tests.logs import test_wandb_files as wandb
from tests.logs.small_logs import write_and_read
from tests.logs.test_event_files import field, record
from tests.logs.test_mlflow_runs import META, TIMES

#: More than any file may have that is read as a whole, in 70 kB.
BOMB = gzip.compress(bytes((1 << 26) + 1), compresslevel=1)


@pytest.fixture
def folder(tmp_path):
    """A folder with a run of MLflow's file store."""
    (tmp_path / "run" / "metrics").mkdir(parents=True)
    (tmp_path / "run" / "meta.yaml").write_text(META)
    (tmp_path / "run" / "metrics" / "step_time").write_text(TIMES)
    return tmp_path


def read_runs(folder):
    for log in collect_tracker_runs(find_log_files(folder)):
        read_log(log.source)


@pytest.mark.parametrize(
    ("name", "read", "megabytes"),
    [
        ("configuration.json", identify_logs, 4),
        ("log_format.yaml", identify_logs, 4),
        ("run/meta.yaml", read_runs, 4),
        ("run/metrics/step_time", read_runs, 67),
        ("mlflow.db", read_runs, 2),
    ],
)
@pytest.mark.parametrize("is_archive", [False, True], ids=["gzip", "zip"])
def test_a_small_file_that_becomes_a_large_one_is_refused(folder, monkeypatch, name, read, megabytes, is_archive):
    # The limit for databases is larger than a test should need.
    monkeypatch.setattr(mlflow_database, "_LARGEST", 2_000_000)
    (folder / name).write_bytes(BOMB)
    archive = folder.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as packed:
        for file in folder.rglob("*"):
            packed.write(file, file.relative_to(folder))
    with pytest.raises(LogError, match=rf"{name}: can't be read: it has more than {megabytes} MB"):
        read(archive if is_archive else folder)


def test_a_document_that_is_too_long_for_a_log_is_refused(tmp_path, refused):
    with refused(LogError):
        write_and_read(tmp_path, "state.json", gzip.compress(b"{\n" + b"[],[]," * 6_000_000, compresslevel=1))
    row = {"loss": 1.5, "step": 1, "train_samples_per_second": 350.0}
    document = json.dumps({"log_history": [row]}, indent=1)
    assert write_and_read(tmp_path, "state.json", document).lines == 1


@pytest.mark.parametrize("length", [LONGEST_RECORD + 1, 2**31, 2**63, 2**64 - 1])
def test_a_record_can_not_have_any_length(length):
    header = struct.pack("<Q", length)
    content = header + struct.pack("<I", _masked_checksum(header)) + b"\x09"
    with pytest.raises(DamagedRecordError, match=f"the record at byte 0 has {length} bytes"):
        list(event_rows("events.out.tfevents.1", io.BytesIO(content)))


@pytest.mark.parametrize(("parts", "is_read"), [(2, True), (3, False)])
def test_the_pieces_of_a_record_have_an_end(monkeypatch, parts, is_read, refused):
    """A record of one field that nobody reads, in parts of 1000 bytes."""
    monkeypatch.setattr(wandb_files, "LONGEST_RECORD", 2000)
    size = 1000 * parts
    whole = b"\x22" + wandb.varint(size - 3) + bytes(size - 3)
    pieces = [wandb.piece(whole[begin : begin + 1000], 3) for begin in range(0, size, 1000)]
    pieces[0], pieces[-1] = wandb.piece(whole[:1000], 2), wandb.piece(whole[-1000:], 4)
    step = wandb.piece(wandb.history(_step=1, step_time=0.25))
    content = wandb.HEADER + step + b"".join(pieces) + wandb.piece(wandb.ENDED)
    rows = wandb_files.history_rows(wandb.NAME, io.BytesIO(content))
    if is_read:
        assert len(list(rows)) == 1
    else:
        with refused(DamagedRecordError):
            list(rows)


@pytest.mark.parametrize(("last_byte", "is_read"), [(b"\x01", True), (b"\xff\x01", False)])
def test_an_integer_has_at_most_64_bits(last_byte, is_read, refused):
    """A longer one would take a time that grows with the square of its length."""
    summary = field(5, field(1, field(1, b"step_time") + b"\x15" + struct.pack("<f", 0.5)))
    content = io.BytesIO(record(b"\x10" + b"\xff" * 9 + last_byte + summary))
    if is_read:
        assert len(list(event_rows("a.tfevents.1", content))) == 1
    else:
        with refused(DamagedRecordError):
            list(event_rows("a.tfevents.1", content))


ENDLESS = "WITH RECURSIVE all_steps(step) AS (SELECT 1 UNION ALL SELECT step + 1 FROM all_steps)"


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (f"DROP TABLE runs; CREATE VIEW runs AS {ENDLESS} SELECT step AS run_uuid, 0 AS start_time FROM all_steps", ""),
        ("UPDATE metrics SET timestamp = NULL", r"a row of metrics is no step, time and value: \(0, None, "),
        ("UPDATE metrics SET value = 'fast'", r"a row of metrics is no step, time and value: \(0, 1000, "),
        ("UPDATE metrics SET step = 9e999", "a row of metrics is no step, time and value"),
        ("INSERT INTO runs SELECT * FROM runs", "has 2 rows in the table of runs"),
    ],
)
def test_a_database_holds_tables_of_numbers(tmp_path, change, message):
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as written:
        written.executescript(
            "CREATE TABLE runs (run_uuid TEXT, status TEXT, start_time INT, lifecycle_stage TEXT);"
            "CREATE TABLE metrics (key TEXT, value, timestamp INT, run_uuid TEXT, step INT, is_nan BOOLEAN);"
            "INSERT INTO runs VALUES ('1', 'FINISHED', 0, 'active');"
            "INSERT INTO metrics VALUES ('step_time', 0.25, 1000, '1', 0, 0);"
        )
    [log] = collect_tracker_runs(find_log_files(tmp_path))
    assert len(read_log(log.source).records) == 1
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as written:
        written.executescript(change)
    with pytest.raises(LogError, match=message or "runs and metrics must be tables"):
        read_log(collect_tracker_runs(find_log_files(tmp_path))[0].source)


def test_a_database_with_changes_in_another_file_is_refused(tmp_path):
    """What MLflow has written last is not in the database yet."""
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path)) as written:
        written.executescript("PRAGMA journal_mode = WAL; CREATE TABLE runs (run_uuid TEXT);")
        with pytest.raises(LogError, match="has changes that are not in it yet; stop MLflow"):
            collect_tracker_runs(find_log_files(tmp_path))


PAGE_BYTES, CHILDREN = 512, 70


def interior_page(child: int) -> bytes:
    """Return a page of a table's tree whose 70 children are one page."""
    page, end = bytearray(PAGE_BYTES), PAGE_BYTES
    page[0] = 5
    for index in range(CHILDREN):
        end -= 5
        page[end : end + 5] = struct.pack(">IB", child, min(index + 1, 127))
        struct.pack_into(">H", page, 12 + 2 * index, end)
    struct.pack_into(">HHHBI", page, 1, 0, CHILDREN, end, 0, child)
    return bytes(page)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("table", ["runs", "metrics"])
def test_pages_that_refer_to_each_other_make_no_rows_without_end(tmp_path, table):
    """A table of one row becomes one of 70^13, in 8 kB."""
    path, levels = tmp_path / "mlflow.db", 13
    with closing(sqlite3.connect(path)) as written:
        written.executescript(
            f"PRAGMA page_size = {PAGE_BYTES};"
            "CREATE TABLE runs (run_uuid TEXT, status TEXT, start_time INT, lifecycle_stage TEXT);"
            "CREATE TABLE metrics (key TEXT, value, timestamp INT, run_uuid TEXT, step INT, is_nan BOOLEAN);"
            "INSERT INTO runs VALUES ('1', 'FINISHED', 0, 'active');"
            "INSERT INTO metrics VALUES ('step_time', 0.25, 1000, '2', 0, 0);"
        )
        [root] = written.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table]).fetchone()
    content = bytearray(path.read_bytes())
    start, last = (root - 1) * PAGE_BYTES, len(content) // PAGE_BYTES
    pages = [bytes(content[start : start + PAGE_BYTES])]
    for level in range(1, levels):
        pages.append(interior_page(last + level))
    content[start : start + PAGE_BYTES] = interior_page(last + levels)
    content += b"".join(pages)
    struct.pack_into(">I", content, 28, len(content) // PAGE_BYTES)
    path.write_bytes(content)
    with pytest.raises(LogError, match="reading takes longer than a database of this size needs"):
        read_log(collect_tracker_runs(find_log_files(tmp_path))[0].source)


@pytest.mark.parametrize("row", ['1,"2"\r3', '"' + "7" * 200_000 + '",1'], ids=["carriage return", "long cell"])
def test_a_row_with_what_no_cell_has_is_split_at_its_commas(row):
    with pytest.raises(csv.Error):
        next(csv.reader([row]))
    rows = as_lines("metrics.csv", io.BytesIO(f"step,loss\n{row}\n1,1.5\n".encode()))
    first, second = (json.loads(line.removeprefix(CSV_ROW.encode())) for line in iter(rows.read1, b""))
    assert list(first.values()) == row.split(",")
    assert second == {"step": "1", "loss": "1.5"}


@pytest.mark.parametrize("meta", ["status: " + "[" * 500 + "]" * 500, f"status: {'9' * 5000}", "status: [3]"])
def test_a_description_of_a_run_that_is_none_is_refused(folder, meta, refused):
    (folder / "run" / "meta.yaml").write_text(f"lifecycle_stage: active\n{meta}\n")
    [log] = collect_tracker_runs(find_log_files(folder))
    with refused(LogError):
        read_log(log.source)
