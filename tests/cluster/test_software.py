"""What a Python says that it brings."""

import json
import re
import subprocess
import sys

import pytest

from dlperf_study import frameworks
from dlperf_study.cluster.software import (
    DRIVER_CODE_VARIABLE,
    MODULE,
    PACKAGE_FOLDER,
    code_identity,
    installed,
    packages_of_libraries,
    require_code_of_driver,
    software,
    training_libraries,
)
from dlperf_study.errors import RunError
from dlperf_study.paths import PROJECT


@pytest.mark.parametrize(
    ("versions", "libraries"),
    [
        ({"paddlepaddle": "3.0.0", "torch": "2.13.0+cpu", "numpy": "2.4"}, {"paddle": "3.0.0", "torch": "2.13.0"}),
        ({"paddlepaddle-gpu": "3.0.0", "horovod": "0.28.1"}, {"paddle": "3.0.0", "horovod": "0.28.1"}),
        ({"paddlepaddle-gpu": "2.6.2", "paddlepaddle": "3.0.0"}, {"paddle": "2.6.2"}),
        ({"numpy": "2.4"}, {}),
    ],
)
def test_a_library_has_the_version_of_the_package_that_brings_it(
    versions: dict[str, str], libraries: dict[str, str]
) -> None:
    assert training_libraries(versions) == libraries


@pytest.mark.parametrize("name", frameworks.names())
def test_the_packages_of_a_framework_are_those_of_a_library(name: str) -> None:
    framework = frameworks.load(name)
    assert packages_of_libraries()[framework.library] == framework.packages


def test_further_packages_are_said_when_they_are_there() -> None:
    assert installed(["pytest", "pip-of-nobody"])["software"] == software() | {"pytest": pytest.__version__}


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        ("", None),
        (code_identity(), None),
        (f"0ther {PACKAGE_FOLDER}", f"the measuring code in {PACKAGE_FOLDER} has changed since the study started"),
        ("0ther /elsewhere", f"the driver runs that in /elsewhere, this process that in {PACKAGE_FOLDER}"),
    ],
)
def test_a_process_with_other_code_than_its_driver_says_where_both_are(driver: str, reason: str | None) -> None:
    if reason is None:
        require_code_of_driver({DRIVER_CODE_VARIABLE: driver})
        return
    with pytest.raises(RunError, match=re.escape(reason)):
        require_code_of_driver({DRIVER_CODE_VARIABLE: driver})


def test_a_python_prints_the_packages_it_was_asked_for() -> None:
    program = [sys.executable, "-m", MODULE, "pytest", "nobody"]
    printed = subprocess.run(program, check=True, capture_output=True, text=True, cwd=PROJECT).stdout
    assert json.loads(printed) == installed(["pytest", "nobody"])
