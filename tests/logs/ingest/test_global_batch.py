"""Jobs whose devices have no whole number of samples each, because several share a model."""

import pytest

from dlperf_study.logs.identification import identify_logs
from tests.logs.ingest.conftest import declare

FORMAT = "name: iterations\nlines: ['iteration {step} {time} s']\nnumbers: {time: {unit: s/step, of: job}}\n"


def write(folder, seconds, **metadata):
    declare(folder, **metadata)
    lines = [f"iteration {step} {seconds + 0.001 * (step % 3):.3f} s\n" for step in range(1, 41)]
    (folder / "run_1.log").write_text("".join(lines))


@pytest.fixture
def job_logs(folder):
    (folder / "log_format.yaml").write_text(FORMAT)
    (folder / "metadata.yaml").write_text(
        "confirmed: true\nstudy: logs\nscaling: strong\nbaseline: {nodes: 1, devices_per_node: 4}\n"
    )
    return folder


def test_a_step_of_fewer_samples_than_devices_has_their_throughput(job_logs, ingested):
    write(job_logs / "small", 2.0, devices_per_node=4, batch_per_device=1)
    write(job_logs / "large", 0.8, devices_per_node=16, batch_per_device=None, global_batch=4)
    dataset = ingested()
    rows = dataset.configurations.set_index("devices_per_node").sort_index()
    assert rows["global_batch"].tolist() == [4, 4]
    # 0 is shown as a batch that can't be shared equally.
    assert rows["batch_per_device"].tolist() == [1, 0]
    assert rows["throughput"].tolist() == pytest.approx([4 / 2.001, 4 / 0.801], rel=1e-3)
    assert rows["step_seconds"].tolist() == pytest.approx([2.001, 0.801], rel=1e-3)
    assert rows["speedup"].tolist() == pytest.approx([1, 2.001 / 0.801], rel=1e-3)
    assert dataset.runs.set_index("devices_per_node").loc[16, "global_batch"] == 4
    assert dataset.steps["seconds"].max() < 2.01


def test_a_global_batch_that_devices_share_equally_is_their_batch(job_logs):
    write(job_logs / "a", 2.0, devices_per_node=4, batch_per_device=None, global_batch=32)
    [configuration] = identify_logs(job_logs).study.configurations
    assert configuration.parameters["batch_per_device"] == 8
