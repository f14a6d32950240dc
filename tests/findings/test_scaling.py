"""Comparisons against the constructed studies that they are computed from."""

from dataclasses import replace
from typing import Any

import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings import pages, scaling
from dlperf_study.findings.communication import Loss
from dlperf_study.findings.quality import Implausible, NoConclusion
from dlperf_study.findings.reasons import NoResult, Reason
from dlperf_study.findings.scaling import Comparison, ComparisonCounts, NotCompared, NotComparedCounts, NothingCompared
from dlperf_study.metrics.comparison import EQUAL, FASTER, NO_SIGNIFICANT_DIFFERENCE, SLOWER
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import ALONE, TOGETHER, study

ONE, TWO = (configuration(devices_per_node=count) for count in (1, 2))
#: With 0.08 s of computation a step on two devices takes 0.104 s: 2 * 0.08 / 0.104 times as fast.
RATIO = 2 * 0.08 / 0.104
FAILED = Recipe(status="failed", reason="exit 1")


def two_devices(together: Recipe = TOGETHER, runs: int = 3, **changes: Any) -> Dataset:
    return study(Planned(ONE, ALONE, runs), Planned(TWO, together, runs), **changes)


def frameworks(*seconds: float, noise: float = 0.001, runs: int = 3, **changes: Any) -> Dataset:
    """Return a study of as many seeds, each compared with a first one of 0.08 s; 0.01 s of each step is exposed."""
    reference = configuration(devices_per_node=2)
    planned = [Planned(reference, Recipe(0.080, noise=noise), runs, reference=reference)]
    for seed, duration in enumerate(seconds, 1):
        other = configuration(devices_per_node=2, seed=seed)
        planned.append(Planned(other, Recipe(duration, noise=noise), runs, reference=reference))
    return study(*planned, **changes)


def series(*seconds_together: float) -> Dataset:
    """Return a study of as many series on 1 and 2 devices, whose steps on 2 devices take so long."""
    planned = []
    for seed, seconds in enumerate(seconds_together):
        one, two = (configuration(devices_per_node=count, seed=seed) for count in (1, 2))
        planned += [Planned(one, ALONE, baseline=one), Planned(two, Recipe(seconds, 0.001), baseline=one)]
    return study(*planned)


def kinds(findings: Any) -> list[type]:
    return [type(finding) for finding in findings]


def test_a_speedup_has_its_efficiency_and_its_exposed_communication():
    [comparison] = scaling.speedups(two_devices())
    assert isinstance(comparison, Comparison)
    assert (comparison.subject, comparison.baseline) == (TWO.configuration_id, ONE.configuration_id)
    assert comparison.significance == FASTER
    assert comparison.ratio.value == pytest.approx(RATIO, rel=0.02)
    assert comparison.efficiency.value == pytest.approx(RATIO / 2, rel=0.02)
    assert comparison.exposed.value == pytest.approx(0.024 / 0.104, rel=0.05)
    for number in (comparison.ratio, comparison.efficiency, comparison.exposed):
        assert number.low < number.value < number.high


@pytest.mark.parametrize(
    ("seconds", "changes", "significance", "ratio"),
    [
        (0.080, {}, EQUAL, 1),
        (0.120, {}, SLOWER, 0.09 / 0.13),
        (0.050, {}, FASTER, 0.09 / 0.06),
        (0.0801, {"noise": 0.05, "target_ci": 0.001}, NO_SIGNIFICANT_DIFFERENCE, 1),
    ],
)
def test_a_reference_is_compared_by_the_outcome_of_the_table(seconds, changes, significance, ratio):
    [comparison] = scaling.references(frameworks(seconds, **changes))
    assert isinstance(comparison, Comparison)
    assert comparison.significance == significance
    assert comparison.ratio.value == pytest.approx(ratio, rel=0.02)
    assert (comparison.efficiency, comparison.exposed) == (None, None)
    assert comparison.cause == ("computation" if significance in (FASTER, SLOWER) else None)


def test_of_many_comparisons_there_are_counts_and_the_two_largest():
    dataset = frameworks(*[0.05, 0.05, 0.04, 0.05], *[0.12] * 2, 0.08, runs=6)
    counts, *largest = scaling.lines(scaling.references(dataset), dataset, "reference")
    assert counts == ComparisonCounts("reference", 7, ((FASTER, 4), (SLOWER, 2), (EQUAL, 1)), 0, True)
    assert len(largest) == 2
    assert largest[0].ratio.value == pytest.approx(0.09 / 0.05, rel=0.02)


def test_an_implausible_ratio_is_in_no_other_count():
    dataset = series(0.08, 0.08, 0.09, 0.1, 0.01)
    first, counts, *largest = pages.scaling(dataset)
    assert isinstance(first, Implausible)
    assert first.columns == ("speedup", "efficiency")
    assert isinstance(counts, ComparisonCounts)
    assert (counts.total, counts.implausible, sum(count for _, count in counts.significances)) == (5, 1, 4)
    assert not any(comparison.is_doubtful for comparison in largest)


def test_a_doubtful_ratio_is_marked_whatever_its_outcome():
    dataset = two_devices(Recipe(compute_seconds=0.01, exposed_communication_seconds=0.001))
    significances = dataset.configurations["baseline_significance"]
    for significance in (EQUAL, NO_SIGNIFICANT_DIFFERENCE, FASTER):
        changes = {
            "baseline_significance": significances.mask(significances.notna(), significance),
            "speedup_equal_within": 0.1,
        }
        _, comparison = pages.scaling(replace(dataset, configurations=dataset.configurations.assign(**changes)))
        assert comparison.is_doubtful


def test_a_ci_without_1_and_no_difference_needs_the_correction():
    dataset = two_devices()
    significances = dataset.configurations["baseline_significance"]
    undecided = dataset.configurations.assign(
        baseline_significance=significances.mask(significances.notna(), NO_SIGNIFICANT_DIFFERENCE)
    )
    [before] = scaling.speedups(dataset)
    [after] = scaling.speedups(replace(dataset, configurations=undecided))
    assert (before.needs_correction, after.needs_correction) == (False, True)


def test_several_reasons_are_counted():
    reference = configuration(devices_per_node=2)
    planned = [Planned(reference, ALONE, reference=reference)]
    for seed, recipe, runs in ((1, ALONE, 2), (2, FAILED, 3), (3, FAILED, 3)):
        planned.append(Planned(configuration(devices_per_node=2, seed=seed), recipe, runs, reference=reference))
    dataset = study(*planned)
    [finding] = pages.comparison(dataset)
    reasons = ((None, Reason.NO_COMPLETED_RUN, 2), (None, Reason.TOO_FEW_RUNS, 1))
    assert finding == NotComparedCounts("reference", 3, 3, reasons)
    few, *failures = (comparison.no_result for comparison in scaling.references(dataset))
    assert few == NoResult(Reason.TOO_FEW_RUNS, count=2)
    assert failures == [NoResult(Reason.NO_COMPLETED_RUN)] * 2


def test_a_baseline_without_runs_is_named_as_what_lacks_them():
    [finding] = scaling.speedups(study(Planned(ONE, FAILED), Planned(TWO, TOGETHER)))
    assert isinstance(finding, NotCompared)
    assert (finding.no_result.reason, finding.no_result.role) == (Reason.NO_COMPLETED_RUN, "baseline")


def test_in_sequential_order_there_is_no_comparison():
    blocks = Recipe(0.080, order="sequential")
    dataset = study(Planned(ONE, blocks), Planned(TWO, blocks))
    [finding] = scaling.speedups(replace(dataset, plan=dataset.plan.changed(order="sequential")))
    assert finding.no_result.reason == Reason.SEQUENTIAL_ORDER


def test_nothing_to_compare_has_its_reason():
    dataset = frameworks(0.05)
    alone = dataset.only(dataset.configurations[~dataset.configurations["is_reference"]])
    assert list(pages.comparison(alone)) == [NothingCompared("reference", is_declared=True)]
    alone = two_devices()
    for sections in (("scaling", "comparison"), ("scaling",)):
        chosen = replace(alone, plan=alone.plan.changed(sections=sections))
        expected = NothingCompared("reference", is_declared=False, can_add_section="comparison" not in sections)
        assert list(pages.comparison(chosen)) == [expected]
    assert list(pages.scaling(study(Planned(ONE, ALONE)))) == [NothingCompared("baseline", is_declared=False)]


def test_two_frameworks_with_one_program_are_not_compared_on_one_device():
    ddp, horovod = (configuration(framework=name) for name in ("torch_ddp", "horovod_torch"))
    planned = [Planned(ddp, Recipe(0.080), reference=ddp), Planned(horovod, Recipe(0.060), reference=ddp)]
    dataset = study(*planned)
    assert len(scaling.referring_rows(dataset)) == 1
    assert scaling.references(dataset) == []


@pytest.mark.parametrize("page", ["summary", "scaling", "communication", "comparison"])
def test_with_fewer_than_three_runs_nothing_is_concluded(page):
    findings = list(pages.PAGES[page](two_devices(runs=2)))
    assert NoConclusion in kinds(findings)
    assert Comparison not in kinds(findings)


def test_the_summary_answers_the_questions_in_their_order():
    dataset = two_devices(sections=("quality", "scaling"))
    assert kinds(pages.summary(dataset))[-1] is Comparison
    with_input = two_devices(sections=("scaling", "communication"))
    # The exposed communication is in the comparison.
    assert not any(getattr(finding, "loss", None) == Loss.COMMUNICATION for finding in pages.summary(with_input))
