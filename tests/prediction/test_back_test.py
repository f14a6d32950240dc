"""Methods of prediction against what they assume, and the page of docs against the published series."""

import math
import re

import pytest

from dlperf_study.prediction.curves import STRONG, Unit
from dlperf_study.prediction.intervals import largest_left_out
from tests.prediction.curve_factory import curve
from tools import back_test
from tools.back_test import by_laboratory, errors_of, held_by_intervals
from tools.prediction_page import DOCS_PAGE, groups, page


@pytest.mark.parametrize(
    ("method", "throughput"),
    [(back_test.same_rate, lambda n: 3.0 * n), (back_test.power_law, lambda n: 3.0 * n**0.9)],
)
def test_a_method_continues_a_curve_that_follows_it(method, throughput):
    followed = curve({count: throughput(count) for count in (1, 2, 4, 8, 16)}, Unit.DEVICE, devices_per_unit=1)
    assert method(followed, 64) == pytest.approx(throughput(64), rel=1e-6)


def test_a_power_law_is_fitted_to_what_is_inside_a_node_too():
    inside = tuple((count, 3.0 * count**0.9) for count in (1, 2, 4))
    over_nodes = curve({1: 3.0 * 8**0.9, 2: 3.0 * 16**0.9}, within_node=inside)
    assert back_test.power_law(over_nodes, 4) == pytest.approx(3.0 * 32**0.9)


def test_the_largest_of_three_sizes_is_left_out():
    three, two = curve({1: 8.0, 2: 15.0, 4: 29.0}), curve({1: 8.0, 2: 15.0})
    [case] = largest_left_out([three, two])
    assert [point.units for point in case.curve.points] == [1, 2]
    assert case.target.units == 4
    by_method = {entry.method: entry for entry in errors_of([case])}
    assert by_method["same throughput per device"].median == pytest.approx(30 / 29 - 1)


def test_a_laboratory_with_many_series_does_not_decide_the_errors():
    many = [curve({1: 10.0, 2: 20.0, 4: 40.0}, laboratory="many")] * 50
    few = [curve({1: 10.0, 2: 20.0, 4: 20.0}, laboratory=name) for name in ("one", "another")]
    same_throughput = errors_of(largest_left_out([*many, *few]))[0]
    assert same_throughput.median == pytest.approx(1.0)


def test_intervals_of_published_series_are_made_without_their_laboratory():
    for cases in groups().values():
        of_laboratory = {name: held_by_intervals(some) for name, some in by_laboratory(cases).items()}
        assert all(held.cases and held.share >= 0.9 for held in of_laboratory.values())


def test_series_without_an_interval_are_not_held():
    held = held_by_intervals(largest_left_out([curve({1: 8.0, 2: 15.0, 4: 29.0}, scaling=STRONG)]))
    assert held.cases == 0
    assert math.isnan(held.share)


def test_the_page_has_what_the_published_series_say():
    written = DOCS_PAGE.read_text(encoding="utf-8")
    assert {"| node ring |", "| nodes |", "| devices of one node |"} <= set(re.findall(r"(?m)^\| [^|]+ \|", written))
    assert page(written) == written, "write it again: python -m tools.prediction_page"
