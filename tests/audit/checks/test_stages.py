import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, number

#: ElasticDL's task of MobileNetV2 on two GPUs.
STAGES = {
    "task_process_seconds": "8.34",
    "report_gradient_seconds": "7.25026",
    "tensor_numpy_seconds": "5.79",
    "apply_gradients_seconds": "0.6",
    "forward_backward_seconds": "0.49",
}


def task(world_size=2, **changes):
    return [number(name, text, world_size) for name, text in (STAGES | changes).items()]


def test_stages_that_add_up():
    """Five parts of something, and one sum."""
    assert examined("stages", task()) == [None] * 6


def test_a_part_longer_than_its_whole():
    diagnostics = found("stages", task(apply_gradients_seconds="8.6"))
    assert diagnostics[0].severity is Severity.ERROR
    assert diagnostics[0].computation == (
        "apply_gradients_seconds is 8.6 s, more than task_process_seconds, of which it is a part, 8.34 s"
    )


def test_parts_that_are_more_than_their_whole():
    [diagnostic] = found("stages", task(forward_backward_seconds="0.89"))
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation == "7.25026 + 0.6 + 0.89 = 8.74 s, printed 8.34"


def test_parts_that_leave_something_out_are_worth_a_note():
    [diagnostic] = found("stages", task(task_process_seconds="9.34"))
    assert diagnostic.severity is Severity.NOTE


def test_copying_that_takes_longer_than_the_exchange():
    [diagnostic] = found("stages", task(tensor_numpy_seconds="7.79"))
    assert diagnostic.severity is Severity.WARNING
    assert diagnostic.computation == "copying gradients takes 7.79 s, the exchange that begins with it 7.25026 s"


def test_the_same_work_takes_as_long_on_any_number_of_devices():
    assert found("stages", [number("apply_gradients_seconds", text, n) for n, text in ((1, "0.6"), (2, "0.71"))]) == []
    [diagnostic] = found(
        "stages", [number("apply_gradients_seconds", text, n) for n, text in ((1, "5.59"), (2, "0.6"))]
    )
    assert diagnostic.severity is Severity.WARNING
    assert "5.59 s on 1, 0.6 s on 2 devices" in diagnostic.computation


@pytest.mark.parametrize("printed", [("0.5", "0.75"), ("5", "6")])
def test_the_same_work_may_take_half_as_long_again(printed):
    assert found("stages", [number("apply_gradients_seconds", text, n) for n, text in enumerate(printed, 1)]) == []


def test_the_devices_of_a_series_are_named_in_their_order():
    rows = [number("apply_gradients_seconds", text, n) for n, text in ((2, "0.6"), (1, "5.59"))]
    assert "5.59 s on 1, 0.6 s on 2 devices" in found("stages", rows)[0].computation


def test_stages_that_were_cut_off_add_up_to_more():
    assert found("stages", task(task_process_seconds="8.44")) == []


def test_the_same_work_does_not_take_much_longer_and_a_single_time_hides_none():
    alone = number("apply_gradients_seconds", "9", table="alone", series="alone")
    rows = [number("apply_gradients_seconds", text, n) for n, text in ((1, "0.5"), (2, "0.8"))]
    assert len(found("stages", [alone, *rows])) == 1


def test_a_time_without_devices_is_named_first():
    rows = [number("apply_gradients_seconds", text, n) for n, text in ((1, "5.59"), (None, "0.6"))]
    assert "0.6 s on None, 5.59 s on 1 devices" in found("stages", rows)[0].computation
