"""Sentences on waiting and on the quality of runs, against the constructed studies they are made from."""

import re

import pytest

from dlperf_study.analysis.statistics import Estimate
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.paths import StudyPaths
from dlperf_study.report import sentences
from dlperf_study.report.sentences.step_sentences import _counted, dominant_factor
from dlperf_study.report.sentences.waits import Wait
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, write_titled

ONE, TWO = (configuration(devices_per_node=count) for count in (1, 2))


def waiting(paths: StudyPaths, *input_seconds: float) -> Dataset:
    """Return a study of configurations on one device that wait so long for each batch."""
    planned = []
    for seed, seconds in enumerate(input_seconds):
        queued = configuration(data_source="python_queue", seed=seed)
        planned.append(Planned(queued, Recipe(0.1, 0.0, input_seconds=seconds)))
    return write_titled(paths, planned)


def test_exposed_communication_is_a_share_of_the_step_with_its_interval(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(ONE, ALONE), Planned(TWO, TOGETHER)])
    first = sentences.communication(dataset).sentences[0]
    match = re.fullmatch(
        r"ResNet-50 on 2 devices waits for gradients in (\S+)\u202f% \[(\S+), (\S+)\] of a step: "
        r"(\S+) ms \[\S+, \S+\] of (\S+) ms \[\S+, \S+\]\.",
        first,
    )
    assert match, first
    share, low, high, exposed, step = map(float, match.groups())
    assert low < share < high
    assert share == pytest.approx(100 * exposed / step, rel=0.02)
    assert share == pytest.approx(100 * 0.024 / 0.104, rel=0.05)


def test_what_cant_be_told_from_nothing_is_no_waiting(paths: StudyPaths) -> None:
    noisy = Recipe(0.08, 0.0001, noise=0.2)
    dataset = write_titled(paths, [Planned(ONE, ALONE), Planned(TWO, noisy)])
    first = sentences.communication(dataset).sentences[0]
    assert first.startswith("These runs can't tell whether ResNet-50 on 2 devices waits for gradients: ")
    assert not any("is waiting for gradients" in text for text in sentences.scaling(dataset).sentences)


def test_single_devices_exchange_nothing(paths: StudyPaths) -> None:
    assert sentences.communication(write_titled(paths, [Planned(ONE, ALONE)])).sentences == (
        "No configuration exchanges gradients: nothing waits for them.",
    )


def test_what_waits_for_batches_is_told_from_what_hardly_does(paths: StudyPaths) -> None:
    more, less, *_ = sentences.communication(waiting(paths, 0.02, 0.0002, 0.0003)).sentences
    assert re.fullmatch(
        r"1 of 3 configurations waits for batches in 16\.\d+ \[.*\]\u202f% of a step: .*Seed 0\)\.", more
    )
    expected = "2 of 3 configurations wait for batches in less than 1\u202f% of a step: "
    assert less == f"{expected}ResNet-50 (Seed 1); ResNet-50 (Seed 2)."


def test_one_configuration_that_cant_be_told_is_in_the_singular() -> None:
    shares = (Estimate(0.2, 0.001, 9), Estimate(0.01, 0.005, 9))
    waits = [Wait(None, f"c{number}", "input_seconds", share) for number, share in enumerate(shares)]
    *_, unclear = _counted(waits, "batches")
    assert unclear.startswith("Whether 1 of 2 configurations waits for batches in more than 1\u202f% of a step")


def test_a_factor_without_an_interval_explains_nothing(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(ONE, ALONE), Planned(TWO, TOGETHER, runs=2)])
    rows = list(dataset.configurations.itertuples())
    assert [dominant_factor(row) for row in rows] == [None, None]


def test_runs_that_failed_and_configurations_without_a_number_are_counted(mixed: Dataset) -> None:
    shown = sentences.quality(mixed).sentences
    assert shown[0] == "11 of 13 runs completed; the others: 1 out of memory and 1 timeout."
    assert shown[1] == "3 of 7 configurations have no number: 1 can't run here and 2 have no completed run."


def test_one_run_and_one_configuration_have_sentences_in_the_singular(paths: StudyPaths) -> None:
    shown = sentences.quality(write_titled(paths, [Planned(ONE, ALONE, 1), Planned(TWO, TOGETHER, 0)])).sentences
    assert "The only run completed." in shown
    assert "1 of 2 configurations has no number: 1 has no completed run." in shown
    [steadiness] = [sentence for sentence in shown if "steady" in sentence]
    assert re.fullmatch(r"The only run is (steady|not steady|too short to tell whether it is steady)\.", steadiness)


def test_rounds_that_do_not_differ_are_said_not_to(paths: StudyPaths) -> None:
    planned = [Planned(configuration(seed=seed), Recipe(0.08)) for seed in range(4)]
    shown = sentences.quality(write_titled(paths, planned)).sentences
    assert "None of 3 rounds differs from the mean of all by more than chance." in shown
