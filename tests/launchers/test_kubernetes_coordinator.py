"""What the first pod of a run checks before anything is started, and how it runs commands in the others."""

import subprocess
import sys
from pathlib import Path

import pytest

from dlperf_study.machines.cluster.software import software
from dlperf_study.machines.guard.run_folder import encoded
from dlperf_study.machines.guard.submission import Submission
from dlperf_study.machines.kubernetes.coordinator_pod import RunRequest, coordinate_pods, write_archive
from dlperf_study.machines.kubernetes.remote_exec import LOST
from dlperf_study.programs.questions import packages, packages_of_libraries
from tests.command_line import wait_for

#: Of this machine, and of no other test.
ADDRESS = "127.0.0.77"


def reason(code: str = "", **libraries: str) -> str:
    """Return why a run ends that was planned with these libraries; its pods never answer."""
    submission = Submission(
        "kubernetes", "/runs/1", (), 0, libraries=packages_of_libraries(), packages=packages(), code=code
    )
    request = RunRequest(submission, ("nobody.invalid",), True, libraries, 1.0, 0.0)
    return coordinate_pods(request, "127.0.0.1").reason


@pytest.mark.parametrize("package", ["paddlepaddle", "paddlepaddle-gpu"])
def test_an_image_has_the_library_that_the_study_was_planned_with(package):
    here = software(packages())["paddlepaddle"]
    assert reason(**{package: "2.9.9"}) == f"the image has paddle {here}, but the study was planned with 2.9.9"
    assert reason(**{package: here}) == "nobody.invalid: no answer within 0 s"


def test_an_image_has_the_code_of_the_driver():
    assert reason("another").startswith("the image has other measuring code than the driver of the study")


def test_a_pod_has_the_files_that_travel_with_a_run(tmp_path):
    packed, pod = tmp_path / "files.tar.gz", tmp_path / "pod"
    packed.write_bytes(bytes(range(256)))
    pod.mkdir()
    submission = Submission("kubernetes", "/runs/1", (), 0, archive=str(packed))
    request = RunRequest(submission, (), True, {}, 1.0, 0.0, archive=encoded(packed))
    received = RunRequest.from_json(request.as_json(), {})
    assert Path(write_archive(received.archive, pod)).read_bytes() == packed.read_bytes()
    assert write_archive("", pod) == ""


def remote_exec(program: str, token: Path, *command: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "dlperf_study.machines.kubernetes.remote_exec",
        program,
        str(token),
        ADDRESS,
        *command,
    ]


def run(token: Path, *command: str, text: str = "") -> tuple[str, int]:
    """Return what a command prints and its exit code; ``text`` is its input."""
    client = subprocess.run(remote_exec("run", token, *command), input=text, stdout=subprocess.PIPE, text=True)
    return client.stdout, client.returncode


def test_a_command_runs_in_another_pod_for_whoever_knows_the_token(tmp_path):
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    for token in (right, wrong):
        token.write_text(token.name)
    with subprocess.Popen(remote_exec("serve", right)) as server:
        wait_for(lambda: run(right, "true") == ("", 0), "the server to answer")
        assert run(right, "sh", "-c", "cat; exit 3", text="a line") == ("a line", 3)
        assert run(wrong, "echo", "reached") == ("", LOST)
    assert server.returncode == 0, "it ends a moment after its last command"
