import numpy as np
import pytest

from dlperf_study.core.errors import BaselineError
from dlperf_study.dataset.configuration_table import configurations_table
from dlperf_study.dataset.tables import frame_of_rows
from dlperf_study.metrics.columns import TableName
from dlperf_study.metrics.comparison import significances, throughput_ratio
from dlperf_study.metrics.statistics import Estimate, Interval, Sample, equal_within
from dlperf_study.study.grid import DENOMINATORS
from dlperf_study.study.plan import Entry
from tests.evidence_factory import configuration
from tests.simulations.coverage import plan_of
from tests.simulations.sessions import run_row

ONE, TWO, OTHER = configuration(), configuration(devices_per_node=2), configuration(framework="torch_ddp")
#: Of logs that print whole numbers.
EQUAL = Sample(np.array([100.0, 100.0, 100.0]))
ENTRY = Entry(configuration=TWO, baseline_id=ONE.configuration_id, reference_id=OTHER.configuration_id)


def throughputs(*values):
    return Sample(np.array(values, dtype=float), np.arange(1.0, len(values) + 1))


def test_a_ratio_is_that_of_geometric_means_and_each_kind_has_its_denominator():
    ratio = throughput_ratio(
        ENTRY,
        "baseline",
        {TWO.configuration_id: throughputs(150, 180, 190), ONE.configuration_id: throughputs(90, 100, 120)},
    )
    ratios = np.array([150 / 90, 180 / 100, 190 / 120])
    assert ratio.factor == pytest.approx(ratios.prod() ** (1 / 3))
    assert ratio.error == pytest.approx(np.log(ratios).std(ddof=1) / np.sqrt(3))
    known = {
        TWO.configuration_id: throughputs(180),
        ONE.configuration_id: throughputs(100),
        OTHER.configuration_id: throughputs(90),
    }
    assert [throughput_ratio(ENTRY, kind, known).factor for kind in DENOMINATORS] == pytest.approx([1.8, 2.0])


def test_too_few_runs_give_no_interval_and_a_denominator_against_itself_is_exactly_one():
    ratio = throughput_ratio(
        ENTRY, "baseline", {TWO.configuration_id: throughputs(180, 180), ONE.configuration_id: throughputs(90, 90, 90)}
    )
    assert ratio.factor == pytest.approx(2.0)
    assert ratio.interval() is None
    ratio = throughput_ratio(
        Entry(configuration=ONE, baseline_id=ONE.configuration_id),
        "baseline",
        {ONE.configuration_id: throughputs(90, 100, 120)},
    )
    assert ratio.mean == 0.0
    assert ratio.factor_interval() == Interval(1.0, 1.0)


@pytest.mark.parametrize("kind", DENOMINATORS)
def test_without_a_measured_denominator_there_is_no_ratio(kind, refused):
    with refused(BaselineError):
        throughput_ratio(ENTRY, kind, {TWO.configuration_id: throughputs(180)})


#: Mean and standard error of the logarithm of a ratio, and what is said of it alone.
ALONE = [
    (0.10, 0.01, "faster"),
    (-0.10, 0.01, "slower"),
    (0.01, 0.01, "equal"),
    (0.05, 0.03, "no significant difference"),
    (0.05, None, None),
]


@pytest.mark.parametrize(("mean", "error", "word"), ALONE)
def test_a_ratio_is_ranked_called_equal_or_left_open(mean, error, word):
    [significance] = significances({"a": Estimate(mean, error, 9)}).values()
    assert significance.word == word
    assert (significance.equal_within is None) == (error is None)


def test_what_is_equal_depends_on_how_near_is_wanted():
    ratio = {"a": Estimate(0.01, 0.01, 9)}
    assert significances(ratio, widest=0.01)["a"].word == "no significant difference"
    ratio = Estimate(0.01, 0.01, 9)
    bound = equal_within(ratio)
    assert significances({"a": ratio}, widest=bound)["a"].word == "equal"
    assert significances({"a": ratio}, widest=np.nextafter(bound, 0))["a"].word == "no significant difference"


@pytest.mark.parametrize("higher_by", [0, 1])
def test_runs_that_are_rounded_alike_have_no_verdict(higher_by):
    measured = {TWO.configuration_id: Sample(EQUAL.values + higher_by), ONE.configuration_id: EQUAL}
    [significance] = significances({"a": throughput_ratio(ENTRY, "baseline", measured)}).values()
    assert (significance.word, significance.equal_within) == (None, None)


def test_a_verdict_that_holds_alone_may_not_hold_among_many():
    barely = Estimate(0.10, 0.04, 9)
    assert significances({"a": barely})["a"].word == "faster"
    many = {str(position): barely for position in range(5)}
    assert {significance.word for significance in significances(many).values()} == {"no significant difference"}


@pytest.mark.parametrize(("baselines", "word"), [(1, "faster"), (2, "no significant difference")])
def test_verdicts_on_several_baselines_are_made_together(baselines, word):
    """Each ratio has a p-value of 3 %: enough for one verdict of a study, and not for each of two."""
    plan = plan_of(2 * baselines, 3, order_seed=0)
    entries = plan.entries
    grouped = []
    for position, entry in enumerate(entries):
        baseline = entries[position % baselines].configuration.configuration_id
        grouped.append(entry.model_copy(update={"baseline_id": baseline, "reference_id": None}))
    plan = plan.changed(entries=tuple(grouped))
    rows = []
    for entry in plan.entries:
        logarithms = [0.0] * 3 if entry.is_baseline else [0.1 - 0.0307, 0.1, 0.1 + 0.0307]
        for number, logarithm in enumerate(logarithms, start=1):
            rows.append(run_row(entry.configuration, number, np.exp(logarithm)))
    table, _ = configurations_table(plan, frame_of_rows(TableName.RUNS, rows), {})
    assert set(table["baseline_significance"].dropna()) == {word}
