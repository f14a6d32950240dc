"""What the first pod of a run checks before anything is started."""

import pytest

from dlperf_study.cluster.software import measuring_code, software
from dlperf_study.guard.submission import Submission
from dlperf_study.kubernetes.coordinator_pod import RunRequest, coordinate_pods


def reason(code: str = "", **libraries: str) -> str:
    """Return why a run ends that was planned with these libraries; its pods never answer."""
    submission = Submission("kubernetes", "/runs/1", (), 0)
    request = RunRequest(submission, ("nobody.invalid",), True, code or measuring_code(), libraries, 1.0, 0.0)
    return coordinate_pods(request, "127.0.0.1").reason


@pytest.mark.parametrize("package", ["paddlepaddle", "paddlepaddle-gpu"])
def test_an_image_has_the_library_that_the_study_was_planned_with(package: str) -> None:
    here = software()["paddlepaddle"]
    assert reason(**{package: "2.9.9"}) == f"the image has paddle {here}, but the study was planned with 2.9.9"
    assert reason(**{package: here}) == "nobody.invalid: no answer within 0 s"


def test_an_image_has_the_code_of_the_driver() -> None:
    assert reason("another").startswith("the image has other measuring code than the driver of the study")
