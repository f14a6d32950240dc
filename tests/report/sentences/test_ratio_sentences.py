"""Sentences on ratios against the constructed studies they are made from."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.comparison import EQUAL, FASTER, NOT_DISTINGUISHABLE
from dlperf_study.metrics.statistics import CONFIDENCE, Estimate
from dlperf_study.report import sentences
from dlperf_study.report.results import results
from dlperf_study.report.sentences.names import MOST_SENTENCES, Names, PageSentences, together
from dlperf_study.report.tables.answers import comparison
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
        r"(\S+) instead of (\S+) samples/s; (\S+)\u202f% \[(\S+), (\S+)\] of a step is waiting for "
        r"gradients\."
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


def series(*seconds_together: float) -> Dataset:
    """Return a study of as many series on 1 and 2 devices, whose steps on 2 devices take so long."""
    planned = []
    for seed, seconds in enumerate(seconds_together):
        one, two = (configuration(devices_per_node=count, seed=seed) for count in (1, 2))
        planned += [Planned(one, ALONE, baseline=one), Planned(two, Recipe(seconds, 0.001), baseline=one)]
    return study(*planned)


#: Studies of which something, or nothing, can be concluded: the page, and the study.
PAGES: dict[str, tuple[str, Callable[[], Dataset]]] = {
    "one series": ("scaling", two_devices),
    "an impossible speedup": ("scaling", lambda: two_devices(Recipe(computation_seconds=0.01, exposed_seconds=0.001))),
    "many, one of them impossible": ("scaling", lambda: series(0.08, 0.08, 0.09, 0.1, 0.01)),
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


def test_a_selection_without_its_reference_says_so_and_not_that_none_is_declared():
    dataset = frameworks(0.05)
    alone = dataset.only(dataset.configurations[~dataset.configurations["is_reference"]])
    [sentence] = sentences.comparison(alone).sentences
    assert "not selected" in sentence
    assert comparison(alone).empty == sentence
    assert sentences.comparison(two_devices()).sentences == (comparison(two_devices()).empty,)


def test_a_doubtful_ratio_refers_to_its_diagnostic_whatever_its_verdict():
    dataset = two_devices(Recipe(computation_seconds=0.01, exposed_seconds=0.001))
    verdicts = dataset.configurations["baseline_verdict"]
    for word in (EQUAL, NOT_DISTINGUISHABLE, FASTER):
        changes = {"baseline_verdict": verdicts.mask(verdicts.notna(), word), "speedup_equal_within": 0.1}
        rows = dataset.configurations.assign(**changes)
        serious, ratio = sentences.scaling(replace(dataset, configurations=rows)).sentences[:2]
        assert serious.startswith("The speedup is 7.28 times linear on 2 devices, over 1 device. Is the batch size")
        assert serious.endswith("Do not trust the speedup and efficiency of ResNet-50 on 2 devices.")
        assert ratio.endswith("; (!) see above.")


@pytest.mark.parametrize("page", ["summary", "scaling", "communication", "comparison"])
def test_with_fewer_than_three_runs_nothing_is_concluded(page, snapshot):
    shown = getattr(sentences, page)(two_devices(runs=2)).sentences
    assert shown[0] == snapshot
    assert not any(" times [" in text for text in shown)


def test_each_of_several_reasons_stands_behind_the_configurations_that_have_it():
    reference, failed = configuration(devices_per_node=2), Recipe(outcome="failed", reason="exit 1")
    planned = [Planned(reference, ALONE, reference=reference)]
    for seed, recipe, runs in ((1, ALONE, 2), (2, failed, 3), (3, failed, 3)):
        planned.append(Planned(configuration(devices_per_node=2, seed=seed), recipe, runs, reference=reference))
    [shown] = sentences.comparison(study(*planned)).sentences
    failures, too_few = shown.removeprefix("Nothing can be concluded on what is faster: ").split("); ")
    assert failures.startswith("Seed 2; Seed 3 (no run completed: failed")
    assert too_few == "Seed 1 (2 completed runs: an interval needs 3)."


def test_the_answers_are_in_the_order_of_the_questions():
    dataset = two_devices(questions=("quality", "scaling"))
    shown = sentences.summary(dataset).sentences
    assert "6 runs" in shown[0]
    assert " times [" in shown[-1]
    assert len(shown) <= MOST_SENTENCES


def test_sentences_are_text_and_no_markup():
    assert "&lt;b&gt;" in PageSentences(("<b>",), "<i>")._repr_html_()
    # What marks an answer is no letter of a name: it neither opens an element nor leaves one open.
    assert "<li>x and y</li>" in PageSentences(("\x02x and y",), "")._repr_html_()
    assert "<li>x and y</li>" in PageSentences(("x\x03 and y",), "")._repr_html_()
    assert "[1.55,\N{NO-BREAK SPACE}1.67] as" in PageSentences(("[1.55, 1.67] as",), "")._repr_html_()


def test_bounds_hold_all_true_values_at_once_as_often_as_they_claim():
    """Of 20 simulated means of 4 runs with standard error 1, all true values are inside in at least 95 % of cases."""
    generator, truths = np.random.default_rng(5), np.linspace(-3, 3, 20)
    inside = 0
    for _ in range(400):
        means = [Estimate.of(truth + 2 * generator.standard_normal(4)) for truth in truths]
        bounds = [mean.interval(together(CONFIDENCE, len(means))) for mean in means]
        low, high = min(bound.low for bound in bounds), max(bound.high for bound in bounds)
        inside += low <= truths[0] and truths[-1] <= high
    assert inside / 400 > 0.95


def test_no_sentence_prints_a_number_that_is_known_to_more_than_a_factor_of_ten():
    dataset, faster = two_devices(), "ResNet-50 trains faster on 2 devices than on 1 device, by an amount"
    for low, high, word, begin in ((1.2, 13, FASTER, faster), (0.2, 2.1, NOT_DISTINGUISHABLE, "ResNet-50 on 2")):
        rows = dataset.configurations.copy()
        rows.loc[rows["speedup_low"].notna(), ["speedup_low", "speedup_high", "baseline_verdict"]] = low, high, word
        vague = replace(dataset, configurations=rows)
        in_paper = next(line for line in results(vague).splitlines() if "ResNet" in line)
        for sentence in (sentences.scaling(vague).sentences[0], in_paper):
            assert sentence.startswith(begin)
            assert " times" not in sentence
            assert f"{low}" not in sentence


def test_a_series_has_the_name_that_tells_it_from_the_others_of_its_model():
    """Nothing where it is the only one, the levels of most nowhere, and what trains wherever that differs."""
    others = [("horovod_torch", "all_reduce", 8, "fp32"), ("paddle_collective", "data_parallel", 8, "fp16")]
    planned = [Planned(configuration(model="mobilenet_v2", batch_per_device=8), ALONE)]
    for framework, strategy, batch, precision in (*others, ("paddle_collective", "data_parallel", 8, "fp32")):
        named = {"framework": framework, "strategy": strategy, "batch_per_device": batch, "precision": precision}
        planned.append(Planned(configuration(**named), ALONE))
    dataset = study(*planned)
    names = [Names(dataset).of_series(row) for row in dataset.configurations.itertuples()]
    assert names == [
        "MobileNetV2",
        "ResNet-50 (Horovod (PyTorch))",
        "ResNet-50 (PaddlePaddle collective · fp16)",
        "ResNet-50 (PaddlePaddle collective)",
    ]
    assert "unless a name says otherwise: data parallel, fp32" in sentences.summary(dataset).conditions


@pytest.mark.parametrize(("busy", "remedy"), [(2.0, "Re-run on an idle machine"), (0.0, "Measure more runs")])
@pytest.mark.parametrize("page", ["summary", "quality"])
def test_what_to_do_about_runs_that_were_disturbed_or_imprecise_is_the_first_sentence(page, busy, remedy):
    together = replace(TOGETHER, busy_cores=busy, noise=0.02)
    dataset = two_devices(together, precision=0.001, questions=("quality", "scaling"))
    first, *further = getattr(sentences, page)(dataset).sentences
    assert first.startswith(remedy)
    assert ("AGAIN=1" in first) == bool(busy)
    assert ("3 of 6 runs" in first) == bool(busy)
    assert "asked for" in first
    assert not any("Measure" in text for text in further)
    without_remedy = getattr(sentences, page)(two_devices()).sentences[0]
    assert without_remedy.startswith(("ResNet-50 trains", "The step times of all 6"))
