"""What a plan costs for each of its configurations, in calls: seconds depend on the machine and its load."""

import sys
from pathlib import Path
from types import FrameType

import yaml

from benchmarks.large_studies import STUDY
from dlperf_study.core.paths import OUTPUTS_VARIABLE
from dlperf_study.execution.pending import done_and_not_fitting
from dlperf_study.execution.planning import make_plan
from dlperf_study.execution.progress import earlier_run_seconds

#: A configuration has about sixty parameters, each of which is looked at a few times.
MOST_CALLS = 720


def calls_of_plan(folder: Path, batches: int) -> int:
    """Return how many functions are called to plan two configurations for each of so many batches."""
    study = folder / f"batches_{batches}.yaml"
    factors = {"batch_per_device": list(range(1, 1 + batches)), "devices_per_node": [1, 2]}
    study.write_text(
        yaml.safe_dump(STUDY | {"constants": STUDY["constants"] | {"model": "resnet50"}, "factors": factors})
    )
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        plan, cluster = make_plan(str(study), "local", quick=False)
        done_and_not_fitting(plan, cluster)
        earlier_run_seconds(plan)
    finally:
        sys.setprofile(None)
    return calls


def test_a_further_configuration_costs_few_calls(tmp_path, monkeypatch):
    monkeypatch.setenv(OUTPUTS_VARIABLE, str(tmp_path))
    calls_of_plan(tmp_path, 1)
    calls = (calls_of_plan(tmp_path, 101) - calls_of_plan(tmp_path, 1)) / 200
    assert calls < MOST_CALLS
