"""Runs of MLflow's file store: one of a few steps, as MLflow writes it, and what is wrong with others."""

import pytest

from dlperf_study.core.errors import LogError
from dlperf_study.logs.blocks import LogSource
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.tracker_files import MlflowRun

META = "lifecycle_stage: active\nrun_id: 6e9fbf7d8d964eae8de3201ab4975322\nstatus: 3\ntags: []\n"
TIMES = "1795407925702 0.25 0\n1795407925716 0.5 1\n1795407925730 0.25 2\n"
LOSSES = "1795407925702 7.0 0\n1795407925716 6.5 1\n1795407925730 6.0 2\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "metrics" / "train").mkdir(parents=True)
    (tmp_path / "meta.yaml").write_text(META)
    (tmp_path / "metrics" / "step_time").write_text(TIMES)
    (tmp_path / "metrics" / "train" / "loss").write_text(LOSSES)
    return tmp_path


def run(folder):
    metrics = folder / "metrics"
    named = [(str(path.relative_to(metrics)), LogSource(path)) for path in metrics.rglob("*") if path.is_file()]
    return MlflowRun(folder / "meta.yaml", display_name="0/run/metrics", metrics=tuple(named))


def test_the_metrics_of_a_run_are_one_log(folder):
    log = read_log(run(folder))
    assert log.format.name == "mlflow"
    series = log.series("step_seconds")
    assert series.step.tolist() == [0, 1, 2]
    assert series.values["step_seconds"].tolist() == [0.25, 0.5, 0.25]
    assert log.series("loss").values["loss"].tolist() == [7.0, 6.5, 6.0]
    assert series.time_seconds.tolist() == [1795407925.702, 1795407925.716, 1795407925.73]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("meta.yaml", "status: 3", "status: 1"),
        ("meta.yaml", "status: 3", "status: 5"),
        ("meta.yaml", "active", "deleted"),
        ("meta.yaml", "status: 3", ""),
        ("meta.yaml", "tags: []", "tags: ["),
        ("metrics/step_time", " 0.25 2\n", " 0."),
        ("metrics/step_time", " 0.25 2\n", " 0.25 2"),
        ("metrics/step_time", " 0.5 1", " 0,5 1"),
    ],
)
def test_a_run_that_is_not_whole_is_refused(folder, refused, file, old, new):
    path = folder / file
    path.write_text(path.read_text().replace(old, new))
    with refused(LogError):
        read_log(run(folder))


def test_metrics_of_unknown_meaning_and_what_is_no_text_are_refused(folder, refused):
    (folder / "metrics" / "step_time").rename(folder / "metrics" / "tps")
    (folder / "metrics" / "train" / "loss").unlink()
    with refused(LogError):
        read_log(run(folder))
    (folder / "metrics" / "tps").write_bytes(b"\xff\xfe")
    with refused(LogError):
        read_log(run(folder))
