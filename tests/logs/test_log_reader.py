"""What is read from logs that are not as they should be."""

import gzip
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dlperf_study.diagnostic import Severity
from dlperf_study.errors import LogError
from dlperf_study.logs import blocks, formats
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.log_source import LogSource, log_sources
from tests.logs.plain_reader import plain_rows
from tests.logs.small_logs import elapse, errors, ips, messages, read_text

SAMPLES = Path(__file__).parent / "samples"
TEXTS = {path: path.read_bytes() for path in sorted(SAMPLES.glob("*.log")) if "two_formats" not in path.name}
LINES = [line for text in TEXTS.values() for line in text.splitlines()]
slow = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_a_log_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"none\.log: can't be read"):
        read_log(tmp_path / "none.log")


def test_an_empty_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no line of training"):
        read_text(tmp_path, "")


def test_a_log_of_no_known_format_names_those_with_its_words_and_where_all_are_listed(tmp_path: Path) -> None:
    all_formats = rf"docs/ingest\.md lists all {len(formats.names())} formats, and shows how to declare your own$"
    with pytest.raises(
        LogError, match=rf"some words are those of (\w+, )*torchtitan(, \w+)*; {all_formats}"
    ) as refusal:
        read_text(tmp_path, "step twelve tps: many\nloss: small tflops: few mfu: 3\n")
    assert str(refusal.value).count(", ") <= 2
    with pytest.raises(LogError, match=rf"no word is that of a format; {all_formats}"):
        read_text(tmp_path, "\x01\n")


def test_two_programs_in_one_log_are_refused_with_their_names(tmp_path: Path) -> None:
    second_log = (SAMPLES / "plsc_2_4_constructed.log").read_text()
    for text in (elapse(1) + second_log, elapse(1) + "noise\n" * 500_000 + second_log):
        with pytest.raises(LogError, match="paddle_resnet50, plsc_2_4"):
            read_text(tmp_path, text)


def test_lines_that_look_right_and_are_not_are_counted_and_shown(tmp_path: Path) -> None:
    cut = elapse(3)[:40]
    log = read_text(tmp_path, elapse(1) + elapse(2) + f"{cut}\n" + "[Pass 0, train batch x] loss 1\n" + elapse(4))
    assert list(log.records.step) == [1, 2, 4]
    assert "2 lines look like its format but could not be used, as line 3: " in messages(log)


def test_two_records_on_one_line_are_not_mixed(tmp_path: Path) -> None:
    glued = elapse(2)[:45] + elapse(3)
    log = read_text(tmp_path, elapse(1) + glued + elapse(4))
    assert list(log.records.step) == [1, 4]
    assert "1 line looks like its format" in messages(log)


@pytest.mark.parametrize("before", [1000, 3000, 9000, 13000])
def test_a_second_program_in_the_middle_of_a_long_log_is_detected(tmp_path: Path, before: int) -> None:
    lines = list(map(elapse, range(20_000)))
    second_log = "".join(ips(step, "ips: 9500.12345 images/sec") for step in range(400))
    assert 65 << 10 < len(second_log) < 70 << 10
    with pytest.raises(LogError, match=r"several formats \(paddle_resnet50, plsc_2_4\)"):
        read_text(tmp_path, "".join([*lines[:before], second_log, *lines[before:]]))


@pytest.mark.parametrize(
    "seconds",
    ["0.2.5", "-", "e", "0.25e", "--1", "0,2512", "1,300.3", "95.0k", "0_1", "250 ms", "0.25 msec", "250ms", "4 min"],
)
def test_text_that_is_not_a_number_is_not_used(tmp_path: Path, seconds: str) -> None:
    log = read_text(tmp_path, elapse(1) + elapse(2, seconds) + elapse(3))
    assert list(log.records.step) == [1, 3]
    assert "1 line looks like its format" in messages(log)


@pytest.mark.parametrize("printed", ["ips: 9,500.12 images/sec", "ips: 95.0k images/sec", "ips: 9.5 K images/sec"])
def test_a_rate_that_is_a_part_of_its_number_is_not_used(tmp_path: Path, printed: str) -> None:
    text = "".join(ips(step, "ips: 9500.5 images/sec") for step in range(1, 9)) + ips(9, printed)
    log = read_text(tmp_path, text)
    assert list(log.series("throughput").step) == list(range(1, 9))
    assert "1 line looks like its format" in messages(log)


def test_the_name_of_a_number_is_no_part_of_a_longer_one(tmp_path: Path) -> None:
    log = read_text(tmp_path, "".join(ips(step, "instant_ips: 1.0, avg_ips: 9500.0") for step in range(1, 9)))
    assert log.rate_metric == "step_seconds"


def test_a_log_without_usable_lines_is_refused_with_the_format_it_looks_like(tmp_path: Path) -> None:
    text = "".join(ips(step, "ips: 9,500.12 images/sec") for step in range(1, 9))
    with pytest.raises(LogError, match=r"line 1 looks like plsc_2_4, but can't be used: .*9,500\.12"):
        read_text(tmp_path, text)


@pytest.mark.parametrize("noise", [b"\x00\xff\xfe" * 30, b"\0" * 4096])
def test_zero_bytes_in_the_middle_are_damage(tmp_path: Path, noise: bytes) -> None:
    text = "".join(map(elapse, range(50))).encode()
    log = read_text(tmp_path, text[:900] + noise + text[900:])
    assert f"zero bytes, which no program prints, at line {text.count(bytes([10]), 0, 900) + 1}" in errors(log)


def test_lines_with_bytes_that_are_not_text_are_counted(tmp_path: Path) -> None:
    lines = [elapse(step).encode() for step in range(50)]
    assert "not text" not in messages(read_text(tmp_path, "µ" + elapse(0)))
    for index in (7, 12, 30):
        lines[index] = lines[index].replace(b"loss", b"l\xffss, loss")
    log = read_text(tmp_path, b"".join(lines))
    assert "3 lines with bytes that are not text (UTF-8), the first: 8" in messages(log)
    assert len(log.records) == 50
    assert errors(log) == ""


def test_numbers_that_are_infinite_or_not_above_zero_are_diagnosed(tmp_path: Path) -> None:
    log = read_text(tmp_path, elapse(1) + elapse(2, "inf") + elapse(3, "0.0") + elapse(4, "1e999") + elapse(5, "nan"))
    assert "step_seconds is infinite in 2 lines, the first: 2" in messages(log)
    assert "step_seconds is not above 0 in 1 line, the first: 3" in messages(log)
    assert "1 line prints a number as nan: line 5" in messages(log)
    assert list(log.series("step_seconds").step) == [1, 2, 3, 4]


@pytest.mark.parametrize("digits", [17, 30, 3000, 5000])
def test_a_step_that_no_program_reaches_is_not_used(tmp_path: Path, digits: int) -> None:
    text = elapse(1) + elapse(2).replace("batch 2", f"batch 1{'0' * digits}") + elapse(3)
    assert list(read_text(tmp_path, text).records.step) == [1, 3]


def test_steps_that_start_over_are_diagnosed(tmp_path: Path) -> None:
    text = "".join(elapse(step) for step in (*range(50), *range(20)))
    assert "steps start over 1 time, at line 51" in messages(read_text(tmp_path, text))


def test_ranks_that_mix_in_one_stream_do_not_start_over(tmp_path: Path) -> None:
    text = "".join(elapse(step + late) for step in range(50) for late in (2, 0, 1))
    assert "start over" not in messages(read_text(tmp_path, text))


def test_gzip_is_read_in_place_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "training.log"
    path.write_bytes(gzip.compress((elapse(1) + elapse(2)).encode()))
    assert list(read_log(path).records.step) == [1, 2]


def test_damaged_gzip_is_read_as_far_as_it_goes_and_is_truncated(tmp_path: Path) -> None:
    path = tmp_path / "training.log.gz"
    noise = np.random.default_rng(1).integers(0, 10, (400, 4))
    compressed = gzip.compress(
        "".join(elapse(k, f"0.{''.join(map(str, digits))}") for k, digits in enumerate(noise)).encode()
    )
    path.write_bytes(compressed[: len(compressed) // 2])
    log = read_log(path)
    assert 0 < len(log.records) < 400
    assert log.diagnostics[0].severity is Severity.ERROR
    assert "truncated" in log.diagnostics[0].message


def test_the_members_of_a_zip_archive_are_logs_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1n1g/a.log", elapse(1))
        archive.writestr("1n8g/b.log.gz", gzip.compress(elapse(2).encode()))
        archive.mkdir("empty")
    sources = log_sources(path)
    assert [str(source) for source in sources] == [f"{path}!1n1g/a.log", f"{path}!1n8g/b.log.gz"]
    assert [list(read_log(source).records.step) for source in sources] == [[1], [2]]
    with pytest.raises(LogError, match=r"no\.log: can't be read"):
        read_log(LogSource(path, "no.log"))


def test_a_hundred_megabytes_on_one_line_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "training.log"
    with path.open("wb") as file:
        file.write(elapse(1).encode())
        for _ in range(100):
            file.write(b"train batch " * 87_000)
        file.write(b"\n" + elapse(2).encode())
    start = time.monotonic()
    log = read_log(path)
    assert time.monotonic() - start < 20
    assert (list(log.records.line), log.lines) == ([1, 3], 3)
    assert "1 line was skipped because it is too long for a log: line 2" in messages(log)


def test_lines_that_are_all_different_are_read_in_reasonable_time(tmp_path: Path) -> None:
    letters = np.random.default_rng(3).integers(97, 123, (20_000, 8)).astype(np.uint8)
    text = "".join(elapse(step, f"1{bytes(row).decode()}") for step, row in enumerate(letters))
    start = time.monotonic()
    log = read_text(tmp_path, elapse(1) + text)
    assert time.monotonic() - start < 20
    assert log.lines == 20_001
    assert "lines look like its format but could not be used" in messages(log)


@pytest.mark.parametrize("size", [17, 64, 1000])
def test_where_blocks_end_changes_nothing(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"noise {step}\r\n{elapse(step)}" for step in range(30))
    unsplit = read_text(tmp_path, text, "paddle_resnet50").records
    monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
    parts = read_text(tmp_path, text, "paddle_resnet50").records
    assert list(parts.line) == list(unsplit.line) == list(range(2, 61, 2))
    assert list(parts.values["loss"]) == list(unsplit.values["loss"])


def test_most_lines_being_noise_changes_nothing(tmp_path: Path) -> None:
    text = "".join(f"{'noise ' * (step % 7)}\n" * 9 + elapse(step) for step in range(30))
    assert list(read_text(tmp_path, text).records.line) == list(range(10, 301, 10))


@st.composite
def garbled(draw: st.DrawFn) -> tuple[str, bytes]:
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
def test_the_values_are_those_of_a_plain_loop(tmp_path: Path, case: tuple[str, bytes]) -> None:
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
        candidates = [row for row in expected if row.line == rows.line[index]]
        assert any(is_same(values, row.values) for row in candidates), (values, candidates)


def is_same(values: dict[str, float], expected: dict[str, float]) -> bool:
    return values == {name: value for name, value in expected.items() if not np.isnan(value) and name != "time_seconds"}


@slow
@given(
    st.lists(st.sampled_from([line for text in TEXTS.values() for line in text.splitlines()]), max_size=40), st.data()
)
def test_nothing_that_is_read_crashes(tmp_path: Path, lines: list[bytes], data: st.DataObject) -> None:
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
