"""What a Python brings to a run, as it says itself."""

import sys
from pathlib import Path

import pytest

from dlperf_study.cluster.software import measuring_code, software
from dlperf_study.errors import RunError
from dlperf_study.guard.installed_packages import CannotAnswer, brought_by
from dlperf_study.guard.submission import Place
from dlperf_study.paths import PROJECT
from tests.shell_program import program


def test_another_python_is_asked() -> None:
    facts = {"code": measuring_code(), "software": software()}
    assert brought_by([]) == brought_by([sys.executable]) == facts
    assert brought_by(["env", sys.executable]) == facts


@pytest.mark.parametrize("python", [(), (sys.executable,), ("env", sys.executable)])
def test_further_packages_are_asked_for_by_name(python: tuple[str, ...]) -> None:
    found = brought_by(python, ["pip-of-nobody", "pytest"])["software"]
    assert found == software() | {"pytest": pytest.__version__}


def test_a_python_elsewhere_is_asked_there() -> None:
    there = Place("two", ("env", "TWO=2"))
    assert brought_by([sys.executable], place=there) == brought_by([])


def test_a_python_that_cant_answer_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"/nowhere/python does not run: .*No such file"):
        brought_by(["/nowhere/python"])
    stranger = program(tmp_path, "echo No module named dlperf_study >&2; exit 1")
    with pytest.raises(CannotAnswer, match=r"software exited with code 1: No module named dlperf_study"):
        brought_by([stranger], ["torch"])


@pytest.mark.parametrize(("script", "said"), [("true", "''"), ("echo hello", "'hello'")])
def test_a_program_that_is_no_python_is_said(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(CannotAnswer, match=rf"cluster\.software says {said}, and not what it brings$"):
        brought_by([program(tmp_path, script)])


def test_a_node_that_is_not_reached_is_no_python_without_this_package(tmp_path: Path) -> None:
    way = Place("two", (program(tmp_path, "echo no such road >&2; exit 255"),))
    with pytest.raises(RunError, match=r"^two can't be asked for its libraries: no such road$") as caught:
        brought_by([sys.executable], place=way)
    assert not isinstance(caught.value, CannotAnswer)


def test_a_checkout_in_the_current_folder_does_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Training processes have another current folder."""
    monkeypatch.chdir(PROJECT)
    without_site_packages = program(tmp_path, f'exec {sys.executable} -S "$@"')
    with pytest.raises(CannotAnswer, match="No module named 'dlperf_study'"):
        brought_by([without_site_packages])
