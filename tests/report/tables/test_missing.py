"""A dash in a table of runs has the reason why the number is missing, where that is known."""

from types import SimpleNamespace

import pytest

from dlperf_study.report.tables.missing import why_missing_of_run

RUN = {"outcome": "completed", "cpu_limit": 0.0, "exchange": "none", "steadiness": "not steady"}


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("exchange_seconds", "nothing to exchange"),
        ("used_cores", "no CPU limit was set"),
        ("throttled_share", "no CPU limit was set"),
        ("further_steps", "the window is not steady: more steps are no help"),
        ("wall_throughput", "its lines have no times, or these are too coarse or don't fit the printed rates"),
    ],
)
def test_a_dash_of_a_run_has_its_reason(column: str, reason: str) -> None:
    assert why_missing_of_run(SimpleNamespace(**RUN), column) == reason


def test_a_run_that_failed_does_not_count() -> None:
    assert why_missing_of_run(SimpleNamespace(**RUN | {"outcome": "failed"}), "used_cores") == "the run does not count"


def test_where_the_reason_is_not_known_the_column_is_defined() -> None:
    assert why_missing_of_run(SimpleNamespace(**RUN | {"cpu_limit": 0.3}), "used_cores").startswith("Used cores: ")
