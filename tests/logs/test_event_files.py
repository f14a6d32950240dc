"""Event files of TensorBoard: a real file of 40 steps, and what is left of it after damage."""

import io
import struct
from pathlib import Path

import pytest

from dlperf_study.core.errors import LogError
from dlperf_study.logs.event_files import _masked_checksum, event_rows
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.scalar_rows import DamagedRecordError, tag_meaning
from tests.logs.small_logs import errors, write_and_read

SAMPLE = Path(__file__).parent / "samples" / "today" / "tensorboard_constructed.out.tfevents.1795407924"
CONTENT = SAMPLE.read_bytes()
#: Where the second record of the sample begins, after the version of the format, and where the last.
SECOND, LAST = 88, 4025
NAME = "events.out.tfevents.1.host.2.0"


def test_the_scalars_are_those_that_were_written():
    rows = read_log(SAMPLE).series("throughput")
    assert rows.step.tolist() == list(range(40))
    assert rows.values["throughput"][:3].tolist() == [350.0, 350.84146, 350.9093]
    assert rows.values["loss"][[0, 39]].tolist() == [7.0, 6.025]
    assert rows.values["step_seconds"][0] == 0.36571428
    assert 0.5 < rows.time_seconds[-1] - rows.time_seconds[0] < 2


@pytest.mark.parametrize("missing", [1, 80, 95])
def test_a_file_that_is_cut_is_truncated_at_a_byte(tmp_path, missing):
    assert f"byte {LAST} is cut" in (error := errors(write_and_read(tmp_path, NAME, CONTENT[:-missing])))
    assert error.endswith("line 39")


@pytest.mark.parametrize("changed", [SECOND, SECOND + 9, SECOND + 40])
def test_a_changed_byte_is_damage_at_a_byte(tmp_path, changed):
    content = bytearray(CONTENT)
    content[changed] ^= 1
    with pytest.raises(LogError, match=f"byte {SECOND} is damaged"):
        write_and_read(tmp_path, NAME, bytes(content))


@pytest.mark.parametrize("size", [0, SECOND])
def test_a_file_without_scalars_is_refused(tmp_path, refused, size):
    with refused(LogError):
        write_and_read(tmp_path, NAME, CONTENT[:size])


def field(number, content):
    """Return a field of bytes of a message of Protocol Buffers."""
    return bytes([number << 3 | 2, len(content)]) + content


def record(event):
    """Return an event as it is stored."""
    length = struct.pack("<Q", len(event))
    return b"".join(part + struct.pack("<I", _masked_checksum(part)) for part in (length, event))


def scalar(tag, value):
    """Return a stored event of step 7 with one scalar, of which the value is a whole field."""
    summary = field(1, field(1, tag.encode()) + value)
    return record(b"\x09" + struct.pack("<d", 1.5) + b"\x10\x07" + field(5, summary))


SIMPLE = b"\x15" + struct.pack("<f", 0.1)


@pytest.mark.parametrize(
    "value",
    [
        SIMPLE,
        # Tensors of TensorFlow 2: of packed floats, of one float, and of raw bytes of a double.
        field(8, b"\x08\x01" + field(5, struct.pack("<f", 0.1))),
        field(8, b"\x08\x01\x2d" + struct.pack("<f", 0.1)),
        field(8, b"\x08\x02" + field(4, struct.pack("<d", 0.1))),
    ],
)
def test_a_scalar_is_a_number_or_a_tensor_of_one(value):
    rows = list(event_rows(NAME, io.BytesIO(scalar("step_time", value))))
    assert rows == [b'TensorBoard row: {"step": 7, "wall_time": 1.5, "values": {"step_time": 0.1}}\n']


@pytest.mark.parametrize("tags", [("tps", "loss"), ("a/step_time", "b/step_time")])
def test_tags_that_do_not_tell_the_throughput_are_refused_by_name(refused, tags):
    content = b"".join(scalar(tag, SIMPLE) for tag in tags)
    with refused(LogError):
        list(event_rows(NAME, io.BytesIO(content)))


def test_a_record_that_is_no_event_is_damage(refused):
    with refused(DamagedRecordError):
        list(event_rows(NAME, io.BytesIO(record(b"\x0f"))))


@pytest.mark.parametrize(
    ("tag", "known"),
    [
        ("train/samples_per_second", ("throughput", 1.0)),
        ("images/sec", ("throughput", 1.0)),
        ("perf/step_time_ms", ("step_seconds", 1e-3)),
        ("iteration-time", ("step_seconds", 1.0)),
        ("throughput", ("train_throughput", 1.0)),
        ("throughput/device/samples_per_sec", None),
        ("eval/samples_per_second", None),
        ("samples_per_second_per_gpu", None),
        ("perf/tokens_per_sec", ("token_throughput", 1.0)),
        ("tokens_per_second_per_gpu", ("device_token_throughput", 1.0)),
        ("gpu_0/tokens_per_sec", None),
        ("tps", None),
    ],
)
def test_a_tag_means_only_what_it_says(tag, known):
    assert tag_meaning(tag) == known
