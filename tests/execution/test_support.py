"""Which configurations a cluster can run."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study import frameworks
from dlperf_study.errors import UnsupportedError
from dlperf_study.execution.support import library_version, require_support, unsupported_here
from tests.frameworks.launching import CLUSTER, asynchronous, configuration

PADDLE = frameworks.load("paddle_collective")


def test_what_can_run_here() -> None:
    for asked in (configuration(devices_per_node=2), asynchronous(2)):
        assert unsupported_here(asked, CLUSTER) is None
        require_support(asked, CLUSTER)


def test_a_framework_that_is_not_built_is_a_reason() -> None:
    reason = str(unsupported_here(configuration(framework="caffe"), CLUSTER))
    assert reason.startswith("framework caffe is not built (built: ")
    assert "paddle_ps" in reason


def test_too_many_devices_are_an_error_with_the_configuration() -> None:
    asked = configuration(devices_per_node=3)
    with pytest.raises(UnsupportedError, match=f"{asked.identity}: needs 3 devices on 1 node"):
        require_support(asked, CLUSTER)


def test_the_version_is_that_of_the_python_the_cluster_names(tmp_path: Path) -> None:
    another = tmp_path / "python"
    another.write_text("#!/bin/sh\n[ $3 = paddlepaddle ] && echo 2.9.9\n")
    another.chmod(0o755)
    here = library_version(PADDLE, CLUSTER)
    assert here == library_version(PADDLE, replace(CLUSTER, python={"paddle_collective": sys.executable}))
    assert library_version(PADDLE, replace(CLUSTER, python={"paddle_collective": str(another)})) == "2.9.9"


def test_a_library_that_is_not_there_is_a_reason(tmp_path: Path) -> None:
    empty = tmp_path / "python"
    empty.write_text("#!/bin/sh\nexit 1\n")
    empty.chmod(0o755)
    cluster = replace(CLUSTER, python={"paddle_collective": str(empty)})
    assert "paddlepaddle is not installed" in str(unsupported_here(configuration(), cluster))
