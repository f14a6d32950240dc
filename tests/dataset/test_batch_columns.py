"""The largest batch of a configuration, from the records of its trials."""

from dataclasses import replace

import pytest

from dlperf_study.dataset.dataset import collect
from dlperf_study.report import tables
from dlperf_study.study.batch_search import trial
from tests.evidence_factory import Planned, Recipe, change, configuration, write_run, write_study

ASKED = configuration(batch_per_device=2)
TOO_LARGE = Recipe(status="out_of_memory", reason="MemoryError")


@pytest.fixture
def search(paths):
    """A study that searches up to 4, with the trials of a largest batch of 2."""
    plan = write_study(paths, [Planned(ASKED), Planned(replace(ASKED, batch_per_device=8))])
    write_searched(plan, paths)
    recipes = {4: TOO_LARGE, 2: Recipe(), 3: TOO_LARGE}
    return {batch: write_run(paths, trial(ASKED, batch), 1, recipe) for batch, recipe in recipes.items()}


def write_searched(plan, paths):
    """Write a plan in which the largest batch of every configuration is searched up to 4."""
    entries = tuple(entry.model_copy(update={"is_searched": True}) for entry in plan.entries)
    plan.changed(entries=entries, largest_batch=4).write(paths.plan_file)


def test_configurations_that_differ_in_their_batch_have_the_same_largest(paths, search):
    dataset = collect(paths)
    largest_batches = dataset.configurations[["largest_batch", "too_large_batch", "batch_probes"]]
    assert largest_batches.to_numpy().tolist() == [[2, 3, 3]] * 2
    assert not dataset.diagnostics["subject"].isin(["plan", "largest_batch"]).any()
    assert len(dataset.runs) == 6
    assert tables.memory(dataset).column("Largest batch") == ["2", "2"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"status": "failed", "reason": "ValueError: no"}, "the run with batch 3: failed: ValueError: no"),
        ({"code": "other"}, "at least 2, below 4, at most 1 short run left"),
        ({"seconds": "long"}, "seconds is 'long', which is not a number"),
    ],
)
def test_a_search_that_is_not_over_has_no_number_and_says_why(paths, search, values, message):
    change(search[3], **values)
    dataset = collect(paths)
    assert dataset.configurations["largest_batch"].isna().all()
    messages = dataset.diagnostics.loc[dataset.diagnostics["subject"] == "largest_batch", "message"]
    assert len(messages) == 2
    assert all(text.startswith("not found yet: at least 2, below 4") and message in text for text in messages)


def test_a_batch_that_fits_as_large_as_was_asked_has_none_that_does_not(paths):
    plan = write_study(paths, [Planned(ASKED)])
    write_searched(plan, paths)
    write_run(paths, trial(ASKED, 4), 1, Recipe())
    dataset = collect(paths)
    assert dataset.configurations[["largest_batch", "batch_probes"]].to_numpy().tolist() == [[4, 1]]
    assert dataset.configurations["too_large_batch"].isna().all()
    assert tables.memory(dataset).column("Largest batch") == ["≥ 4"]
