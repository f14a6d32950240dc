"""Setting up: what is missing is said in one message. The set-up that succeeds is how these tests got here."""

import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dlperf_study.core.paths import PROJECT
from tests.shell_program import program
from tools.horovod_build import BUILDS

TOOLS = ("sh", "df", "awk", "tail", "rm", "touch", "env")
HOROVOD = BUILDS["horovod"]


def set_up(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(PROJECT / "pyproject.toml", folder)
    shutil.copytree(PROJECT / "locks", folder / "locks", dirs_exist_ok=True)
    command = ["sh", str(PROJECT / "tools" / "setup.sh")]
    return subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)


def path_with(folder: Path, *names: str) -> str:
    """Return a PATH on which only these commands are found."""
    folder.mkdir()
    for name in names:
        program = shutil.which(name)
        assert program, name
        (folder / name).symlink_to(program)
    return str(folder)


def test_no_python_is_said(tmp_path):
    done = set_up(tmp_path, PATH=path_with(tmp_path / "bin", *TOOLS), PYTHON_FOR_SETUP="")
    assert done.returncode == 1
    assert "set-up failed: Python 3.11, 3.12 or 3.13 is needed.\n" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_a_python_that_is_too_old_is_named(tmp_path):
    tools = Path(path_with(tmp_path / "bin", *TOOLS))
    old = program(tools, 'test "$1" = --version && echo "Python 3.9.2"', "python3")
    done = set_up(tmp_path, PATH=str(tools), PYTHON_FOR_SETUP="")
    assert f"set-up failed: found Python 3.9.2 at {old}; Python 3.11, 3.12 or 3.13 is needed.\n" in done.stderr
    done = set_up(tmp_path, PYTHON_FOR_SETUP=old)
    assert f"found Python 3.9.2 at {old}; " in done.stderr


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no_python", "there is no program PYTHON_FOR_SETUP=no_python"),
        ("true", "; Python 3.11, 3.12 or 3.13 is needed."),
    ],
)
def test_a_program_that_is_no_python_is_refused(tmp_path, name, problem):
    done = set_up(tmp_path, PYTHON_FOR_SETUP=name)
    assert done.returncode == 1
    assert problem in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_a_second_set_up_beside_another_is_refused(tmp_path):
    (tmp_path / "locks").mkdir()
    shutil.copy(PROJECT / "locks" / "main.txt", tmp_path / "locks")
    with (tmp_path / "locks" / "main.txt").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = set_up(tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("another set-up is running in this folder. Wait for it to end\n")
    assert not (tmp_path / ".venv").exists()


def test_without_a_python_uv_makes_the_environment(tmp_path):
    tools = Path(path_with(tmp_path / "bin", *TOOLS, "mkdir", "cat"))
    program(tools, f'echo "$@" >{tmp_path}/arguments; exit 1', "uv")
    done = set_up(tmp_path, PATH=str(tools), PYTHON_FOR_SETUP="")
    assert "Python 3.12 from uv" in done.stdout
    assert "Is there a network?" in done.stderr
    assert (tmp_path / "arguments").read_text() == "venv --quiet --seed --python 3.12 .venv\n"


def test_a_full_disk_is_said(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    program(tools, "printf 'Filesystem 1M Used Available\\nx 100 99 1 99%% /\\n'", "df")
    done = set_up(tmp_path, PATH=f"{tools}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "1 MB free" in done.stderr


@pytest.mark.timeout(120)
def test_no_network_is_said_and_nothing_counts_as_set_up(tmp_path):
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_FIND_LINKS": "", "PIP_RETRIES": "0"}
    done = set_up(tmp_path, PIP_CONFIG_FILE=os.devnull, PIP_EXTRA_INDEX_URL="", **nowhere)
    assert done.returncode == 1
    assert "Is there a network?" in done.stderr
    assert not (tmp_path / ".venv" / ".ready").exists()


def test_a_library_of_the_system_that_paddle_misses_is_said(tmp_path):
    python = """case "$*" in
        *version_info*) echo True;;
        *"import paddle"*) echo "ImportError: libgomp.so.1: cannot open shared object file" >&2; exit 1;;
        "-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python;;
    esac"""
    program(tmp_path, python, "python")
    done = set_up(tmp_path, PYTHON_FOR_SETUP=str(tmp_path / "python"))
    assert done.returncode == 1
    assert "ImportError: libgomp.so.1" in done.stderr
    assert "apt install libgomp1" in done.stderr
    assert not (tmp_path / ".venv" / ".ready").exists()


@pytest.mark.parametrize("is_complete", [True, False])
def test_an_environment_is_brought_up_to_date_if_it_is_complete_and_made_anew_otherwise(tmp_path, is_complete):
    python = """case "$*" in
        *version_info*) echo True;;
        "-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python;;
    esac"""
    program(tmp_path, python, "python")
    assert set_up(tmp_path, PYTHON_FOR_SETUP=str(tmp_path / "python")).returncode == 0
    installed, ready = tmp_path / ".venv" / "torch", tmp_path / ".venv" / ".ready"
    installed.touch()
    if not is_complete:
        ready.unlink()
    done = set_up(tmp_path, PYTHON_FOR_SETUP=str(tmp_path / "python"))
    assert (done.returncode, ready.exists(), installed.exists()) == (0, True, is_complete)
    assert ("updating .venv" in done.stdout) is is_complete


def make(*variables: str) -> "subprocess.CompletedProcess[str]":
    """Return what make would do for a plan with these variables, as a person calls it."""
    outside = {name: value for name, value in os.environ.items() if name not in ("MAKELEVEL", "MAKEFLAGS")}
    command = ["make", "--dry-run", "plan", *variables]
    return subprocess.run(command, cwd=PROJECT, env=outside, capture_output=True, text=True)


@pytest.mark.parametrize(("variable", "name"), [("WIAT=1", "WAIT"), ("study=allreduce", "STUDY"), ("TEST=x", "TESTS")])
def test_a_misspelt_variable_of_make_is_refused_with_the_right_one(variable, name):
    done = make(variable)
    assert done.returncode == 2
    assert f"did you mean {name}? The variables are STUDY" in done.stderr
    assert done.stdout == ""


def test_variables_of_other_programs_are_passed_on():
    done = make("DLPERF_STUDY_OUTPUTS=/tmp/x", "STUDY=allreduce", "HOROVOD_WITH_MPI=1")
    assert done.returncode == 0
    assert "plan allreduce" in done.stdout
    assert re.findall("there is no variable (.*?):", done.stderr) == ["DLPERF_STUDY_OUTPUTS"]


@pytest.mark.parametrize(("first", "alone", "ended"), [(0, 0, 0), (1, 0, 0), (1, 1, 1), (2, 0, 2)])
def test_failed_tests_run_once_more_alone(first, alone, ended, tmp_path):
    """A run with code 1 had failed tests; a run with code 2 was interrupted."""
    script = f'echo "$@"; case "$*" in *--last-failed*) exit {alone};; *--numprocesses*) exit {first};; esac'
    command = ["sh", "tools/test.sh", "test-all", program(tmp_path, script), "tests/core"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == ended
    assert ("--last-failed" in done.stdout) is (first == 1)
    assert "-m tools.install torch horovod tensorflow" in done.stdout


def test_the_tests_of_the_default_environment_leave_out_the_matrix(tmp_path):
    command = ["sh", "tools/test.sh", "test", program(tmp_path, 'echo "$@"'), "tests/core"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0
    assert "-m not matrix and not ci tests/core" in done.stdout
    assert "tools.install" not in done.stdout
