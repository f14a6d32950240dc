"""What is read from logs that are not as they should be."""

import gzip
import re
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dlperf_study.core.errors import LogError, Severity
from dlperf_study.logs import blocks, formats
from dlperf_study.logs.blocks import LogSource, log_sources
from dlperf_study.logs.log_reader import read_log
from tests.logs.plain_reader import plain_rows
from tests.logs.sample_numbers import TODAY
from tests.logs.small_logs import described, elapse, errors, ips, messages, read_text, write_and_read

SAMPLES = Path(__file__).parent / "samples"
TEXTS = {path: path.read_bytes() for path in sorted(SAMPLES.glob("*.log")) if "two_formats" not in path.name}
slow = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


STEPS = "".join(map(elapse, range(50)))
PLSC = "".join(ips(step, "ips: 9500.5 images/sec") for step in range(1, 9))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x01\n",
        "step twelve tps: many\nloss: small tflops: few mfu: 3\n",
        "".join(ips(step, "ips: 9,500.12 images/sec") for step in range(1, 9)),
    ],
    ids=["empty", "no word of a format", "words of three formats", "like one format"],
)
def test_a_log_without_a_line_of_training_is_refused_with_what_it_is_most_like(tmp_path, refused, text):
    with refused(LogError):
        read_text(tmp_path, text)


@pytest.mark.parametrize("before", [1000, 3000, 9000, 13000])
def test_a_second_program_in_the_middle_of_a_long_log_is_detected(tmp_path, before):
    lines = list(map(elapse, range(20_000)))
    second_log = "".join(ips(step, "ips: 9500.12345 images/sec") for step in range(400))
    assert 65 << 10 < len(second_log) < 70 << 10
    with pytest.raises(LogError, match=r"\(paddle_resnet50, plsc_2_4\)"):
        read_text(tmp_path, "".join([*lines[:before], second_log, *lines[before:]]))


def test_a_second_program_far_behind_the_first_is_detected(tmp_path):
    second_log = (SAMPLES / "plsc_2_4_constructed.log").read_text()
    for noise in ("", "noise\n" * 500_000):
        with pytest.raises(LogError, match=r"paddle_resnet50, plsc_2_4"):
            read_text(tmp_path, elapse(1) + noise + second_log)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (elapse(1) + elapse(2) + elapse(3)[:40] + "\n[Pass 0, train batch x] loss 1\n" + elapse(4), [1, 2, 4]),
        (elapse(1) + elapse(2)[:45] + elapse(3) + elapse(4), [1, 4]),
        (elapse(1) + elapse(2, "inf") + elapse(3, "0.0") + elapse(4, "1e999") + elapse(5, "nan"), [1, 2, 3, 4]),
        (STEPS + "".join(map(elapse, range(20))), [*range(50), *range(20)]),
        ("".join(elapse(step + late) for step in range(3) for late in (2, 0, 1)), [2, 0, 1, 3, 1, 2, 4, 2, 3]),
        ("µ" + STEPS.replace("batch 7]", "batch 7] µ"), [*range(50)]),
        ("".join(ips(step, "instant_ips: 1.0, avg_ips: 9500.0") for step in range(9)), [*range(9)]),
    ],
    ids=["cut and wrong", "two on one line", "impossible", "starts over", "mixed ranks", "not ASCII", "longer name"],
)
def test_what_is_wrong_with_lines_is_counted_and_shown(tmp_path, snapshot, text, steps):
    log = read_text(tmp_path, text)
    assert log.series("step_seconds").step.tolist() == steps
    assert described(log) == snapshot


@pytest.mark.parametrize(
    "seconds",
    ["0.2.5", "-", "e", "0.25e", "--1", "0,2512", "1,300.3", "95.0k", "0_1", "250 ms", "0.25 msec", "250ms", "4 min"],
)
def test_text_that_is_not_a_number_is_not_used(tmp_path, seconds):
    log = read_text(tmp_path, elapse(1) + elapse(2, seconds) + elapse(3))
    assert log.records.step.tolist() == [1, 3]
    [diagnostic] = log.diagnostics
    assert "line 2: " in diagnostic.message


@pytest.mark.parametrize("printed", ["ips: 9,500.12 images/sec", "ips: 95.0k images/sec", "ips: 9.5 K images/sec"])
def test_a_throughput_that_is_a_part_of_its_number_is_not_used(tmp_path, printed):
    log = read_text(tmp_path, PLSC + ips(9, printed))
    assert log.series("throughput").step.tolist() == list(range(1, 9))
    assert "line 9: " in messages(log)


@pytest.mark.parametrize("digits", [17, 30, 3000, 5000])
def test_a_step_that_no_program_reaches_is_not_used(tmp_path, digits):
    text = elapse(1) + elapse(2).replace("batch 2", f"batch 1{'0' * digits}") + elapse(3)
    assert read_text(tmp_path, text).records.step.tolist() == [1, 3]


def test_what_a_program_echoes_before_it_trains_is_no_line_that_is_lost(tmp_path):
    """modded-nanogpt prints its own code, others their configuration; a line that differs later is reported."""
    text = (TODAY / "modded_nanogpt_2026_constructed.log").read_text()
    code = text[: text.index("step:0/")]
    assert {"val_loss", "train_time"} <= set(re.findall(r"\w+", code))
    assert messages(read_text(tmp_path, code * 20 + text)) == ""
    assert "2 lines look like its format" in messages(read_text(tmp_path, text + code))


@pytest.mark.parametrize("noise", [b"\x00\xff\xfe" * 30, b"\0" * 4096], ids=["binary", "zero"])
def test_zero_bytes_in_the_middle_are_damage(tmp_path, snapshot, noise):
    log = read_text(tmp_path, STEPS[:900].encode() + noise + STEPS[900:].encode())
    assert errors(log) == snapshot
    assert errors(log).endswith(f" {STEPS.count(chr(10), 0, 900) + 1}")


def test_lines_with_bytes_that_are_not_text_are_counted(tmp_path, snapshot):
    lines = STEPS.encode().splitlines(keepends=True)
    for index in (7, 12, 30):
        lines[index] = lines[index].replace(b"loss", b"l\xffss, loss")
    log = read_text(tmp_path, b"".join(lines))
    assert (len(log.records), errors(log)) == (50, "")
    assert described(log) == snapshot


@pytest.mark.parametrize(
    ("printed", "expected"), [("True", True), ("1", True), ("on", True), ("no", False), ("None", False), ("O2", None)]
)
def test_programs_write_yes_and_no_in_many_ways(tmp_path, printed, expected):
    log = read_text(tmp_path, f"use_fp16 : {printed}\n" + "".join(map(elapse, range(0, 100, 10))))
    assert (log.facts["use_fp16"], log.switch("use_fp16"), log.switch("use_dali")) == (printed, expected, None)


def test_gzip_is_read_in_place_whatever_its_name_and_as_far_as_it_goes(tmp_path):
    noise = np.random.default_rng(1).integers(0, 10, (400, 4))
    seconds = (f"0.{''.join(map(str, digits))}" for digits in noise)
    compressed = gzip.compress("".join(map(elapse, range(400), seconds)).encode())
    assert read_text(tmp_path, compressed).diagnostics == ()
    log = write_and_read(tmp_path, "training.log.gz", compressed[: len(compressed) // 2])
    assert 0 < len(log.records) < 400
    assert log.diagnostics[0].severity is Severity.ERROR


def test_the_members_of_a_zip_archive_are_logs_of_their_own(tmp_path, refused):
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1n1g/a.log", elapse(1))
        archive.writestr("1n8g/b.log.gz", gzip.compress(elapse(2).encode()))
        archive.mkdir("empty")
    sources = log_sources(path)
    assert [str(source) for source in sources] == [f"{path}!1n1g/a.log", f"{path}!1n8g/b.log.gz"]
    assert [read_log(source).records.step.tolist() for source in sources] == [[1], [2]]
    for source in (LogSource(path, "no.log"), LogSource(tmp_path / "none.log")):
        with refused(LogError):
            read_log(source)


def test_a_hundred_megabytes_on_one_line_are_skipped(tmp_path, snapshot):
    path = tmp_path / "training.log"
    with path.open("wb") as file:
        file.write(elapse(1).encode())
        for _ in range(100):
            file.write(b"train batch " * 87_000)
        file.write(b"\n" + elapse(2).encode())
    start = time.monotonic()
    log = read_log(path)
    assert time.monotonic() - start < 20
    assert (log.records.line.tolist(), log.lines) == ([1, 3], 3)
    assert described(log) == snapshot


def test_lines_that_are_all_different_are_read_in_reasonable_time(tmp_path):
    letters = np.random.default_rng(3).integers(97, 123, (20_000, 8)).astype(np.uint8)
    text = "".join(elapse(step, f"1{bytes(row).decode()}") for step, row in enumerate(letters))
    start = time.monotonic()
    log = read_text(tmp_path, elapse(1) + text)
    assert time.monotonic() - start < 20
    assert (log.lines, len(log.records)) == (20_001, 1)


@pytest.mark.parametrize("size", [17, 64, 1000])
def test_where_blocks_end_changes_nothing(tmp_path, size, monkeypatch):
    text = "".join(f"noise {step}\r\n{elapse(step)}" for step in range(30))
    unsplit = read_text(tmp_path, text, "paddle_resnet50").records
    monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
    parts = read_text(tmp_path, text, "paddle_resnet50").records
    assert list(parts.line) == list(unsplit.line) == list(range(2, 61, 2))
    assert list(parts.values["loss"]) == list(unsplit.values["loss"])


@st.composite
def garbled(draw):
    """Return a format and lines of its sample, cut, mixed, doubled, and with other bytes and numbers in them."""
    path = draw(st.sampled_from([path for path in TEXTS if path.name[:2] not in ("dl", "ml", "no")]))
    lines = draw(st.lists(st.sampled_from(TEXTS[path].splitlines() or [b""]), min_size=1, max_size=30))
    unusual_numbers = st.sampled_from(
        [b"nan", b"-inf", b"1e400", b"12345678901234567890.5", b"-0.0", b"1.5e-7", b"007", b"1.2.3"]
    )
    changed = []
    for line in lines:
        change = draw(st.integers(0, 6))
        position = draw(st.integers(0, len(line)))
        inserted = draw(unusual_numbers) if change < 3 else draw(st.binary(max_size=6))
        after = line[position + (3 if change % 2 else 0) :]
        garbled_line = line if change > 4 else line[:position] + inserted + after
        changed.append(garbled_line.replace(b"\n", b"").replace(b"\r", b"").replace(b"\x1b", b""))
    return next(name for name in reversed(formats.names()) if path.name.startswith(name)), b"\n".join([*changed, b""])


@slow
@given(garbled())
@example(("paddle_resnet50", (elapse(1) + elapse(2, "1.5e-7") + elapse(3, "1.5e+99")).encode()))
@example(("paddle_resnet50", (elapse(1, "0.30000000000000004") + elapse(2, "9007199254740993")).encode()))
def test_the_values_are_those_of_a_plain_loop(tmp_path, case):
    """All that makes it fast changes no number; it only leaves out more: lines that are cut short."""
    name, text = case
    format_ = formats.load(name)
    expected = plain_rows(format_, text)
    try:
        rows = read_text(tmp_path, text, name).records
    except LogError:
        return
    for index in range(len(rows)):
        values = {metric: column[index] for metric, column in rows.values.items() if not np.isnan(column[index])}
        candidates = []
        for row in expected:
            if row.line == rows.line[index]:
                printed = {metric: value for metric, value in row.values.items() if not np.isnan(value)}
                printed.pop("time_seconds", None)
                candidates.append(printed)
        assert values in candidates


@slow
@given(
    st.lists(st.sampled_from([line for text in TEXTS.values() for line in text.splitlines()]), max_size=40), st.data()
)
def test_nothing_that_is_read_crashes(tmp_path, lines, data):
    text = bytearray(b"\n".join(lines))
    for _ in range(data.draw(st.integers(0, 8))):
        position = data.draw(st.integers(0, len(text)))
        text[position:position] = data.draw(st.binary(max_size=12))
    name = data.draw(st.sampled_from(["", *formats.names()]))
    try:
        log = read_text(tmp_path, bytes(text), name)
    except LogError:
        return
    assert (np.diff(log.records.line) >= 0).all()
    assert log.lines <= text.count(b"\n") + text.count(b"\r") + 1
