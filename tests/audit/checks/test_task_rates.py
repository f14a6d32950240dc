import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, number, rate, runs

#: One task of ElasticDL's MobileNetV2 on two workers, as its authors profiled it.
TASK = number("task_process_seconds", "143.789", 2, samples_per_task=3200)


#: A global batch that is not that of four devices.
BATCH = {"batch_per_device": 32, "global_batch": 256}


@pytest.mark.parametrize("printed", ["44.5", "44.51", "44.50"])
def test_samples_over_seconds_is_the_rate(printed):
    assert examined("task_rates", [TASK, rate(printed, 2)]) == [None]


def test_another_rate_contradicts_the_time():
    [diagnostic] = found("task_rates", [TASK, rate("54.7", 2)])
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation == "6400 samples in 143.789 s are 44.51 samples/s, printed 54.7, 22.9% more"


def test_a_rate_that_errors_may_explain_is_diagnosed():
    [diagnostic] = found("task_rates", [TASK, rate("44.7", 2)])
    assert diagnostic.severity is Severity.WARNING
    assert "printed 44.7, 0.4% more; runs up to 3% apart may" in diagnostic.computation


def test_the_batch_that_would_fit_rate_and_step_is_named():
    [diagnostic] = found("task_rates", [number("step_seconds", "0.346", 4, **BATCH), rate("370.0", 4, **BATCH)])
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation.endswith("printed 370.0, 50.0% less. 32 × 4 = 128 samples would fit")


def test_a_batch_that_would_not_fit_either_is_not_named():
    [diagnostic] = found("task_rates", [number("step_seconds", "0.346", 4, **BATCH), rate("500.0", 4, **BATCH)])
    assert "would fit" not in diagnostic.computation


def test_a_time_cut_off_explains_a_rate():
    assert found("task_rates", [number("task_process_seconds", "13.7", 2, samples_per_task=1024), rate("149", 2)]) == []


def test_steps_are_tasks_of_one_global_batch():
    step = number("step_seconds", "0.40616", global_batch=2)
    assert examined("task_rates", [step, rate("4.92")]) == [None]
    assert len(found("task_rates", [step, rate("5.92")])) == 1


def test_a_time_without_samples_is_not_examined():
    assert examined("task_rates", [number("task_process_seconds", "143.789", 2), rate("44.7", 2)]) == []


def computed(step, throughput):
    plain = {"resolution": None, "global_batch": 8}
    return [number("step_seconds", "1") | plain | {"value": step}, rate("1") | plain | {"value": throughput}]


def test_a_median_of_rates_need_not_be_that_of_times_turned_over():
    assert examined("task_rates", computed(0.105, 8 / 0.1 / 2 + 8 / 0.11 / 2)) == [None]
    assert len(found("task_rates", computed(0.1, 90.0))) == 1


def test_where_runs_are_known_they_say_how_near_is_near():
    lists = runs(["79.9", "80", "80.1"])
    assert found("task_rates", [*computed(0.1, 80.0), *lists]) == []
    assert len(found("task_rates", [*computed(0.099, 80.0), *lists])) == 1


@pytest.mark.parametrize(
    ("printed", "severity"), [("80.5", Severity.WARNING), ("90.0", Severity.ERROR), ("70.0", Severity.ERROR)]
)
def test_the_spread_of_the_runs_explains_a_rate_that_is_within_it(printed, severity):
    """8 samples in 0.1000 s are 80 samples/s; the runs are 1 sample/s apart."""
    listed = runs([f"{float(printed) + change:.1f}" for change in (-1, 0, 1)])
    rows = [number("step_seconds", "0.1000", global_batch=8), rate(printed, global_batch=8)]
    [diagnostic] = found("task_rates", [*rows, *listed])
    assert diagnostic.severity is severity
    assert ("the spread of its runs may explain it" in diagnostic.computation) == (severity is Severity.WARNING)


@pytest.mark.parametrize(
    ("seconds", "printed", "devices"),
    [
        (number("task_process_seconds", "143.789", 2, samples_per_task=3200, batch_per_device=1600), "22.26", 2),
        (number("step_seconds", "0.346", 4, global_batch=256), "11.56", 4),
        (number("step_seconds", "0.346", 4, global_batch=256), "0", 4),
        (number("step_seconds", "0.346", None, global_batch=256, batch_per_device=32), "92.5", None),
    ],
)
def test_no_batch_is_named_for_a_task_or_without_the_batch_and_the_number_of_devices(seconds, printed, devices):
    facts = {name: seconds[name] for name in ("batch_per_device", "global_batch") if name in seconds}
    [diagnostic] = found("task_rates", [seconds, rate(printed, devices, **facts)])
    assert "would fit" not in diagnostic.computation


def test_a_batch_of_one_would_fit_too():
    batch = {"batch_per_device": 1, "global_batch": 2}
    [diagnostic] = found("task_rates", [number("step_seconds", "0.5000", **batch), rate("2.00", **batch)])
    assert diagnostic.computation.endswith("1 × 1 = 1 samples would fit")


def test_a_step_of_one_sample_is_examined_and_one_of_unknown_samples_or_devices_is_not():
    assert examined("task_rates", [number("step_seconds", "0.5", global_batch=1), rate("2.0")]) == [None]
    assert examined("task_rates", [number("step_seconds", "0.5"), rate("2.0")]) == []
    task = number("task_process_seconds", "143.789", None, samples_per_task=3200)
    assert examined("task_rates", [task, rate("22.26", None)]) == []
