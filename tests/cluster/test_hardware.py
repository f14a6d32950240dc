"""What other programs of this machine say."""

import pytest

from dlperf_study.machines.cluster import hardware
from dlperf_study.machines.cluster.hardware import command_output


def test_a_command_says_what_it_prints():
    assert command_output("printf", " a\n b\n") == "a\n b"


@pytest.mark.parametrize("argv", [("/no/such/program",), ("sh", "-c", "echo no; exit 1"), ("sleep", "60")])
def test_one_that_fails_is_not_there_or_takes_too_long_says_nothing(argv, monkeypatch):
    monkeypatch.setattr(hardware, "COMMAND_SECONDS", 0.2)
    assert command_output(*argv) == ""
