"""How often a simulated self-test fails a correct instrument, and which errors it finds."""

import pytest

from dlperf_study.selftest import power

SLOWDOWNS = [0.02, 0.05, 0.1] * 7
PAIRS, ROUNDS = 20, 4


@pytest.mark.matrix
@pytest.mark.parametrize("half_width", [0.03, 0.09, 0.15])
def test_a_correct_instrument_fails_in_at_most_5_per_cent_of_selftests(half_width):
    assert power.failing_share(SLOWDOWNS[:PAIRS], ROUNDS, half_width, simulated=500) <= 0.05


@pytest.mark.matrix
@pytest.mark.parametrize(
    "fault", [{"error": 0.05}, {"error": -0.05}, {"width": 0.5}, {"width": 2.0}], ids=["high", "low", "narrow", "wide"]
)
def test_errors_are_found_in_80_per_cent_of_selftests(fault):
    assert power.failing_share(SLOWDOWNS[:PAIRS], ROUNDS, 0.09, simulated=100, **fault) >= 0.8


def test_the_simulated_half_width_is_the_requested_median(monkeypatch):
    half_widths = []

    def judged(comparisons, slowdowns, judge=power.checks.judge_slowdowns):
        half_widths.append(power.checks.median_half_width(comparisons))
        return judge(comparisons, slowdowns)

    monkeypatch.setattr(power.checks, "judge_slowdowns", judged)
    power.failing_share(SLOWDOWNS, ROUNDS, 0.1, simulated=100)
    assert sum(half_widths) / len(half_widths) == pytest.approx(0.1, rel=0.05)


def test_the_errors_that_are_tried_grow():
    """The smallest that is found is searched by halves."""
    assert list(power.ERRORS) == sorted(power.ERRORS)
    assert list(power.NARROW) == sorted(power.NARROW, reverse=True)
    assert list(power.WIDE) == sorted(power.WIDE)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            lambda error, width: error >= 0.04 or width <= 0.6 or width >= 1.75,
            ("ratios that are wrong by 4.0 %, CIs of 0.6 times the right width, CIs of 1.75 times the right width"),
        ),
        (lambda error, width: False, "none of those that were tried"),
    ],
)
def test_the_smallest_error_that_is_found_is_printed(monkeypatch, found, words):
    def failing(slowdowns, rounds, half_width, error=0.0, width=1.0, simulated=0):
        return float(found(error, width))

    monkeypatch.setattr(power, "failing_share", failing)
    sentences = power.power_sentences([0.1], ROUNDS, 0.09).replace("\u202f", " ")
    failing, errors = sentences.split(" of self-tests. ")
    assert failing.endswith("1 pair with 4 rounds and a CI margin of ± 9.0 % fail a correct instrument in 0.0 %")
    assert errors == f"The smallest errors that they find in 80 % of self-tests: {words}"
