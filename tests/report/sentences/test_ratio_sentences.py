"""Sentences on ratios against the constructed studies they are made from."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.comparison import EQUAL, FASTER, NOT_DISTINGUISHABLE, verdicts, verdicts_together
from dlperf_study.metrics.statistics import Estimate
from dlperf_study.report import sentences
from dlperf_study.report.sentences.names import MOST_SENTENCES, PageSentences, range_text
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, study

ONE, TWO = (configuration(devices_per_node=count) for count in (1, 2))
#: With 0.08 s of computation a step on two devices takes 0.104 s: 2 * 0.08 / 0.104 times as fast.
RATIO = 2 * 0.08 / 0.104


def two_devices(together: Recipe = TOGETHER, runs: int = 3, **changes: Any) -> Dataset:
    return study(Planned(ONE, ALONE, runs), Planned(TWO, together, runs), **changes)


def frameworks(*seconds: float, noise: float = 0.001, **changes: Any) -> Dataset:
    """Return a study of as many seeds, each compared with a first one of 0.08 s."""
    reference = configuration(devices_per_node=2)
    planned = [Planned(reference, Recipe(0.080, noise=noise), reference=reference)]
    for seed, duration in enumerate(seconds, 1):
        other = configuration(devices_per_node=2, seed=seed)
        planned.append(Planned(other, Recipe(duration, noise=noise), reference=reference))
    return study(*planned, **changes)


def test_a_speedup_has_its_interval_both_rates_and_what_a_step_waits_for():
    shown = sentences.scaling(two_devices())
    first = shown.sentences[0]
    expected = (
        r"ResNet-50 trains (\S+) times \[(\S+), (\S+)\] as fast on 2 devices as on 1 device "
        r"\(\S+\u202f% \[\S+, \S+\] of ideal\), "
        r"(\S+) instead of (\S+) samples/s; (\S+)\u202f% \[(\S+), (\S+)\] of a step is waiting for gradients\."
    )
    match = re.fullmatch(expected, first)
    assert match, first
    ratio, low, high, rate, baseline, share, *_ = map(float, match.groups())
    answers = re.findall("<b>(.*?)</b>", shown._repr_html_())
    assert [answer.partition(" [")[0] for answer in answers] == [f"{match[1]} times", f"{match[6]}\u202f%"]
    assert low < ratio < high
    assert ratio == pytest.approx(RATIO, rel=0.02)
    assert rate / baseline == pytest.approx(ratio, rel=0.02)
    assert share == pytest.approx(100 * 0.024 / 0.104, rel=0.05)


def of_blocks() -> Dataset:
    blocks = Recipe(0.080, order="blocks")
    dataset = study(Planned(ONE, blocks), Planned(TWO, blocks))
    return replace(dataset, plan=replace(dataset.plan, order="blocks"))


#: Studies of which something, or nothing, can be concluded: the page, and the study.
PAGES: dict[str, tuple[str, Callable[[], Dataset]]] = {
    "a part explains the efficiency": ("scaling", two_devices),
    "no part explains it": ("scaling", lambda: two_devices(Recipe(computation_seconds=0.1, exposed_seconds=0.025))),
    "an impossible speedup": ("scaling", lambda: two_devices(Recipe(computation_seconds=0.01, exposed_seconds=0.001))),
    "no run": ("summary", lambda: study(Planned(ONE, Recipe(outcome="failed", reason="exit 1"), runs=1))),
    "in blocks": ("scaling", of_blocks),
    "single devices": ("scaling", lambda: study(Planned(ONE, ALONE))),
    "equal": ("comparison", lambda: frameworks(0.080)),
    "undecided": ("comparison", lambda: frameworks(0.0801, noise=0.05, precision=0.001)),
    "slower": ("comparison", lambda: frameworks(0.120)),
    "many": ("comparison", lambda: frameworks(*[0.05] * 4, *[0.12] * 2, 0.08)),
    "many undecided": ("comparison", lambda: frameworks(*[0.0801] * 5, noise=0.05, precision=0.001)),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_its_study_shows(name, snapshot):
    page, dataset = PAGES[name]
    shown = getattr(sentences, page)(dataset())
    assert [*shown.sentences, shown.conditions] == snapshot


def test_a_ratio_that_differs_if_it_is_judged_alone_is_said_to_be_judged_together():
    dataset = two_devices()
    words = dataset.configurations["baseline_verdict"]
    undecided = words.mask(words.notna(), NOT_DISTINGUISHABLE)
    judged = replace(dataset, configurations=dataset.configurations.assign(baseline_verdict=undecided))
    assert not any("judged together" in shown for shown in sentences.scaling(dataset).sentences)
    assert "with these runs, judged together with the other ratios" in sentences.scaling(judged).sentences[0]


@pytest.mark.parametrize("page", ["summary", "scaling", "communication", "comparison"])
def test_with_fewer_than_three_runs_nothing_is_concluded(page, snapshot):
    shown = getattr(sentences, page)(two_devices(runs=2)).sentences
    assert shown[0] == snapshot
    assert not any(" times [" in text for text in shown)


def test_the_answers_are_in_the_order_of_the_questions():
    dataset = two_devices(questions=("quality", "scaling"))
    shown = sentences.summary(dataset).sentences
    assert "6 runs" in shown[0]
    assert " times [" in shown[-1]
    assert len(shown) <= MOST_SENTENCES


def test_sentences_are_text_and_no_markup():
    assert "&lt;b&gt;" in PageSentences(("<b>",), "<i>")._repr_html_()
    assert "[1.55,\N{NO-BREAK SPACE}1.67] as" in PageSentences(("[1.55, 1.67] as",), "")._repr_html_()


def test_words_of_one_statement_are_judged_together():
    """Each bound of equality holds in 95 % of cases; that all of many hold is said only of wider ones."""
    close = {f"c{number}": Estimate(0.0, 0.016, 4) for number in range(20)}
    words = {name: verdict.word for name, verdict in verdicts(close).items()}
    assert set(words.values()) == {EQUAL}
    assert set(verdicts_together(words, close).values()) == {NOT_DISTINGUISHABLE}
    assert verdicts_together({"a": FASTER}, {"a": Estimate(0.5, 0.01, 4)}) == {"a": FASTER}


def test_bounds_hold_all_true_values_at_once_as_often_as_they_claim():
    """Of 20 simulated means of 4 runs with standard error 1, all true values are inside in at least 95 % of cases."""
    generator, truths = np.random.default_rng(5), np.linspace(-3, 3, 20)
    inside = 0
    for _ in range(400):
        means = [Estimate.of(truth + 2 * generator.standard_normal(4)) for truth in truths]
        low, high = (float(end.replace("\u2212", "-")) for end in range_text(means, len(means)).strip("[]").split(", "))
        inside += low <= truths[0] and truths[-1] <= high
    assert inside / 400 > 0.95


def test_what_only_the_table_decides_is_not_called_undecided():
    """The nearest is equal as the table judges it alone, and not with the bounds of all at once."""
    dataset = frameworks(*[0.08] * 5, noise=0.02)
    bounds = dataset.configurations["relative_throughput_equal_within"].dropna()
    planned = replace(dataset.plan, precision=float(bounds.min()) * 1.01)
    is_equal = dataset.configurations["relative_throughput_equal_within"] <= planned.precision
    words = dataset.configurations["verdict"].mask(dataset.configurations["verdict"].notna(), NOT_DISTINGUISHABLE)
    words = words.mask(is_equal, EQUAL)
    judged = replace(dataset, plan=planned, configurations=dataset.configurations.assign(verdict=words))
    [last] = sentences.comparison(judged).sentences
    assert last.startswith("None of 5 ")
    assert re.search(r"alone, Seed [1-5] is equal within [0-9.]+\u202f%", last)


def test_a_range_keeps_to_the_verdict_and_is_wider_for_what_was_chosen_among_many():
    estimate = Estimate(1.0, 0.1, 9)
    alone, chosen = (range_text([estimate], total) for total in (1, 20))
    assert alone.startswith("1.00 [0.77, ")
    assert chosen.startswith("1.00 [0.59, ")
    ratios = [Estimate(-0.02, 0.01, 4), Estimate(-0.05, 0.01, 4)]
    assert range_text(ratios, 2, is_ratio=True, limits=(0.0, 1.0)).endswith(", 1.000]")
