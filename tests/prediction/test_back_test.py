"""Methods of prediction against their laws, and the page of docs against the published series."""

import re

import numpy as np
import pytest

from dlperf_study.prediction import back_test
from dlperf_study.prediction.back_test import errors_of, held_shares, is_of_dlperf, largest_left_out
from dlperf_study.prediction.curves import Unit, published_curves
from tests.prediction.curve_factory import curve
from tools.prediction_page import DOCS_PAGE, FIGURE, page, write_figure


@pytest.mark.parametrize(
    ("method", "rate"),
    [
        (back_test.same_rate, lambda n: 3.0 * n),
        (back_test.power_law, lambda n: 3.0 * n**0.9),
        (back_test.log_linear, lambda n: n / (1 + 0.1 * np.log2(n))),
        (back_test.amdahl, lambda n: n / (0.95 + 0.05 * n)),
        (back_test.gustafson, lambda n: 0.1 + 0.9 * n),
        (back_test.universal_scalability, lambda n: n / (1 + 0.05 * (n - 1) + 0.002 * n * (n - 1))),
    ],
)
def test_a_law_continues_a_curve_that_follows_it(method, rate):
    devices = (1, 2, 4, 8, 16)
    followed = curve({count: rate(count) for count in devices}, Unit.DEVICE, devices_per_unit=1)
    assert method(followed, 64) == pytest.approx(rate(64), rel=1e-6)


def test_laws_are_fitted_to_what_is_inside_a_node_too():
    inside = tuple((count, 3.0 * count**0.9) for count in (1, 2, 4))
    over_nodes = curve({1: 3.0 * 8**0.9, 2: 3.0 * 16**0.9}, within_node=inside)
    assert back_test.power_law(over_nodes, 4) == pytest.approx(3.0 * 32**0.9)


def test_the_largest_of_three_sizes_is_left_out():
    three, two = curve({1: 8.0, 2: 15.0, 4: 29.0}), curve({1: 8.0, 2: 15.0})
    [case] = largest_left_out([three, two])
    assert [point.units for point in case.curve.points] == [1, 2]
    assert case.target.units == 4
    by_method = {entry.method: entry for entry in errors_of([case])}
    assert by_method["same rate per device"].median == pytest.approx(30 / 29 - 1)


def test_the_ring_is_the_best_of_the_methods_over_nodes():
    cases = [case for case in largest_left_out(published_curves()) if is_of_dlperf(case)]
    assert len(cases) == 98
    errors = {entry.method: entry for entry in errors_of(cases)}
    ring = errors.pop("node ring")
    assert all(ring.median < entry.median and ring.ninth_tenth < entry.ninth_tenth for entry in errors.values())
    [held] = held_shares(cases, [0.9])
    assert 0.85 <= held <= 0.95


def test_the_page_has_what_the_published_series_say():
    written = DOCS_PAGE.read_text(encoding="utf-8")
    assert {"| node ring |", "| all over nodes |"} <= set(re.findall(r"(?m)^\| [^|]+ \|", written))
    assert page(written) == written, "write it again: python -m tools.prediction_page"


def test_the_figure_has_what_the_published_series_say(tmp_path):
    write_figure(tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert drawn == FIGURE.read_text(encoding="utf-8"), "draw it again: python -m tools.prediction_page"
