"""A test that can't run here is skipped, listed with what would enable it, and a failure where all are required."""

import os
import subprocess
import sys
from pathlib import Path

from dlperf_study.core.paths import PROJECT

TESTS = """
import pytest
from tests.requirements import need

def test_of_a_program():
    need("no-such-program", "sh")

@pytest.mark.skip(reason="of no use")
def test_skipped_by_a_mark():
    pass

@pytest.mark.xfail
def test_expected_to_fail():
    assert False
"""


def run_tests(folder: Path, required: str) -> "subprocess.CompletedProcess[str]":
    (folder / "test_some.py").write_text(TESTS)
    (folder / "pytest.ini").touch()
    command = [sys.executable, "-m", "pytest", "-p", "tests.requirements", "-p", "no:cacheprovider", str(folder)]
    environment = {**os.environ, "REQUIRE_ALL": required}
    return subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)


def test_what_is_skipped_is_listed_with_what_enables_it(tmp_path):
    run = run_tests(tmp_path, "0")
    assert run.returncode == 0
    assert "(enable: install no-such-program)" in run.stdout
    assert "2 skipped, 1 xfailed" in run.stdout


def test_a_skip_is_a_failure_where_everything_is_required(tmp_path):
    run = run_tests(tmp_path, "1")
    assert run.returncode == 1
    assert "1 failed, 1 xfailed" in run.stdout
    assert "REQUIRE_ALL=1, and this was skipped: needs no-such-program" in run.stdout
