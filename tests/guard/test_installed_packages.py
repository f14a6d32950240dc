"""The installed packages of a Python."""

import sys
from pathlib import Path

import pytest

from dlperf_study.cluster.software import measuring_code, software
from dlperf_study.errors import RunError
from dlperf_study.guard.installed_packages import UnusablePython, installed_packages
from dlperf_study.guard.submission import Node
from dlperf_study.paths import PROJECT
from tests.shell_program import program


def test_another_python_is_asked() -> None:
    facts = {"code": measuring_code(), "software": software()}
    assert installed_packages([]) == installed_packages([sys.executable]) == facts
    assert installed_packages(["env", sys.executable]) == facts


@pytest.mark.parametrize("python", [(), (sys.executable,), ("env", sys.executable)])
def test_further_packages_are_asked_for_by_name(python: tuple[str, ...]) -> None:
    packages = installed_packages(python, ["pip-of-nobody", "pytest"])["software"]
    assert packages == software() | {"pytest": pytest.__version__}


def test_a_python_elsewhere_is_asked_there() -> None:
    there = Node("two", ("env", "TWO=2"))
    assert installed_packages([sys.executable], node=there) == installed_packages([])


def test_a_python_that_cant_answer_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"/nowhere/python does not run: .*No such file"):
        installed_packages(["/nowhere/python"])
    stranger = program(tmp_path, "echo No module named dlperf_study >&2; exit 1")
    with pytest.raises(UnusablePython, match=r"software exited with code 1: No module named dlperf_study"):
        installed_packages([stranger], ["torch"])


@pytest.mark.parametrize(("script", "said"), [("true", "''"), ("echo hello", "'hello'")])
def test_a_program_that_is_no_python_is_said(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(UnusablePython, match=rf"cluster\.software prints {said} instead of its installed packages$"):
        installed_packages([program(tmp_path, script)])


def test_a_node_that_is_not_reached_is_no_python_without_this_package(tmp_path: Path) -> None:
    way = Node("two", (program(tmp_path, "echo no such road >&2; exit 255"),))
    with pytest.raises(RunError, match=r"^two can't be asked for its libraries: no such road$") as caught:
        installed_packages([sys.executable], node=way)
    assert not isinstance(caught.value, UnusablePython)


def test_a_checkout_in_the_current_folder_does_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Training processes have another current folder."""
    monkeypatch.chdir(PROJECT)
    without_site_packages = program(tmp_path, f'exec {sys.executable} -S "$@"')
    with pytest.raises(UnusablePython, match="No module named 'dlperf_study'"):
        installed_packages([without_site_packages])
