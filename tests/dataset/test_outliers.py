import pytest

from dlperf_study.dataset.dataset import collect
from tests.evidence_factory import Planned, Recipe, configuration, write_plan, write_run

ASKED = configuration(repetitions=3)
FAST = Recipe(noise=0.001)
BUSY = {"busy_cores": 1.5}


def outliers_of(paths, *recipes):
    """Write one run per recipe, and return the diagnostics that call a run an outlier."""
    for repetition, recipe in enumerate(recipes, 1):
        write_run(paths, ASKED, repetition, recipe)
    write_plan(paths, [Planned(ASKED)])
    diagnostics = collect(paths).diagnostics
    return diagnostics[diagnostics["message"].str.startswith("outlier")]


def test_a_slow_run_beside_background_load_is_an_outlier_with_that_cause(paths, snapshot):
    slow = Recipe(noise=0.001, compute_seconds=0.1, **BUSY)
    [outlier] = outliers_of(paths, FAST, FAST, slow).itertuples()
    assert (outlier.subject, outlier.severity, outlier.configuration_id) == (
        "throughput",
        "warning",
        ASKED.configuration_id,
    )
    assert outlier.repetition == 3
    assert outlier.message == snapshot


@pytest.mark.parametrize(
    ("others", "seconds"),
    [
        # Within 5 % of the slowest undisturbed run.
        ([FAST, FAST], 0.083),
        # Not below the slowest undisturbed run.
        ([FAST, Recipe(noise=0.001, compute_seconds=0.12)], 0.1),
        # One undisturbed run tells nothing of how runs differ.
        ([FAST], 0.2),
        # Every run has the cause.
        ([Recipe(noise=0.001, **BUSY), Recipe(noise=0.001, **BUSY)], 0.2),
        # The slow run is not the one with the cause.
        ([FAST, FAST, FAST, Recipe(noise=0.001, compute_seconds=0.2)], 0.08),
    ],
)
def test_a_disturbed_run_that_is_not_slower_than_the_others_is_no_outlier(paths, others, seconds):
    disturbed = Recipe(noise=0.001, compute_seconds=seconds, **BUSY)
    assert outliers_of(paths, *others, disturbed).empty
