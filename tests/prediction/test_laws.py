"""Laws as labels: what a curve that follows one has, and what points don't identify."""

import numpy as np
import pytest

from dlperf_study.prediction.curves import Unit
from dlperf_study.prediction.laws import labels_of
from tests.prediction.curve_factory import curve


def labelled(rates):
    labels = labels_of(curve(rates, Unit.DEVICE, devices_per_unit=1))
    return {(label.law, label.parameter): label for label in labels}


@pytest.mark.parametrize(
    ("key", "value", "speedup"),
    [
        (("Amdahl", "serial share"), 0.05, lambda n: n / (1 + 0.05 * (n - 1))),
        (("Gustafson", "serial share"), 0.1, lambda n: n - 0.1 * (n - 1)),
        (("power", "exponent"), 0.9, lambda n: n**0.9),
        (("USL", "coherence"), 0.002, lambda n: n / (1 + 0.03 * (n - 1) + 0.002 * n * (n - 1))),
    ],
)
def test_a_curve_that_follows_a_law_has_its_parameter(key, value, speedup):
    label = labelled({count: 100 * speedup(count) for count in (1, 2, 4, 8, 16, 32)})[key]
    assert label.value == pytest.approx(value, rel=1e-3)
    assert label.interval.low <= value * 1.001
    assert label.interval.high >= value * 0.999


def test_an_interval_holds_the_truth_of_noisy_curves():
    generator, held = np.random.default_rng(1), []
    for _ in range(40):
        noise = np.exp(generator.normal(0, 0.01, 6))
        devices = np.array([1, 2, 4, 8, 16, 32])
        rates = 100 * devices / (1 + 0.02 * (devices - 1)) * noise
        interval = labelled(dict(zip(devices.tolist(), rates.tolist(), strict=True)))["Amdahl", "serial share"].interval
        held.append(interval.low <= 0.02 <= interval.high)
    assert np.mean(held) >= 0.85


def test_what_the_points_do_not_identify_has_a_reason_and_no_value():
    two = labelled({1: 100.0, 2: 190.0})
    assert {label.value for label in two.values()} == {None}
    assert all("needs" in label.reason for label in two.values())
    jagged = labelled({1: 100.0, 2: 120.0, 4: 330.0})
    assert jagged["Amdahl", "serial share"].value is None
    assert jagged["Amdahl", "serial share"].reason
    assert "4 sizes" in jagged["USL", "contention"].reason or "needs 4" in jagged["USL", "contention"].reason
