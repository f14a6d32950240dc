"""Studies on a machine with two A100 where the installed libraries are those for CPUs."""

from dataclasses import replace
from pathlib import Path

import pytest

from dlperf_study.core.errors import RunError, UnsupportedError
from dlperf_study.execution.planning import load_cluster, make_plan
from dlperf_study.execution.repetitions import REQUEST_VARIABLE, ConfigurationRuns, controller_request, requested_runs
from dlperf_study.study.plan import Plan
from dlperf_study.study.plan_description import describe
from tests.nvidia_smi import A100, two_a100
from tests.study.examples import write

ON_GPUS = """\
launcher: local
nodes: 1
devices_per_node: auto
device: gpu
device_name: auto
interconnect: NVLink
"""


@pytest.fixture(autouse=True)
def _two_a100(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_a100(tmp_path, monkeypatch)


def test_a_plan_for_any_device_is_for_the_cpu_and_says_why_once(tmp_path):
    plan, cluster = make_plan("quickstart", "local", quick=False)
    assert (cluster.device, plan.unsupported) == ("cpu", ())
    text = describe(plan)
    assert text.count("\nNote: this machine has 2 × NVIDIA A100-SXM4-80GB, but runs are measured on its CPU: ") == 1
    assert text.count("`make gpu PADDLE_INDEX=ADDRESS` installs") == 1
    plan.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json").why_not_gpu == plan.why_not_gpu != ""


def test_a_run_on_another_device_than_planned_is_refused(three_runs, tmp_path, monkeypatch):
    file = write(tmp_path, ON_GPUS.replace("device: gpu", "device: auto"), "any")
    wanted = replace(three_runs, cluster=str(file))
    cluster = load_cluster(file, [wanted.framework])
    request = controller_request(requested_runs(wanted, cluster), replace(cluster, device="gpu"))
    monkeypatch.setenv(REQUEST_VARIABLE, request)
    with pytest.raises(RunError, match=f"planned for device gpu, but now it is cpu: this machine has 2 × {A100}"):
        ConfigurationRuns(wanted)


def test_by_hand_nothing_runs_on_a_gpu_that_the_library_cannot_use(three_runs, tmp_path):
    with pytest.raises(UnsupportedError, match="paddle is built without CUDA"):
        ConfigurationRuns(replace(three_runs, cluster=str(write(tmp_path, ON_GPUS, "gpus"))))
