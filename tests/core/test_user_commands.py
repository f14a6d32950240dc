"""The commands that messages tell a user to type."""

import pytest

from dlperf_study.core import user_commands
from dlperf_study.core.user_commands import COMMAND, command_of_study


@pytest.mark.parametrize(
    ("folder", "cluster", "rerun", "typed", "with_make"),
    [
        ("a", "local", False, "run a", "make study STUDY=a"),
        ("a-quick", "local", False, "run a --quick", "make study STUDY=a QUICK=1"),
        ("a", "mine", True, "run a --cluster mine --rerun", "make study STUDY=a CLUSTER=mine RERUN=1"),
    ],
)
def test_a_command_about_a_study_has_its_options(monkeypatch, folder, cluster, rerun, typed, with_make):
    monkeypatch.setattr(user_commands, "CHECKOUT", None)
    assert command_of_study("run", folder, cluster, rerun=rerun, target="study") == f"{COMMAND} {typed}"
    monkeypatch.setattr(user_commands, "CHECKOUT", "/a/checkout")
    assert command_of_study("run", folder, cluster, rerun=rerun, target="study") == with_make
