"""The installed packages of a Python."""

import sys

import pytest

from dlperf_study.core.code_identity import COMMON_ROOTS, code_digest
from dlperf_study.core.errors import RunError
from dlperf_study.core.paths import PROJECT
from dlperf_study.machines.cluster.software import software
from dlperf_study.machines.node_agent.installed_packages import UnusablePython, installed_packages
from dlperf_study.machines.node_agent.submission import Node
from tests.shell_program import program


@pytest.mark.parametrize("python", [(), (sys.executable,), ("env", sys.executable)])
def test_a_python_is_asked_for_its_packages_and_further_ones_by_name(python):
    facts = {"code": code_digest(COMMON_ROOTS), "software": software()}
    assert installed_packages(python, code_roots=COMMON_ROOTS) == facts
    packages = installed_packages(python, ["pip-of-nobody", "pytest"])["software"]
    assert packages == software() | {"pytest": pytest.__version__}


def test_a_python_elsewhere_is_asked_there():
    there = Node("two", ("env", "TWO=2"))
    assert installed_packages([sys.executable], node=there) == installed_packages([])


def test_a_python_that_cant_answer_is_said(tmp_path, refused):
    with refused(RunError):
        installed_packages(["/nowhere/python"])
    stranger = program(tmp_path, "echo No module named dlperf_study >&2; exit 1")
    with refused(UnusablePython):
        installed_packages([stranger], ["torch"])


@pytest.mark.parametrize("script", ["true", "echo hello"])
def test_a_program_that_is_no_python_is_said(tmp_path, script, refused):
    with refused(UnusablePython):
        installed_packages([program(tmp_path, script)])


def test_a_node_that_is_not_reached_is_no_python_without_this_package(tmp_path, refused):
    way = Node("two", (program(tmp_path, "echo no such road >&2; exit 255"),))
    with refused(RunError) as caught:
        installed_packages([sys.executable], node=way)
    assert not isinstance(caught.value, UnusablePython)


def test_a_checkout_in_the_current_folder_does_not_count(monkeypatch, tmp_path, refused):
    """Training processes have another current folder."""
    monkeypatch.chdir(PROJECT)
    without_site_packages = program(tmp_path, f'exec {sys.executable} -S "$@"')
    with refused(UnusablePython):
        installed_packages([without_site_packages])
