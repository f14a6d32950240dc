"""What is missing in a log: between its lines, at its end, and compared with its plan."""

import pytest

from dlperf_study.core.errors import Severity
from tests.logs.small_logs import described, elapse, read_text

IMAGENET = "Epoch: [{}][{}/500]\tTime 0.25 (0.25)\n"
DLL = "DLL 2020-09-01 06:41:11.9 - ({}, {}) imgs_per_sec : 400.0\n"
DLLL = 'DLLL {{"type": "LOG", "step": {}, "data": {{"{}": 401.3}}}}\n'
HOROVOD = "".join(f"Iter #{step}: 401.3 img/sec per GPU\n" for step in range(20))
HOROVOD_END = "Img/sec per GPU: 401.3 +-0.1\nTotal img/sec on 2 GPU(s): 802.6 +-0.2\n"
OBJECTS = "".join(DLLL.format([0, step], "train.total_ips") for step in range(20))


def epochs(*steps):
    """Return the lines of epochs with these steps."""
    return "".join(IMAGENET.format(epoch, step) for epoch, of_epoch in enumerate(steps) for step in of_epoch)


def unusable(count, lines=100):
    return "".join(elapse(step, "nan18" if 10 <= step < 10 + count else "0.2500") for step in range(lines))


COMPLETE = {
    "all steps": "".join(map(elapse, range(120))),
    "two epochs": epochs(range(0, 500, 10), range(0, 500, 10)),
    "an epoch begins a line later": epochs(range(0, 500, 10), range(10, 500, 10)),
    "resumed in an epoch": epochs(range(300, 500, 10), range(0, 500, 10)),
    "prints less often later": "".join(map(elapse, (*range(50), *range(50, 5000, 100)))),
    "as planned": "max_iter: 120\n" + "".join(map(elapse, range(120))),
    "a number with an end needs no newline": (HOROVOD_END + HOROVOD).removesuffix("\n"),
    "an object needs no newline": OBJECTS.removesuffix("\n"),
    "an object of another kind": OBJECTS + DLLL.format([0], "val.top1").removesuffix("\n"),
    "said that it is done": HOROVOD + HOROVOD_END,
}


@pytest.mark.parametrize("text", COMPLETE.values(), ids=COMPLETE)
def test_a_complete_log_has_no_diagnostics(tmp_path, text):
    assert described(read_text(tmp_path, text)) == []


INCOMPLETE = {
    "as many unusable lines as chance loses": (unusable(5), Severity.WARNING),
    "more unusable lines": (unusable(6), Severity.ERROR),
    "as many of few lines as chance loses": (unusable(3, lines=20), Severity.WARNING),
    "more of few lines": (unusable(4, lines=20), Severity.ERROR),
    "four missing": ("".join(elapse(step) for step in range(120) if not 40 <= step < 44), Severity.WARNING),
    "thirty missing": ("".join(elapse(step) for step in range(120) if not 40 <= step < 70), Severity.ERROR),
    "an epoch begins later": (epochs(range(0, 500, 10), range(40, 500, 10)), Severity.WARNING),
    "an epoch begins much later": (epochs(range(0, 500, 10), range(100, 500, 10)), Severity.ERROR),
    "between epochs of one count": (
        "".join(DLL.format(step // 501, step) for step in range(10, 1000, 10) if not 500 < step < 540),
        Severity.WARNING,
    ),
    "beyond the plan": ("max_iter: 120\n" + "".join(map(elapse, (*range(118), 919))), Severity.ERROR),
    "before its plan": ("max_iter: 120\n" + "".join(map(elapse, range(61))), Severity.ERROR),
    "did not say that it is done": (HOROVOD, Severity.WARNING),
}


@pytest.mark.parametrize(("text", "severity"), INCOMPLETE.values(), ids=INCOMPLETE)
def test_what_is_missing_is_counted_and_too_much_refuses_the_log(tmp_path, snapshot, text, severity):
    log = read_text(tmp_path, text)
    assert (Severity.ERROR in {diagnostic.severity for diagnostic in log.diagnostics}) == (severity is Severity.ERROR)
    assert described(log) == snapshot


@pytest.mark.parametrize("removed", [5, 8, 14, 40, 60])
def test_a_last_line_that_is_cut_off_refuses_the_log(tmp_path, removed):
    log = read_text(tmp_path, "".join(map(elapse, range(50))) + elapse(50)[:-removed])
    assert log.records.step.tolist() == list(range(50))
    assert log.diagnostics[0].severity is Severity.ERROR
    assert "last line, 51," in log.diagnostics[0].message
