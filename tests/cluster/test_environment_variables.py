"""Which variables reach training processes, and which of their values stand in evidence."""

import pytest

from dlperf_study.cluster.environment_variables import (
    WITHHELD,
    passed_environment,
    recorded_environment,
    travelling_environment,
)
from dlperf_study.guard.submission import Submission


def test_what_is_passed_is_listed() -> None:
    given = {"PATH": "/bin", "NCCL_DEBUG": "INFO", "AWS_SECRET_ACCESS_KEY": "x", "PYTHONPATH": "x", "PATHS": "x"}
    assert passed_environment(given) == {"NCCL_DEBUG": "INFO", "PATH": "/bin"}


def test_what_a_study_decides_is_not_passed() -> None:
    given = {
        "HOROVOD_CYCLE_TIME": "50",
        "HOROVOD_TIMELINE_MARK_CYCLES": "1",
        "OMP_NUM_THREADS": "4",
        "OMP_PLACES": "cores",
    }
    assert passed_environment(given) == {"OMP_PLACES": "cores"}


@pytest.mark.parametrize(
    ("name", "shown"),
    [("NCCL_DEBUG", True), ("LANG", True), ("HOROVOD_SECRET_KEY", False), ("WANDB_API_KEY", False), ("SITE", False)],
)
def test_values_that_may_be_secret_are_withheld(name: str, shown: bool) -> None:
    assert recorded_environment({name: "value"}) == {name: "value" if shown else WITHHELD}
    assert ("value" in Submission("local", "/runs/1", (), 0, environment={name: "value"}).as_json()) is shown


def test_folders_of_this_machine_do_not_travel() -> None:
    given = {"PATH": "/bin", "HOME": "/root", "NCCL_DEBUG": "INFO", "SITE": "x", "OTHER": "y"}
    assert travelling_environment(given, ("SITE",)) == {"NCCL_DEBUG": "INFO", "SITE": "x"}
