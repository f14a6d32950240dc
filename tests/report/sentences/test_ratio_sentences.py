"""Sentences on ratios against the constructed studies they are made from."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dlperf_study.analysis.comparison import EQUAL, FASTER, NOT_DISTINGUISHABLE, verdicts, verdicts_together
from dlperf_study.analysis.statistics import Estimate
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.paths import StudyPaths
from dlperf_study.report import sentences
from dlperf_study.report.sentences.names import range_text
from dlperf_study.report.sentences.page_sentences import MOST_SENTENCES, PageSentences
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, write_titled

ONE, TWO = (configuration(devices_per_node=count) for count in (1, 2))
#: With 0.08 s of computation a step on two devices takes 0.104 s: 2 * 0.08 / 0.104 times as fast.
RATIO = 2 * 0.08 / 0.104


def two_devices(paths: StudyPaths, together: Recipe = TOGETHER, runs: int = 3, **changes: Any) -> Dataset:
    return write_titled(paths, [Planned(ONE, ALONE, runs), Planned(TWO, together, runs)], **changes)


def frameworks(paths: StudyPaths, *seconds: float, noise: float = 0.001, **changes: Any) -> Dataset:
    """Return a study of as many seeds, each compared with a first one of 0.08 s."""
    reference = configuration(devices_per_node=2)
    planned = [Planned(reference, Recipe(0.080, noise=noise), reference=reference)]
    for seed, duration in enumerate(seconds, 1):
        other = configuration(devices_per_node=2, seed=seed)
        planned.append(Planned(other, Recipe(duration, noise=noise), reference=reference))
    return write_titled(paths, planned, **changes)


def test_a_speedup_has_its_interval_both_rates_and_what_a_step_waits_for(paths: StudyPaths) -> None:
    shown = sentences.scaling(two_devices(paths))
    first = shown.sentences[0]
    expected = (
        r"ResNet-50 trains (\S+) times \[(\S+), (\S+)\] as fast on 2 devices as on 1 device, "
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


def test_what_most_of_the_efficiency_is_lost_to_is_named(paths: StudyPaths) -> None:
    [loss] = [text for text in sentences.scaling(two_devices(paths)).sentences if "efficiency" in text]
    assert "most is lost to waiting for gradients (factor 0.7" in loss


def test_where_no_factor_is_below_all_others_none_is_named(paths: StudyPaths) -> None:
    both = Recipe(computation_seconds=0.1, exposed_seconds=0.025)
    assert not any("most is lost" in text for text in sentences.scaling(two_devices(paths, both)).sentences)


@pytest.mark.parametrize("page", ["summary", "scaling", "communication", "comparison"])
def test_with_fewer_than_three_runs_the_first_sentence_says_that_nothing_can_be_concluded(
    paths: StudyPaths, page: str
) -> None:
    shown = getattr(sentences, page)(two_devices(paths, runs=2))
    assert shown.sentences[0] == (
        "Nothing can be concluded: an interval needs 3 completed runs, and no configuration has them."
    )
    assert not any(" times [" in text for text in shown.sentences)


def test_without_a_completed_run_that_is_the_finding(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(ONE, Recipe(outcome="failed", reason="exit 1"), runs=1)])
    assert sentences.summary(dataset).sentences[0] == "Nothing can be concluded: no run completed (1 failed)."
    assert not any("no number" in sentence for sentence in sentences.summary(dataset).sentences)


def test_a_study_in_blocks_concludes_nothing_on_scaling_and_says_why(paths: StudyPaths) -> None:
    blocks = Recipe(0.080, order="blocks")
    dataset = write_titled(paths, [Planned(ONE, blocks), Planned(TWO, blocks)])
    [first, *_] = sentences.scaling(replace(dataset, plan=replace(dataset.plan, order="blocks"))).sentences
    assert first.startswith("Nothing can be concluded on scaling (a study in blocks has no interval of a ratio")


def test_what_is_equal_is_said_to_be_equal_and_within_what(paths: StudyPaths) -> None:
    [sentence] = sentences.comparison(frameworks(paths, 0.080)).sentences
    start = "ResNet-50 with Seed 1 trains as fast as with Seed 0 (2 devices), within "
    assert sentence.startswith(start), sentence


def test_what_cant_be_told_apart_is_not_called_faster(paths: StudyPaths) -> None:
    [sentence] = sentences.comparison(frameworks(paths, 0.0801, noise=0.05, precision=0.001)).sentences
    assert sentence.startswith("These runs can't tell whether ResNet-50 with Seed 1 trains as fast as with Seed 0")


def test_a_difference_to_a_reference_names_the_part_that_explains_it(paths: StudyPaths) -> None:
    [sentence] = sentences.comparison(frameworks(paths, 0.120)).sentences
    assert re.search(r"trains 0\.6\d+ times \[0\.6\d+, 0\.6\d+\] as fast as with Seed 0 \(2 devices\), ", sentence)
    assert sentence.endswith("; the difference is mostly in the computation.")


def test_many_comparisons_share_a_sentence_for_each_verdict(paths: StudyPaths) -> None:
    faster, slower, equal = [0.05, 0.05, 0.05, 0.05], [0.12, 0.12], [0.08]
    shown = sentences.comparison(frameworks(paths, *faster, *slower, *equal)).sentences
    assert [text.partition(" (")[0] for text in shown] == [
        "4 of 7 configurations train faster than their reference",
        "2 of 7 configurations train slower than their reference",
        "1 of 7 configurations trains as fast as its reference",
    ]
    assert shown[0].endswith(": Seed 1; Seed 2; Seed 3; and 1 more.")


def test_of_many_that_cant_be_told_apart_nothing_is_concluded(paths: StudyPaths) -> None:
    dataset = frameworks(paths, *[0.0801] * 5, noise=0.05, precision=0.001)
    [sentence] = sentences.comparison(dataset).sentences
    assert sentence.startswith("Nothing can be concluded on what is faster: none of 5 can be told from its reference")


def test_a_study_of_single_devices_says_that_nothing_scales(paths: StudyPaths) -> None:
    [sentence] = sentences.scaling(write_titled(paths, [Planned(ONE, ALONE)])).sentences
    assert "every configuration is its own baseline" in sentence


def test_the_answers_are_in_the_order_of_the_questions(paths: StudyPaths) -> None:
    dataset = two_devices(paths, questions=("quality", "scaling"))
    shown = sentences.summary(dataset).sentences
    assert shown[0] == "All 6 runs completed."
    assert " times [" in shown[-1]
    assert len(shown) <= MOST_SENTENCES


def test_sentences_are_text_and_no_markup() -> None:
    assert "&lt;b&gt;" in PageSentences(("<b>",), "<i>")._repr_html_()
    assert "[1.55,\N{NO-BREAK SPACE}1.67] as" in PageSentences(("[1.55, 1.67] as",), "")._repr_html_()


def test_the_conditions_are_one_line_with_what_is_varied(paths: StudyPaths) -> None:
    conditions = sentences.comparison(frameworks(paths, 0.080)).conditions
    owed = ("Measured on CPU (Constructed CPU)", "loopback", "fp32", "batch per device 32", "PaddlePaddle 3.0.0")
    owed += ("weak scaling", "varied: seed", "brackets and bars are 95 % intervals")
    assert [words for words in owed if words not in conditions] == []


def test_words_of_one_statement_are_judged_together() -> None:
    """Each bound of equality holds in 95 % of cases; that all of many hold is said only of wider ones."""
    close = {f"c{number}": Estimate(0.0, 0.016, 4) for number in range(20)}
    assert {verdict.word for verdict in verdicts(close).values()} == {EQUAL}
    assert set(verdicts_together(close).values()) == {NOT_DISTINGUISHABLE}
    assert verdicts_together({"a": Estimate(0.5, 0.01, 4)}) == {"a": FASTER}


def test_bounds_hold_all_true_values_at_once_as_often_as_they_claim() -> None:
    """Of 20 simulated means of 4 runs with standard error 1, all true values are inside in at least 95 % of cases."""
    generator, truths = np.random.default_rng(5), np.linspace(-3, 3, 20)
    inside = 0
    for _ in range(400):
        means = [Estimate.of(truth + 2 * generator.standard_normal(4)) for truth in truths]
        low, high = (float(end.replace("\u2212", "-")) for end in range_text(means, len(means)).strip("[]").split(", "))
        inside += low <= truths[0] and truths[-1] <= high
    assert inside / 400 > 0.95


def test_what_only_the_table_decides_is_not_called_undecided(paths: StudyPaths) -> None:
    """The nearest is equal as the table judges it alone, and not with the bounds of all at once."""
    dataset = frameworks(paths, *[0.08] * 5, noise=0.02)
    bounds = dataset.configurations["relative_throughput_equal_within"].dropna()
    planned = replace(dataset.plan, precision=float(bounds.min()) * 1.01)
    is_equal = dataset.configurations["relative_throughput_equal_within"] <= planned.precision
    words = dataset.configurations["verdict"].mask(dataset.configurations["verdict"].notna(), NOT_DISTINGUISHABLE)
    words = words.mask(is_equal, EQUAL)
    judged = replace(dataset, plan=planned, configurations=dataset.configurations.assign(verdict=words))
    [last] = sentences.comparison(judged).sentences
    assert last.startswith(
        "None of 5 configurations is shown to be faster or slower than its reference (all ratios together are within ["
    )
    assert re.search("; judged alone, Seed [1-5] is equal within [0-9.]+\u202f%", last)


def test_what_was_chosen_among_many_has_a_wider_range() -> None:
    estimate = Estimate(1.0, 0.1, 9)
    alone, chosen = (range_text([estimate], total) for total in (1, 20))
    assert alone.startswith("1.00 [0.77, ")
    assert chosen.startswith("1.00 [0.59, ")


def test_a_range_keeps_to_what_the_verdict_says() -> None:
    ratios = [Estimate(-0.02, 0.01, 4), Estimate(-0.05, 0.01, 4)]
    assert range_text(ratios, 2, is_ratio=True, limits=(0.0, 1.0)).endswith(", 1.000]")
