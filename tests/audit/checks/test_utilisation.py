import pytest

from dlperf_study.diagnostic import Severity
from tests.audit.tables import examined, found, number, rate

V100 = {"device_name": "Tesla V100", "precision": "amp_fp16", "model": "gpt"}


def flops(printed, world_size=1, **facts):
    """Return TFLOP/s as they are printed, in FLOP/s."""
    tera = number("device_flops", printed, world_size, **V100, **facts)
    return tera | {"value": tera["value"] * 1e12, "resolution": tera["resolution"] * 1e12}


@pytest.mark.parametrize("printed", ["40%", "39.5%", "39%"])
def test_a_share_of_the_peak(printed):
    assert examined("utilisation", [flops("49.43"), number("mfu", printed, **V100)]) == [None]


def test_another_share():
    [diagnostic] = found("utilisation", [flops("49.43"), number("mfu", "45%", **V100)])
    assert diagnostic.severity is Severity.ERROR
    assert diagnostic.computation.startswith("49.43 of 125 TFLOP/s")
    assert diagnostic.computation.endswith("are 0.3954, printed 45%")


def test_a_share_from_a_rate():
    known = {"flops_per_sample": 2e9, "device_peak_flops": 1e12}
    rows = [rate("100", 2, **known), number("mfu", "0.10", 2, **known)]
    assert examined("utilisation", rows) == [None]
    [diagnostic] = found("utilisation", [rows[0], number("mfu", "0.20", 2, **known)])
    assert diagnostic.computation == "100 samples/s × 2e+09 FLOP / 2 / 1e+12 = 0.1, printed 0.20"


def row(tera, seconds, world_size):
    return [
        flops(tera, world_size, global_batch=2 * world_size),
        number("step_seconds", seconds, world_size, global_batch=2 * world_size),
    ]


def test_a_sample_takes_as_many_flops_in_every_row():
    rows = [*row("49.43", "0.40616", 1), *row("48.03", "0.41795", 8), *row("41", "0.48967", 16)]
    assert examined("utilisation", rows) == [None]


def test_a_row_in_which_it_takes_others():
    rows = [*row("49.43", "0.40616", 1), *row("48.03", "0.41795", 8), *row("51", "0.48967", 16)]
    [diagnostic] = found("utilisation", rows)
    assert diagnostic.severity is Severity.ERROR
    assert "the median is 1.004e+13, but 51 on 16 devices (1.249e+13 FLOP)" in diagnostic.computation


def test_one_row_is_compared_with_none_and_two_are_with_each_other():
    alone, others = row("49.43", "0.40616", 1), row("48.03", "0.41795", 8)
    assert examined("utilisation", alone) == []
    assert examined("utilisation", [*alone, *others]) == [None]


@pytest.mark.parametrize(("tera", "seconds"), [("48.03", "0"), ("0", "0.41795")])
def test_a_row_of_nothing_is_left_out(tera, seconds):
    rows = [*row("49.43", "0.40616", 1), *row("41", "0.48967", 16)]
    assert examined("utilisation", [*rows, *row(tera, seconds, 8)]) == [None]


@pytest.mark.parametrize(
    "incomplete",
    [
        [flops("48.03", 8, global_batch=16)],
        [flops("48.03", 8), number("step_seconds", "0.41795", 8)],
        [row | {"world_size": None} for row in row("48.03", "0.41795", 8)],
    ],
)
def test_a_row_that_prints_too_little_is_left_out_and_hides_no_other(incomplete):
    rows = [*row("49.43", "0.40616", 1), *row("51", "0.48967", 16)]
    assert examined("utilisation", incomplete) == []
    assert len(found("utilisation", [*incomplete, *rows])) == 1


KNOWN = {"flops_per_sample": 2e9, "device_peak_flops": 1e12}


@pytest.mark.parametrize(
    ("of_rate", "of_share", "devices"),
    [
        ({"flops_per_sample": 2e9}, {"flops_per_sample": 2e9}, 2),
        ({}, KNOWN, 2),
        (KNOWN, {"device_peak_flops": 1e12}, 2),
        (KNOWN, KNOWN, None),
    ],
)
def test_a_share_from_a_rate_takes_its_flops_peak_and_devices(of_rate, of_share, devices):
    rows = [rate("100", devices, **of_rate), number("mfu", "0.20", devices, **of_share)]
    assert examined("utilisation", rows) == []


def share_and_rate(share, printed_rate, world_size):
    return [number("mfu", share, world_size, **V100), rate(printed_rate, world_size, **V100)]


def test_a_share_without_a_peak_grows_as_the_rate_of_a_device():
    rows = [*share_and_rate("0.310", "2600", 1), *share_and_rate("0.299", "20100", 8)]
    assert examined("utilisation", rows) == [None]
    [diagnostic] = found("utilisation", [*rows, *share_and_rate("0.620", "40200", 16)])
    assert diagnostic.severity is Severity.ERROR
    assert "but 0.620 on 16 devices (0.0002468)" in diagnostic.computation
    assert examined("utilisation", share_and_rate("0.31", "2600", 1)) == []
