"""Steadiness, drift, remedies and incomplete runs: what the runs show, and nothing that they can't decide."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings import pages, quality
from dlperf_study.findings.quality import Advice, BackgroundLoad, NotSteady, Runs, TargetMissed, Unmeasured
from dlperf_study.findings.reasons import Reason
from tests.evidence_factory import Planned, configuration
from tests.report.conftest import ALONE, TOGETHER, study

ONE, TWO = (configuration(devices_per_node=count) for count in (1, 2))


def three() -> Dataset:
    """Return three configurations with three runs each."""
    return study(*(Planned(configuration(seed=seed), ALONE, baseline=configuration(seed=seed)) for seed in (1, 2, 3)))


@pytest.mark.parametrize(("steady", "unsteady", "undecided"), [(9, 0, 0), (3, 0, 6), (2, 1, 6), (7, 2, 0)])
def test_runs_that_are_not_steady_are_counted(steady, unsteady, undecided):
    dataset = three()
    answers = ["steady"] * steady + ["not steady"] * unsteady + [None] * undecided
    runs = dataset.runs.assign(steadiness=pd.Series(answers, dataset.runs.index).astype("string"))
    findings = [each for each in quality.course(replace(dataset, runs=runs)) if isinstance(each, NotSteady)]
    assert findings == ([NotSteady(unsteady, steady + unsteady)] if unsteady else [])


@pytest.mark.parametrize("drift", [0.0, 0.1])
def test_the_drift_is_at_most_what_the_rounds_allow(drift):
    dataset = three()
    factors = 1 + drift * (dataset.runs["round"].astype(float) - 2)
    runs = dataset.runs.assign(throughput=dataset.runs["throughput"] * factors)
    [finding] = quality.drift(replace(dataset, runs=runs))
    assert (finding.rounds, finding.compared, finding.total) == (3, 3, 3)
    assert drift < finding.limit < drift + 0.1


def test_rounds_that_exclude_no_drift_have_no_finding():
    dataset = three()
    noise = np.exp(np.random.default_rng(0).normal(0, 2, len(dataset.runs)))
    runs = dataset.runs.assign(throughput=dataset.runs["throughput"] * noise)
    assert list(quality.drift(replace(dataset, runs=runs))) == []
    assert list(quality.drift(study(Planned(configuration(), ALONE)))) == []


@pytest.mark.parametrize("page", ["summary", "quality"])
def test_background_load_and_missed_targets_are_the_first_findings(page):
    def first(busy: float) -> list[object]:
        together = replace(TOGETHER, busy_cores=busy, noise=0.02)
        planned = (Planned(ONE, ALONE), Planned(TWO, together))
        return list(pages.PAGES[page](study(*planned, target_ci=0.001, sections=("quality", "scaling"))))

    load, missed, *_ = first(2.0)
    assert isinstance(load, BackgroundLoad)
    assert (load.runs, load.total, load.configurations) == (3, 6, 1)
    assert "RERUN=1" in load.command
    assert isinstance(missed, TargetMissed)
    assert missed.advice == Advice.IDLE_MACHINE
    missed, *_ = first(0.0)
    assert isinstance(missed, TargetMissed)
    assert (missed.total, missed.target, missed.advice) == (2, 0.001, Advice.MORE_ROUNDS)


def test_completed_runs_without_a_throughput_are_not_called_failed():
    dataset = study(Planned(ONE, ALONE), Planned(TWO, ALONE))
    rateless = replace(dataset, configurations=dataset.configurations.assign(throughput=np.nan))
    assert list(quality.unmeasured(rateless)) == [Unmeasured(2, 2, ((Reason.NO_THROUGHPUT, 2),))]


def test_runs_that_an_interrupted_study_did_not_begin_are_not_counted_as_completed():
    dataset = study(Planned(ONE, ALONE), Planned(TWO, ALONE, runs=1))
    expected = Runs(4, 6, ((Reason.NOT_RUN, 2),))
    assert list(pages.runs(dataset)) == [expected]
    assert expected in list(pages.quality(dataset))


def test_each_ending_and_each_reason_is_counted(mixed):
    ended, unmeasured = pages.runs(mixed)
    assert isinstance(ended, Runs)
    assert ended.completed + sum(count for _, count in ended.others) == ended.total
    assert isinstance(unmeasured, Unmeasured)
    counts = dict(unmeasured.reasons)
    assert counts == {Reason.OUT_OF_MEMORY: 1, Reason.NO_COMPLETED_RUN: 1, Reason.NOT_SUPPORTED: 1}
