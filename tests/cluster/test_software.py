"""What a Python says that it brings."""

import json
import subprocess
import sys

import pytest

from dlperf_study.core.code_identity import COMMON_ROOTS
from dlperf_study.core.paths import PROJECT
from dlperf_study.machines.cluster.software import installed, library_versions, query, software
from dlperf_study.programs import frameworks
from dlperf_study.programs.questions import packages_of_libraries


@pytest.mark.parametrize(
    ("versions", "libraries"),
    [
        ({"paddlepaddle": "3.0.0", "torch": "2.13.0+cpu", "numpy": "2.4"}, {"paddle": "3.0.0", "torch": "2.13.0"}),
        ({"paddlepaddle-gpu": "3.0.0", "horovod": "0.28.1"}, {"paddle": "3.0.0", "horovod": "0.28.1"}),
        ({"paddlepaddle-gpu": "2.6.2", "paddlepaddle": "3.0.0"}, {"paddle": "2.6.2"}),
        ({"numpy": "2.4"}, {}),
    ],
)
def test_a_library_has_the_version_of_the_package_that_brings_it(versions, libraries):
    assert library_versions(packages_of_libraries(), versions) == libraries


@pytest.mark.parametrize("name", frameworks.names())
def test_the_packages_of_a_framework_are_those_of_a_library(name):
    framework = frameworks.load(name)
    assert packages_of_libraries()[framework.library] == framework.packages


def test_further_packages_are_said_when_they_are_there():
    assert installed(["pytest", "pip-of-nobody"])["software"] == software() | {"pytest": pytest.__version__}


def test_a_python_prints_the_packages_it_was_asked_for():
    packages = ["pytest", "nobody"]
    program = [sys.executable, *query(packages, COMMON_ROOTS)]
    printed = subprocess.run(program, check=True, capture_output=True, text=True, cwd=PROJECT).stdout
    assert json.loads(printed) == installed(packages, COMMON_ROOTS)
