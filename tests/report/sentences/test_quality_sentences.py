"""Sentences on steadiness and drift: what the runs show, and nothing that they can't decide."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.sentences import quality_sentences
from tests.evidence_factory import Planned, configuration
from tests.report.conftest import ALONE, study


def three() -> Dataset:
    """Return three configurations with three runs each."""
    return study(*(Planned(configuration(seed=seed), ALONE, baseline=configuration(seed=seed)) for seed in (1, 2, 3)))


@pytest.mark.parametrize(
    ("steady", "unsteady", "undecided", "expected"),
    [
        (9, 0, 0, ["The step times of all 9 runs are steady."]),
        (3, 0, 6, []),
        (0, 0, 9, []),
        (2, 1, 6, ["1 of 9 runs is not steady."]),
        (7, 2, 0, ["2 of 9 runs are not steady."]),
    ],
)
def test_windows_that_decide_nothing_are_not_mentioned(steady, unsteady, undecided, expected):
    dataset = three()
    answers = ["steady"] * steady + ["not steady"] * unsteady + [None] * undecided
    runs = dataset.runs.assign(steadiness=pd.Series(answers, dataset.runs.index).astype("string"))
    assert list(quality_sentences.steadiness_sentences(replace(dataset, runs=runs))) == expected


@pytest.mark.parametrize("drift", [0.0, 0.1])
def test_the_drift_is_at_most_what_the_rounds_allow(drift):
    dataset = three()
    factors = 1 + drift * (dataset.runs["round"].astype(float) - 2)
    runs = dataset.runs.assign(throughput=dataset.runs["throughput"] * factors)
    [sentence] = quality_sentences.drift_sentences(replace(dataset, runs=runs))
    [percent] = re.findall(r"each of 3 rounds is within (\d+(?:\.\d+)?)\s%", sentence)
    assert 100 * drift < float(percent) < 100 * drift + 10


def test_rounds_that_exclude_no_drift_have_no_sentence():
    dataset = three()
    noise = np.exp(np.random.default_rng(0).normal(0, 2, len(dataset.runs)))
    runs = dataset.runs.assign(throughput=dataset.runs["throughput"] * noise)
    assert list(quality_sentences.drift_sentences(replace(dataset, runs=runs))) == []
    alone = study(Planned(configuration(), ALONE))
    assert list(quality_sentences.drift_sentences(alone)) == []
