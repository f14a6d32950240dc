"""The command named ssh: what Horovod says to it, and what it becomes."""

import subprocess

import pytest

from dlperf_study.core.errors import RunError
from dlperf_study.machines.node_agent.run_folder import command, install
from dlperf_study.machines.node_agent.submission import Node

SSH = ["ssh", "-F", "/etc/config", "h2"]
TABLE = {"10.0.0.2": SSH, "10.0.0.3": ["srun", "--nodelist=h3", "sh", "-c"]}


@pytest.mark.parametrize(
    ("arguments", "becomes"),
    [
        # As Horovod 0.28.1 tries a host, and starts a rank there.
        (["-o", "PasswordAuthentication=no", "10.0.0.2", "-o", "ConnectTimeout=10", "true"], [*SSH, "true"]),
        (["-o", "A=no", "-o", "B=no", "10.0.0.2", "cd /x ; env A=1 python"], [*SSH, "cd /x ; env A=1 python"]),
        # As Open MPI 4.1 does.
        (["-x", "10.0.0.2", "orted", "-mca", "ess"], [*SSH, "orted -mca ess"]),
        (["10.0.0.3", "env", "A=1", "python"], ["srun", "--nodelist=h3", "sh", "-c", "env A=1 python"]),
    ],
)
def test_the_way_to_a_node_is_ours(arguments, becomes):
    assert command(TABLE, arguments) == becomes


def test_a_host_of_somebody_else_is_refused(refused):
    with refused(RunError):
        command(TABLE, ["h9", "true"])


def test_the_command_takes_itself_off_the_path(tmp_path):
    folder = tmp_path / "with space" / "bin"
    install(folder, {"here": Node().shell_argv()})
    path = f"{folder}:/usr/bin:/bin"
    done = subprocess.run(["ssh", "here", "echo $PATH"], capture_output=True, text=True, env={"PATH": path})
    assert (done.stdout, done.stderr) == ("/usr/bin:/bin\n", "")


def test_words_reach_a_node_unchanged():
    word = "it's $HOME; true"
    for place in (Node(), Node("here", ("sh", "-c"), shell=True)):
        assert subprocess.run(place.command("printf", "%s", word), capture_output=True, text=True).stdout == word
