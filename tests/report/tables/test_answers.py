"""Sentences against the studies they are made from."""

import re
from typing import Any

import pytest

from dlperf_study.paths import StudyPaths
from dlperf_study.report.tables import answers
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import write_titled

LABEL = "ResNet-50 · 2 devices, against PaddlePaddle collective"
SLOW = Recipe(0.080, 0.020)


def answer_of(paths: StudyPaths, torch: Recipe, runs: int = 3, paddle: Recipe = SLOW, **changes: Any) -> answers.Answer:
    ours = configuration(devices_per_node=2)
    other = configuration(framework="torch_ddp", devices_per_node=2)
    planned = [Planned(ours, paddle, reference=ours), Planned(other, torch, runs, reference=ours)]
    return answers.comparison(write_titled(paths, planned, **changes))


def sentences_of(answer: answers.Answer) -> str:
    [(label, sentences)] = answer.verdicts
    assert label == LABEL
    return sentences


@pytest.mark.parametrize(
    ("recipe", "ratio", "where"),
    [
        (Recipe(0.060, 0.020), "PyTorch DDP is 1.2", "is mostly in the computation."),
        (Recipe(0.080, 0.060), "PyTorch DDP is 0.7", "is mostly in the exposed exchange."),
        (Recipe(0.100, 0.040), "PyTorch DDP is 0.7", "is in several parts of the step."),
    ],
)
def test_a_decided_comparison_gives_ratio_interval_and_reason(
    paths: StudyPaths, recipe: Recipe, ratio: str, where: str
) -> None:
    sentences = sentences_of(answer_of(paths, recipe))
    assert ratio in sentences
    assert "× [" in sentences
    assert sentences.endswith(where)


def test_the_reference_is_named_with_its_absolute_throughput(paths: StudyPaths) -> None:
    assert re.match(r"It reaches 6[34]\d(\.\d)? \[.*\] samples/s\. ", sentences_of(answer_of(paths, SLOW)))


def test_what_the_runs_cant_tell_apart_is_not_ranked(paths: StudyPaths) -> None:
    sentences = sentences_of(answer_of(paths, SLOW, precision=0.001))
    assert "PyTorch DDP is not distinguishable from it (" in sentences
    assert "lies" not in sentences


def test_what_differs_by_less_than_matters_is_called_equal(paths: StudyPaths) -> None:
    sentences = sentences_of(answer_of(paths, SLOW))
    assert re.search(r"PyTorch DDP is as fast, within [01]\.\d+\u202f% \(", sentences)


def test_two_runs_are_not_ranked_and_say_why(paths: StudyPaths) -> None:
    sentences = sentences_of(answer_of(paths, Recipe(0.060, 0.020), runs=2))
    assert "but is not ranked: 2 completed runs: an interval needs 3." in sentences
    assert "faster" not in sentences


def test_without_runs_there_is_no_value(paths: StudyPaths) -> None:
    assert "PyTorch DDP has no value: not run yet." in sentences_of(answer_of(paths, SLOW, runs=0))


def test_a_failed_reference_is_the_answer_instead_of_a_comparison(paths: StudyPaths) -> None:
    sentences = sentences_of(answer_of(paths, SLOW, paddle=Recipe(outcome="timeout", reason="no end after 600 s")))
    assert sentences == (
        "No comparison, because the reference has no value: no run completed: timeout (no end after 600 s)."
    )


def test_the_preface_says_what_intervals_are_and_says_that_nothing_is_read(paths: StudyPaths) -> None:
    answer = answer_of(paths, SLOW, quick=True)
    note = answer.note
    assert "95 % t intervals over runs" in answer.preface
    assert "All verdicts on one reference are made together" in answer.preface
    assert "nothing is read, and no input pipeline is compared" in note
    assert "not for publication" in note


def test_a_study_without_references_says_so(paths: StudyPaths) -> None:
    answer = answers.comparison(write_titled(paths, [Planned(configuration(), SLOW)]))
    assert "declares no reference" in answer._repr_html_()


def test_how_far_to_believe_verdicts_is_above_them(paths: StudyPaths) -> None:
    shown = answer_of(paths, Recipe(0.060, 0.020))._repr_html_()
    assert shown.index("come from runs of the same round") < shown.index("as fast.")


def test_the_answer_is_escaped(paths: StudyPaths) -> None:
    failed = Recipe(outcome="failed", reason="<b>&")
    assert "&lt;b&gt;&amp;" in answer_of(paths, SLOW, paddle=failed)._repr_html_()
