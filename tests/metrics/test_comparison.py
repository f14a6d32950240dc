"""Against the same numbers computed from the runs by hand."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import gmean, t, ttest_ind

from dlperf_study.core.errors import Severity
from dlperf_study.dataset.dataset import collect
from dlperf_study.metrics.comparison import (
    COMMUNICATION_ALONE,
    COMPUTATION,
    INPUT,
    NAMES_OF_PARTS,
    PARTS,
    SEVERAL,
    UNCLEAR,
    compare_with_itself,
    differences,
    excess,
    explaining_part,
    step_samples,
)
from dlperf_study.metrics.statistics import Estimate
from tests.evidence_factory import Planned, Recipe, configuration, write_study

TWO = {"devices_per_node": 2, "strategy": "all_reduce"}
PADDLE, TORCH = configuration(**TWO), configuration(framework="torch_ddp", **TWO)
SLOW = Recipe(0.080, 0.020, input_seconds=0.005)
FAST = replace(SLOW, compute_seconds=0.060, library="torch")


def compared(paths, torch=FAST, runs=3, reference=PADDLE, paddle_runs=3, **changes):
    """Collect PaddlePaddle as the reference of PyTorch; return the row of the latter and the dataset."""
    other = configuration(framework="torch_ddp", **(TWO | changes))
    planned = [Planned(PADDLE, SLOW, paddle_runs, reference=PADDLE), Planned(other, torch, runs, reference=reference)]
    write_study(paths, planned)
    dataset = collect(paths)
    return dataset.configurations.set_index("configuration_id").loc[other.configuration_id], dataset


def by_hand(dataset, framework, column):
    return dataset.runs.loc[dataset.runs["framework"] == framework, column].tolist()


def t_interval(values):
    return t.interval(0.95, len(values) - 1, np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values)))


def test_ratio_and_differences_are_made_within_rounds_and_the_reference_is_itself_exactly(paths):
    row, dataset = compared(paths)
    own, other = (by_hand(dataset, name, "throughput") for name in ("torch_ddp", "paddle_collective"))
    assert row.reference_id == PADDLE.configuration_id
    assert row.reference_throughput == pytest.approx(gmean(other))
    assert row.relative_throughput == pytest.approx(gmean(own) / gmean(other))
    ends = (row.relative_throughput_low, row.relative_throughput_high)
    assert ends == pytest.approx(tuple(np.exp(t_interval(np.log(own) - np.log(other)))))
    assert row.significance == "faster"
    for part in PARTS:
        own, other = (np.array(by_hand(dataset, name, part)) for name in ("torch_ddp", "paddle_collective"))
        name = part.replace("_seconds", "_difference_seconds")
        assert row[name] == pytest.approx(np.mean(own - other)), part
        assert (row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(t_interval(own - other)), part
    reference = dataset.configurations.set_index("configuration_id").loc[PADDLE.configuration_id]
    assert (reference.is_reference, reference.relative_throughput) == (True, 1.0)
    for name in ("step_difference_seconds", "step_difference_seconds_low", "step_difference_seconds_high"):
        assert reference[name] == 0.0


def test_what_computes_faster_lies_in_the_computation_and_what_waits_longer_in_the_exchange(paths, tmp_path):
    assert compared(paths)[0].largest_difference == COMPUTATION
    row, _ = compared(type(paths)(tmp_path / "another"), replace(SLOW, exposed_communication_seconds=0.060))
    assert (row.significance, row.largest_difference) == ("slower", COMMUNICATION_ALONE)
    row, _ = compared(type(paths)(tmp_path / "waiting"), replace(SLOW, input_seconds=0.060))
    assert (row.significance, row.largest_difference) == ("slower", INPUT)


def test_two_runs_have_a_ratio_and_differences_but_no_interval_and_no_verdict(paths):
    row, _ = compared(paths, runs=2)
    assert row[["relative_throughput", "step_difference_seconds", "compute_difference_seconds"]].notna().all()
    missing = ["relative_throughput_low", "significance", "step_difference_seconds_low", "largest_difference"]
    assert row[missing].isna().all()


def test_alike_within_their_noise_they_are_not_distinguishable_and_nothing_explains_it(paths):
    row, _ = compared(paths, replace(SLOW, noise=0.05), seed=1)
    assert row.significance in ("equal", "no significant difference")
    assert pd.isna(row.largest_difference)


@pytest.mark.parametrize(
    "changes",
    [{"paddle_runs": 0}, {"torch": Recipe(parameters=999_999)}],
    ids=["no completed run", "another number of parameters"],
)
def test_a_reference_that_tells_nothing_is_one_error(paths, changes, snapshot):
    row, dataset = compared(paths, **changes)
    about = dataset.diagnostics[dataset.diagnostics["subject"] == "relative_throughput"]
    [diagnostic] = about.itertuples()
    assert (diagnostic.configuration_id, diagnostic.severity) == (row.name, Severity.ERROR)
    assert diagnostic.message == snapshot
    assert row[["relative_throughput", "significance", "step_difference_seconds"]].isna().all() == (
        "paddle_runs" in changes
    )


def test_without_references_nothing_is_compared_and_nothing_complained_of(paths):
    write_study(paths, [Planned(PADDLE), Planned(TORCH)])
    dataset = collect(paths)
    assert dataset.configurations[["reference_id", "relative_throughput", "significance"]].isna().all(axis=None)
    assert not dataset.configurations["is_reference"].any()
    assert "relative_throughput" not in set(dataset.diagnostics["subject"])


def test_steps_of_other_global_batches_are_not_compared(paths):
    row, _ = compared(paths, batch_per_device=16)
    assert row.relative_throughput > 0
    assert (
        row[["step_difference_seconds", "exposed_communication_difference_seconds", "largest_difference"]].isna().all()
    )


#: Verdict, intervals of the differences of computation and of communication, and what explains the verdict.
EXPLANATIONS = [
    ("faster", (-5, -4), (-1, 1), COMPUTATION),
    ("faster", (-1, 1), (-5, -4), COMMUNICATION_ALONE),
    ("faster", (-5, -4), (2, 3), COMPUTATION),
    ("slower", (4, 5), (1, 2), COMPUTATION),
    ("slower", (1, 2), (4, 5), COMMUNICATION_ALONE),
    ("slower", (3, 5), (2, 4), SEVERAL),
    ("slower", (-1, 5), (-1, 4), UNCLEAR),
    ("slower", (3, 5), (-1, 4), UNCLEAR),
    ("faster", (4, 5), (-6, 3), UNCLEAR),
    ("no significant difference", (-5, -4), (-1, 1), None),
    (None, (-5, -4), (-1, 1), None),
]


#: Of a part that took no time on either side.
NO_DIFFERENCE = Estimate(0.0, 0.0)


def compared_parts(computation, waiting, communication):
    """Return the differences of a step's parts, and the excess of each over each other."""
    parts = dict(zip(NAMES_OF_PARTS, (computation, waiting, communication), strict=True))
    excesses = {excess(a, b): parts[a].minus(parts[b]) for a, b in permutations(parts, 2)}
    return parts | excesses | {"step_seconds": computation}


def estimate(low, high):
    """Return an estimate with this interval, of so many runs that it is normal."""
    return Estimate((low + high) / 2, (high - low) / 2 / 1.96)


@pytest.mark.parametrize(("decided", "computation", "communication", "said"), EXPLANATIONS)
def test_a_part_explains_only_what_its_interval_can(decided, computation, communication, said):
    assert (
        explaining_part(decided, compared_parts(estimate(*computation), NO_DIFFERENCE, estimate(*communication)))
        == said
    )


def test_waiting_for_batches_explains_and_what_was_not_measured_explains_nothing():
    parts = compared_parts(estimate(-1, 1), estimate(4, 5), estimate(-1, 1))
    assert explaining_part("slower", parts) == INPUT
    assert explaining_part("slower", compared_parts(estimate(4, 5), estimate(4, 5), NO_DIFFERENCE)) == SEVERAL
    assert explaining_part("faster", {"exposed_communication_seconds": estimate(-5, -3)}) is None
    assert explaining_part("faster", compared_parts(*[Estimate(-4.0)] * 3)) is None
    without_input = {name: part for name, part in parts.items() if "input" not in name}
    assert explaining_part("slower", without_input) is None


def test_the_excess_is_how_much_more_the_computation_differs_than_the_exchange():
    runs = pd.DataFrame(
        {
            "configuration_id": ["torch", "paddle"] * 3 + ["torch", "unmeasured"],
            "step_seconds": 9.0,
            "broken_down_step_seconds": [9.0] * 6 + [np.nan] * 2,
            "compute_seconds": [4.0, 3.0, 5.0, 3.5, 7.0, 4.0, np.nan, np.nan],
            "input_seconds": [0.0] * 6 + [np.nan] * 2,
            "exposed_communication_seconds": [1.0, 0.5, 3.0, 0.75, 2.0, 0.0, 9.0, 9.0],
        }
    )
    samples = step_samples(runs, None)
    measured = differences(samples, "torch", "paddle")
    of_computation = measured[excess("compute_seconds", "exposed_communication_seconds")]
    expected = ttest_ind([3.0, 2.0, 5.0], [2.5, 2.75, 4.0], equal_var=False)
    assert of_computation.mean == pytest.approx(10 / 3 - 9.25 / 3)
    assert of_computation.p_value() == pytest.approx(expected.pvalue)
    assert set(differences(samples, "torch", "unmeasured")) == {"step_seconds", "exposed_communication_seconds"}


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_what_is_compared_with_itself_differs_by_nothing_exactly(runs):
    assert compare_with_itself(runs) == Estimate(0.0, None if runs < 3 else 0.0, runs - 1, runs)


@pytest.mark.parametrize(("difference", "explained"), [(-0.1, COMMUNICATION_ALONE), (0.0, SEVERAL), (0.1, COMPUTATION)])
def test_parts_of_exactly_equal_size_explain_together(difference, explained):
    parts = compared_parts(estimate(4, 5), NO_DIFFERENCE, estimate(4, 5))
    parts[excess("compute_seconds", "exposed_communication_seconds")] = Estimate(difference, 0.0, 9)
    parts[excess("exposed_communication_seconds", "compute_seconds")] = Estimate(-difference, 0.0, 9)
    assert explaining_part("slower", parts) == explained


def test_a_straggler_on_either_side_leaves_it_undecided(paths):
    row, _ = compared(paths, replace(FAST, rank_advantage=0.4))
    assert (row.significance, row.largest_difference) == ("faster", UNCLEAR)
