"""What is missing in a log: between its lines, at its end, and compared with its plan."""

from pathlib import Path

import pytest

from dlperf_study.diagnostic import Severity
from tests.logs.small_logs import elapse, errors, messages, read_text


def test_more_unusable_lines_than_chance_loses_refuse_the_log(tmp_path: Path) -> None:
    lines = [elapse(step) for step in range(100)]
    lines[10:14] = [elapse(step, "nan18") for step in range(10, 14)]
    assert "could not be used" not in errors(read_text(tmp_path, "".join(lines)))
    lines[20:24] = [elapse(step, "nan18") for step in range(20, 24)]
    assert "8 of its 100 lines could not be used" in errors(read_text(tmp_path, "".join(lines)))


@pytest.mark.parametrize(("missing", "refused"), [(0, False), (4, False), (30, True)])
def test_steps_that_are_missing_between_others_are_diagnosed(tmp_path: Path, missing: int, refused: bool) -> None:
    log = read_text(tmp_path, "".join(elapse(step) for step in range(120) if not 40 <= step < 40 + missing))
    message = f"missing lines: {missing} of 120 steps are missing, the first after step 39"
    assert (message in messages(log), message in errors(log)) == (missing > 0, refused)


IMAGENET = "Epoch: [{}][{}/500]\tTime 0.25 (0.25)\n"


@pytest.mark.parametrize(("late", "missing"), [(0, 0), (10, 0), (40, 4), (100, 10)])
def test_an_epoch_that_begins_later_than_others_has_missing_lines(tmp_path: Path, late: int, missing: int) -> None:
    first, second = range(0, 500, 10), range(late, 500, 10)
    text = "".join(IMAGENET.format(epoch, step) for epoch, steps in enumerate((first, second)) for step in steps)
    message = f"missing lines: {missing} of 100 steps are missing, the first after step 490"
    assert (message in messages(read_text(tmp_path, text))) == (missing > 0)


def test_a_run_that_was_resumed_in_the_middle_of_an_epoch_has_no_missing_lines(tmp_path: Path) -> None:
    text = "".join(IMAGENET.format(epoch, step) for epoch in (4, 5) for step in range(300 * (epoch == 4), 500, 10))
    assert read_text(tmp_path, text).diagnostics == ()


def test_steps_that_count_through_the_epochs_may_have_missing_lines_between_two(tmp_path: Path) -> None:
    line = "DLL 2020-09-01 06:41:11.9 - ({}, {}) imgs_per_sec : 400.0\n"
    steps = [step for step in range(10, 1000, 10) if not 500 < step < 540]
    text = "".join(line.format(step // 501, step) for step in steps)
    assert "missing lines: 3 of 99 steps are missing, the first after step 500" in messages(read_text(tmp_path, text))


def test_a_program_that_prints_less_often_later_has_no_missing_lines(tmp_path: Path) -> None:
    assert "missing" not in messages(read_text(tmp_path, "".join(map(elapse, (*range(50), *range(50, 5000, 100))))))


@pytest.mark.parametrize("removed", [5, 8, 14, 40, 60])
def test_a_last_line_that_is_cut_off_refuses_the_log(tmp_path: Path, removed: int) -> None:
    log = read_text(tmp_path, "".join(map(elapse, range(50))) + elapse(50)[:-removed])
    assert list(log.records.step) == list(range(50))
    assert "its last line, 51, has no newline and may have lost digits or more" in errors(log)


def test_a_step_beyond_what_the_log_planned_contradicts_it(tmp_path: Path) -> None:
    text = "max_iter: 120\n" + "".join(map(elapse, (*range(118), 919)))
    assert "it has step 919, but planned 120 steps" in errors(read_text(tmp_path, text))


@pytest.mark.parametrize(("last", "truncated"), [(119, False), (60, True)])
def test_a_log_with_fewer_steps_than_planned_is_truncated(tmp_path: Path, last: int, truncated: bool) -> None:
    text = "max_iter: 120\n" + "".join(elapse(step) for step in range(0, last + 1))
    diagnostics = read_text(tmp_path, text).diagnostics
    assert [diagnostic.severity for diagnostic in diagnostics] == [Severity.ERROR] * truncated


@pytest.mark.parametrize(("end", "steps"), [(" sec", [1, 2]), ("", [1])])
def test_a_number_at_the_very_end_of_a_log_may_have_lost_digits(tmp_path: Path, end: str, steps: list[int]) -> None:
    log = read_text(tmp_path, elapse(1) + elapse(2).removesuffix(" sec\n") + end)
    assert list(log.records.step) == steps
    assert ("could not be used" in messages(log)) == (len(steps) == 1)


@pytest.mark.parametrize(
    "line",
    [
        "Total img/sec on 1 GPU(s): 401.3 +-0.1\nIter #{}: 401.3 img/sec per GPU\n",
        'DLLL {{"type": "LOG", "step": [{}], "data": {{"imgs_per_sec": 401.3}}}}\n',
    ],
)
def test_the_last_line_needs_no_newline_if_its_last_number_has_an_end(tmp_path: Path, line: str) -> None:
    log = read_text(tmp_path, "".join(map(line.format, range(20))).removesuffix("\n"))
    assert (len(log.series("throughput")), log.diagnostics) == (20, ())


def test_an_object_on_the_last_line_is_complete_whatever_it_contains(tmp_path: Path) -> None:
    line = 'DLLL {{"type": "LOG", "step": {}, "data": {{"{}": 401.3}}}}\n'
    steps = "".join(line.format([0, step], "train.total_ips") for step in range(20))
    assert read_text(tmp_path, steps + line.format([0], "val.top1").removesuffix("\n")).diagnostics == ()


def test_a_program_that_did_not_say_that_it_is_done_has_a_warning(tmp_path: Path) -> None:
    steps = "".join(f"Iter #{step}: 401.3 img/sec per GPU\n" for step in range(20))
    end = "Img/sec per GPU: 401.3 +-0.1\nTotal img/sec on 2 GPU(s): 802.6 +-0.2\n"
    assert messages(read_text(tmp_path, steps + end)) == ""
    cut = read_text(tmp_path, steps)
    assert "it has no overall throughput, which Horovod synthetic benchmark prints when it is done" in messages(cut)
    assert errors(cut) == ""
