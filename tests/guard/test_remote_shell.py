"""The command named ssh: what Horovod says to it, and what it becomes."""

import subprocess
from pathlib import Path

import pytest

from dlperf_study.errors import RunError
from dlperf_study.guard.remote_shell import command, install
from dlperf_study.guard.submission import Node

SSH = ["ssh", "-F", "/etc/config", "h2"]
TABLE = {"10.0.0.2": SSH, "10.0.0.3": ["srun", "--nodelist=h3", "sh", "-c"]}


@pytest.mark.parametrize(
    ("arguments", "becomes"),
    [
        # As Horovod 0.28.1 tries a host, and starts a rank there.
        (["-o", "PasswordAuthentication=no", "10.0.0.2", "-o", "ConnectTimeout=10", "true"], [*SSH, "true"]),
        (["-o", "A=no", "-o", "B=no", "10.0.0.2", "cd /x ; env A=1 python"], [*SSH, "cd /x ; env A=1 python"]),
        (["10.0.0.3", "env", "A=1", "python"], ["srun", "--nodelist=h3", "sh", "-c", "env A=1 python"]),
    ],
)
def test_the_way_to_a_node_is_ours(arguments: list[str], becomes: list[str]) -> None:
    assert command(TABLE, arguments) == becomes


def test_a_host_of_somebody_else_is_refused() -> None:
    with pytest.raises(RunError, match=r"host h9 is not of this run; those are 10\.0\.0\.2, 10\.0\.0\.3"):
        command(TABLE, ["h9", "true"])


def test_the_command_takes_itself_off_the_path(tmp_path: Path) -> None:
    folder = tmp_path / "with space" / "bin"
    install(folder, {"here": Node().shell_argv()})
    path = f"{folder}:/usr/bin:/bin"
    done = subprocess.run(["ssh", "here", "echo $PATH"], capture_output=True, text=True, env={"PATH": path})
    assert (done.stdout, done.stderr) == ("/usr/bin:/bin\n", "")


def test_words_reach_a_node_unchanged() -> None:
    word = "it's $HOME; true"
    shell = Node("here", ("sh", "-c"), python="printf", shell=True)
    for place in (Node(python="printf"), shell):
        assert subprocess.run(place.argv("%s", word), capture_output=True, text=True).stdout == word
