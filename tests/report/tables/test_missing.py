"""A dash in a table of runs has the reason why the number is missing, where that is known."""

from types import SimpleNamespace

import pytest

from dlperf_study.metrics.metric import not_measured_in_run
from dlperf_study.report.tables.missing import explain_missing_of_run
from dlperf_study.study.program import OWN_PROGRAM

RUN = {
    "repetition": 1,
    "breakdown_from": 1,
    "framework": "torch_ddp",
    "outcome": "completed",
    "cpu_limit": 0.0,
    "exchange": "none",
    "wall_obstacle": "its lines have no times",
}


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("exchange_seconds", "nothing to exchange"),
        ("used_cores", "no CPU limit was set"),
        ("throttled_share", "no CPU limit was set"),
        ("steadiness", "its steps are too few, or vary too much, to tell"),
        ("wall_throughput", "its lines have no times"),
    ],
)
def test_a_dash_of_a_run_has_its_reason(column, reason):
    assert explain_missing_of_run(SimpleNamespace(**RUN), column) == reason


def test_a_run_that_failed_does_not_count_and_an_unknown_reason_is_the_definition():
    assert explain_missing_of_run(SimpleNamespace(**RUN | {"outcome": "failed"}), "used_cores").endswith(
        "does not count"
    )
    assert explain_missing_of_run(SimpleNamespace(**RUN | {"cpu_limit": 0.3}), "used_cores").startswith("Used cores: ")


def test_what_a_program_of_the_user_does_not_measure_is_not_explained_by_what_it_is():
    program = SimpleNamespace(**RUN | {"framework": OWN_PROGRAM})
    assert explain_missing_of_run(program, "load_balance") == not_measured_in_run(program)
    assert not not_measured_in_run(SimpleNamespace(**RUN))
    assert not not_measured_in_run(SimpleNamespace(outcome="completed"))
