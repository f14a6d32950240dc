"""Which variables reach training processes, and which of their values stand in evidence."""

import pytest

from dlperf_study.cluster.environment_variables import (
    WITHHELD,
    passed_environment,
    recorded_environment,
    travelling_environment,
    without_secrets,
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
    [
        ("NCCL_DEBUG", True),
        ("LANG", True),
        ("PATH", True),
        ("SITE", False),
        ("WANDB_API_KEY", False),
        # A prefix that libraries read does not make a value harmless.
        ("HOROVOD_SECRET_KEY", False),
        ("OMP_DATABASE_URL", False),
        ("CUDA_PASSWD", False),
        ("HOROVOD_CREDENTIALS", False),
        ("NCCL_Auth", False),
    ],
)
def test_values_that_may_be_secret_are_withheld(name: str, shown: bool) -> None:
    assert recorded_environment({name: "value"}) == {name: "value" if shown else WITHHELD}
    assert ("value" in Submission("local", "/runs/1", (), 0, environment={name: "value"}).as_json()) is shown


def test_an_address_with_a_password_is_withheld_whatever_its_name() -> None:
    address = "http://me:pa55@proxy:3128"
    assert recorded_environment({"NCCL_PROXY": address, "NCCL_NET": "http://proxy:3128"}) == {
        "NCCL_PROXY": WITHHELD,
        "NCCL_NET": "http://proxy:3128",
    }
    assert without_secrets(f"can't reach {address}", {"NCCL_PROXY": address}) == f"can't reach {WITHHELD}"


def test_folders_of_this_machine_do_not_travel() -> None:
    given = {"PATH": "/bin", "HOME": "/root", "NCCL_DEBUG": "INFO", "SITE": "x", "OTHER": "y"}
    assert travelling_environment(given, ("SITE",)) == {"NCCL_DEBUG": "INFO", "SITE": "x"}
