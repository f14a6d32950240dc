"""What a run says of a rank that raises, whoever started it."""

from pathlib import Path

import pytest

from dlperf_study.core.paths import RunPaths
from dlperf_study.records.failure_reason import add_last_exception
from dlperf_study.training import frameworks
from tests.training.frameworks.launching import asynchronous, configuration, launch

pytestmark = pytest.mark.timeout(120)
SCRIPT = str(Path(__file__).with_name("failing_ranks.py"))


@pytest.mark.parametrize("name", frameworks.names())
def test_the_reason_is_the_exception_of_the_rank_that_raised(tmp_path, name):
    two_ranks = asynchronous(2) if name == "paddle_ps" else configuration(framework=name, devices_per_node=2)
    folder = tmp_path / "runs" / "1"
    ending = add_last_exception(launch(two_ranks, folder, (SCRIPT,)), RunPaths(folder))
    assert ending.status == "failed"
    assert " exited with code " in ending.reason
    assert ending.reason.endswith(": ValueError: rank 1 can't go on"), ending.reason
