"""Files of Weights & Biases: the history of a real one of 40 steps, and what is left of it after damage."""

import io
import json
import math
import struct
import zlib
from pathlib import Path

import pytest

from dlperf_study.core.errors import LogError
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.wandb_files import HISTORY_ROW, history_rows
from tests.logs.small_logs import errors, write_and_read
from tests.logs.test_event_files import field

SAMPLE = Path(__file__).parent / "samples" / "today" / "wandb_constructed.wandb"
CONTENT = SAMPLE.read_bytes()
NAME = "run-z3ouoy25.wandb"
HEADER = CONTENT[:7]
#: Where the first record begins, and the last, which is that of the end of the run.
FIRST, END = 7, len(CONTENT) - 45
ENDED = b"\x92\x01\x00"


def piece(content, kind=1):
    return struct.pack("<IHB", zlib.crc32(content, zlib.crc32(bytes([kind]))), len(content), kind) + content


def history(**values):
    """Return a record of the history."""
    items = [field(1, field(2, name.encode()) + b"\x82\x01" + text(value)) for name, value in values.items()]
    return field(2, b"".join(items))


def text(value):
    """Return a value as JSON after its length."""
    content = json.dumps(value).encode()
    return bytes([len(content)]) + content


def rows(*records):
    content = HEADER + b"".join(map(piece, (*records, ENDED)))
    lines = history_rows(NAME, io.BytesIO(content))
    return [json.loads(line.removeprefix(HISTORY_ROW.encode())) for line in lines]


def test_the_scalars_are_those_that_were_recorded():
    series = read_log(SAMPLE).series("throughput")
    assert series.step.tolist() == list(range(40))
    assert series.values["throughput"][:2].tolist() == [350.0, 350.84147098480787]
    assert series.values["loss"][[0, 39]].tolist() == [7.0, 6.025]
    assert series.values["step_seconds"][0] == 0.3657142857142857
    assert 0.5 < series.time_seconds[-1] - series.time_seconds[0] < 2


def test_a_record_may_begin_in_one_block_and_end_in_another():
    """The rest of a block in which no piece fits is empty."""
    records = [history(_step=step, _timestamp=1.5, step_time=0.25) for step in range(2)]
    fill = 32768 - 7 - 3 * 7 - len(records[0]) - 20 - 4
    content = HEADER + piece(records[0]) + piece(b"\x22" + varint(fill) + bytes(fill))
    used = len(content) % 32768
    content += piece(records[1][: 32768 - used - 7 - 3], 2) + bytes(3)
    assert len(content) == 32768
    content += piece(records[1][32768 - used - 7 - 3 :], 4) + piece(ENDED)
    lines = list(history_rows(NAME, io.BytesIO(content)))
    assert [json.loads(line.removeprefix(HISTORY_ROW.encode()))["step"] for line in lines] == [0, 1]


def varint(value):
    low = value & 0x7F
    return bytes([low]) if value < 0x80 else bytes([low | 0x80]) + varint(value >> 7)


@pytest.mark.parametrize("missing", [1, 44, 45], ids=["a byte", "nearly all of the end", "the end"])
def test_a_file_that_is_cut_or_has_no_end_is_truncated(tmp_path, snapshot, missing):
    log = write_and_read(tmp_path, NAME, CONTENT[:-missing])
    assert len(log.series("throughput")) == 40
    assert errors(log) == snapshot


@pytest.mark.parametrize("changed", [FIRST, FIRST + 6, FIRST + 40])
def test_a_changed_byte_is_damage_at_a_byte(tmp_path, changed):
    content = bytearray(CONTENT)
    content[changed] ^= 1
    with pytest.raises(LogError, match=f"byte {FIRST} is damaged"):
        write_and_read(tmp_path, NAME, bytes(content))


WITHOUT_SCALARS = {
    "empty": b"",
    "other version": b":W&B\xe1\xbe\x01",
    "no tag": HEADER + piece(ENDED),
    "failed": HEADER + piece(b"\x92\x01\x02\x08\x03"),
    "no record": HEADER + piece(b"\x0f"),
    "infinite step": HEADER + piece(history(_step=math.inf)),
    "last piece only": HEADER + piece(ENDED, 4),
}


@pytest.mark.parametrize("content", WITHOUT_SCALARS.values(), ids=WITHOUT_SCALARS)
def test_a_file_without_scalars_is_refused(tmp_path, refused, content):
    with refused(LogError):
        write_and_read(tmp_path, NAME, content)


def test_only_numbers_are_scalars():
    record = history(_step=3, _timestamp=2.5, step_time=0.1, loss="NaN", done=True, image={"path": "x"}, note="2")
    [row] = rows(record)
    assert (row["step"], row["wall_time"], str(row["values"])) == (3, 2.5, "{'step_time': 0.1, 'loss': nan}")
