"""Runs of MLflow's file store: one of a few steps, as MLflow writes it, and what is wrong with others."""

from pathlib import Path

import pytest

from dlperf_study.errors import LogError
from dlperf_study.logs.log_reader import read_log
from dlperf_study.logs.log_source import LogSource
from dlperf_study.logs.mlflow_runs import MlflowRun

META = "lifecycle_stage: active\nrun_id: 6e9fbf7d8d964eae8de3201ab4975322\nstatus: 3\ntags: []\n"
TIMES = "1795407925702 0.25 0\n1795407925716 0.5 1\n1795407925730 0.25 2\n"
LOSSES = "1795407925702 7.0 0\n1795407925716 6.5 1\n1795407925730 6.0 2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "metrics" / "train").mkdir(parents=True)
    (tmp_path / "meta.yaml").write_text(META)
    (tmp_path / "metrics" / "step_time").write_text(TIMES)
    (tmp_path / "metrics" / "train" / "loss").write_text(LOSSES)
    return tmp_path


def run(folder: Path) -> MlflowRun:
    metrics = folder / "metrics"
    named = [(str(path.relative_to(metrics)), LogSource(path)) for path in metrics.rglob("*") if path.is_file()]
    return MlflowRun(folder / "meta.yaml", display_name="0/run/metrics", metrics=tuple(named))


def test_the_metrics_of_a_run_are_one_log(folder: Path) -> None:
    log = read_log(run(folder))
    assert log.format.name == "mlflow"
    series = log.series("step_seconds")
    assert series.step.tolist() == [0, 1, 2]
    assert series.values["step_seconds"].tolist() == [0.25, 0.5, 0.25]
    assert log.series("loss").values["loss"].tolist() == [7.0, 6.5, 6.0]
    assert series.time_seconds.tolist() == [1795407925.702, 1795407925.716, 1795407925.73]


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("meta.yaml", "status: 3", "status: 1", "0/run/metrics: the run is not FINISHED and active .* but RUNNING"),
        ("meta.yaml", "status: 3", "status: 5", "but KILLED and active"),
        ("meta.yaml", "active", "deleted", "but FINISHED and deleted"),
        ("meta.yaml", "status: 3", "", "0/run/meta.yaml: does not state status"),
        ("meta.yaml", "tags: []", "tags: [", "0/run/meta.yaml: does not state status"),
        ("metrics/step_time", " 0.25 2\n", " 0.", "step_time: line 3 is no time, value and step: '1795407925730 0.'"),
        ("metrics/step_time", " 0.25 2\n", " 0.25 2", "step_time: truncated: line 3 does not end"),
        ("metrics/step_time", " 0.5 1", " 0,5 1", "step_time: line 2 is no time, value and step"),
    ],
)
def test_a_run_that_is_not_whole_is_refused(folder: Path, file: str, old: str, new: str, reason: str) -> None:
    path = folder / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(LogError, match=reason):
        read_log(run(folder))


def test_metrics_of_unknown_meaning_are_named(folder: Path) -> None:
    (folder / "metrics" / "step_time").rename(folder / "metrics" / "tps")
    with pytest.raises(LogError, match=r"no tag is known to be .*; its tags: (tps, train/loss|train/loss, tps)"):
        read_log(run(folder))
