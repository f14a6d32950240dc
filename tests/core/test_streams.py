"""Where a command can't print: closed and full outputs, and encodings without the characters of its lines."""

import os
import shlex
import subprocess
import sys

import pytest

from dlperf_study.core.paths import OUTPUTS_VARIABLE
from tests.command_line import shared_machine, wait_for, workplace
from tests.conftest import left_over

COMMAND = f"{shlex.quote(sys.executable)} -m dlperf_study"


def do(arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Do a command through a shell, which redirects its streams."""
    return subprocess.run(
        f"exec {COMMAND} {arguments}",
        shell=True,
        capture_output=True,
        encoding="utf-8",
        # With buffers, as a user has them: what is left in one is written when Python exits.
        env={**os.environ, "PYTHONUNBUFFERED": "", **environment},
    )


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_characters_that_the_output_can_not_encode_are_escapes(encoding, tmp_path):
    table = tmp_path / "Beschleunigung ×.csv"
    table.write_text("GPUs,Images/sec,Speed-up\n1,100,1.00\n4,370,3.90\n")
    done = do(f"audit {shlex.quote(str(table))} --exit-zero", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert "3.7, printed 3.90" in done.stdout


@pytest.mark.parametrize(
    ("redirected", "code"),
    [(">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0), (">/dev/full", 1), ("2>/dev/full", 0), ("| true", 0)],
)
def test_a_command_whose_result_is_printed_fails_only_where_that_is_lost_unasked(redirected, code):
    """Who closes the output wants none."""
    done = do(f"plan quickstart {redirected}")
    assert done.returncode == code
    assert done.stderr == ("error: standard output: No space left on device\n" if code else "")


PROGRAM = """
from dlperf_study.record import Recorder
recorder = Recorder()
while recorder.step():
    pass
"""
STUDY = """
title: A program
about: A program of a user.
sections: [scaling]
scaling: weak
program: {name: toy, folder: ., command: "{python} train.py {width}", launch: per-rank}
constants: {batch_per_device: 4, devices_per_node: 1}
factors: {width: [1]}
baseline: {}
measurement: {warmup_steps: 2, measured_steps: 10, repetitions: 1}
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("redirected", ["<&- >&- 2>&-", ">/dev/full 2>/dev/full", ">/dev/full", "| true"])
def test_a_study_goes_on_where_nothing_can_be_printed(tmp_path, redirected):
    place = workplace(tmp_path, STUDY)
    (tmp_path / "train.py").write_text(PROGRAM)
    files = [str(place.study_file), "--cluster", str(place.cluster_file)]
    outputs = {OUTPUTS_VARIABLE: str(place.outputs), **shared_machine()}
    done = do(f"run {shlex.join(files)} {redirected}", PYTHONIOENCODING="ascii", **outputs)
    wait_for(lambda: not left_over(), "the server of notebooks to end after its controller")
    assert done.returncode == 0
    assert done.stderr.count("No space left on device") == (1 if redirected == ">/dev/full" else 0)
    assert done.stderr.count("Broken pipe") == (1 if redirected == "| true" else 0)
    assert place.run_facts("1n1d-b4")["status"] == "completed"
