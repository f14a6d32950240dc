"""How often the evidence and the files of one configuration are read while it is measured."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from dlperf_study.execution import planning, repetitions
from dlperf_study.execution.repetitions import (
    REQUEST_VARIABLE,
    ConfigurationRuns,
    controller_request,
    requested_runs,
    require_no_failure,
)
from dlperf_study.machines import launchers
from dlperf_study.machines.supervision import locks
from dlperf_study.records import rank_log
from dlperf_study.study.job import JobResult, RunStatus
from tests.execution.constructed import missing_runs


@pytest.fixture
def counts(constructed_runs: None, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the calls."""
    counter: Counter[str] = Counter()

    def count(module: Any, name: str) -> None:
        function: Callable[..., Any] = getattr(module, name)

        def counted(*arguments: Any) -> Any:
            counter[name] += 1
            return function(*arguments)

        monkeypatch.setattr(module, name, counted)

    for module, name in (
        (rank_log, "read_rank_log"),
        (repetitions, "cache_key_parts"),
        (planning.cluster_file, "read_cluster"),
        (locks, "lock"),
    ):
        count(module, name)
    return counter


def test_measuring_reads_every_file_once(three_runs, counts):
    runs = ConfigurationRuns(three_runs)
    assert "dlperf_study.training.worker" in runs.submission_text()
    records = runs.perform()
    require_no_failure(records)
    assert [facts["repetition"] for facts in records] == [1, 2, 3]
    assert counts == {"read_rank_log": 3 * three_runs.world_size, "cache_key_parts": 1, "read_cluster": 1, "lock": 1}


def test_a_driver_computes_one_fingerprint_and_reads_each_rank_log_once(three_runs, counts):
    ConfigurationRuns(three_runs).perform()
    counts.clear()
    assert missing_runs(three_runs, planning.load_cluster(three_runs.cluster)) == []
    assert counts == {"read_rank_log": 3 * three_runs.world_size, "cache_key_parts": 1, "read_cluster": 1}


@pytest.mark.parametrize(("performed", "are_last"), [(slice(0, 1), False), (slice(1, 2), False), (slice(2, 3), True)])
def test_a_notebook_knows_whether_others_of_its_configuration_follow(three_runs, monkeypatch, performed, are_last):
    cluster = planning.load_cluster(three_runs.cluster)
    runs = requested_runs(three_runs, cluster)[performed]
    monkeypatch.setenv(REQUEST_VARIABLE, controller_request(runs, cluster))
    assert ConfigurationRuns(three_runs).are_last is are_last


def test_what_is_measured_is_shown_again_while_somebody_else_measures(three_runs, counts, monkeypatch):
    """Nothing is left to measure, so nothing is locked."""
    records = ConfigurationRuns(three_runs).perform()
    counts.clear()
    monkeypatch.setattr(locks, "lock", None)
    assert ConfigurationRuns(three_runs).perform() == records


@pytest.mark.usefixtures("constructed_runs")
def test_an_interrupted_run_is_recorded_and_none_comes_after_it(three_runs, monkeypatch):
    """Its evidence is written first, then the interrupt goes on."""
    started = []

    def execute(submissions: list[Any], *_: object) -> Iterator[JobResult]:
        for submission in submissions:
            started.append(submission.paths)
            submission.paths.folder.mkdir(parents=True)
            yield JobResult(RunStatus.KILLED, "interrupted", None, interrupted=True)

    launcher = replace(launchers.load(""), execute=execute)
    monkeypatch.setattr(launchers, "load", lambda _: launcher)
    with pytest.raises(KeyboardInterrupt):
        ConfigurationRuns(three_runs).perform()
    assert [paths.repetition for paths in started] == [1]
    assert '"reason": "interrupted"' in started[0].run_file.read_text()
