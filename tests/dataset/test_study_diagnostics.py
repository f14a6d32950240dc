import re
from dataclasses import replace

import pytest

from dlperf_study.core.wording import throughput_text
from dlperf_study.dataset.dataset import collect
from dlperf_study.dataset.study_diagnostics import study_diagnostics
from tests.evidence_factory import Planned, Recipe, configuration, write_plan, write_run, write_study

ASKED = configuration()
SMOOTH = Recipe(noise=0.001)


@pytest.fixture
def diagnostics(paths):
    """Return a function that writes one run per recipe, and gives the diagnostics by subject."""

    def make(*recipes, planned=3):
        planned_runs = replace(ASKED, repetitions=planned)
        for repetition, recipe in enumerate(recipes, 1):
            write_run(paths, planned_runs, repetition, recipe)
        plan = write_plan(paths, [Planned(planned_runs)])
        return {diagnostic.subject: diagnostic for diagnostic in study_diagnostics(plan, collect(paths).runs)}

    return make


def test_runs_alike_raise_no_warning(diagnostics):
    assert diagnostics(SMOOTH, SMOOTH, SMOOTH) == {}


@pytest.mark.parametrize(
    "recipes", [[SMOOTH] * 4, [SMOOTH, SMOOTH, replace(SMOOTH, status="failed")]], ids=["more", "fewer"]
)
def test_more_or_fewer_runs_than_planned_are_diagnosed_and_none_is_an_error(diagnostics, recipes, snapshot):
    assert diagnostics()["runs_completed"].severity == "error"
    diagnostic = diagnostics(*recipes)["runs_completed"]
    assert diagnostic.severity == "warning"
    assert diagnostic.message == snapshot


@pytest.mark.parametrize(("completed", "is_said"), [(2, True), (0, False)])
def test_a_run_that_found_too_little_memory_is_missing_where_others_completed(diagnostics, completed, is_said):
    """What does not fit at all is a result, which another diagnostic says."""
    recipes = [SMOOTH] * completed + [replace(SMOOTH, status="out_of_memory")] * (3 - completed)
    assert ("runs_completed" in diagnostics(*recipes)) is is_said


def test_runs_that_are_in_no_round_of_a_study_of_rounds_are_diagnosed(paths, diagnostics, snapshot):
    recipes = [replace(SMOOTH, order=order) for order in ("sequential", "interleaved", "by hand", "sequential")]
    diagnostics(*recipes, planned=4)
    plan, runs = write_plan(paths, [Planned(replace(ASKED, repetitions=4))]), collect(paths).runs
    diagnostics_of_order = study_diagnostics(plan, runs)
    assert [(each.subject, each.configuration_id) for each in diagnostics_of_order] == [
        ("order", ASKED.configuration_id)
    ] * 2
    assert [each.message for each in diagnostics_of_order] == snapshot
    assert study_diagnostics(plan.changed(order="sequential"), runs) == []


def test_the_precision_that_a_study_asks_for_is_what_its_windows_must_show(paths):
    longer = replace(ASKED, measured_steps=100)
    for repetition in (1, 2, 3):
        write_run(paths, longer, repetition, Recipe(noise=0.03))
    plan = write_plan(paths, [Planned(longer)])
    assert set(collect(paths).runs["steadiness"]) == {"steady"}
    plan.changed(target_ci=0.005, max_repetitions=5).write(paths.plan_file)
    dataset = collect(paths)
    assert dataset.runs["steadiness"].isna().all()
    assert "steadiness" not in set(dataset.diagnostics["subject"])


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        ({"commit": "1" * 40}, "git_commit"),
        ({"cores": 8}, "cores"),
        ({"library_version": "3.0.1"}, "library_version"),
        ({"library_version": "3.0.1"}, "cache_key"),
        ({"host": "host-b"}, "host"),
    ],
)
def test_a_mixed_environment_is_diagnosed(diagnostics, change, subject):
    assert subject in diagnostics(SMOOTH, SMOOTH, replace(SMOOTH, **change))


def test_a_run_on_some_of_the_hosts_of_the_largest_is_fine(paths):
    two = configuration(nodes=2)
    hosts = {0: "host-a", 1: "host-b"}
    for repetition in (1, 2, 3):
        write_run(paths, ASKED, repetition, SMOOTH)
        run = write_run(paths, two, repetition, SMOOTH)
        for rank, host in hosts.items():
            log = run.rank_log(rank)
            log.write_text(log.read_text().replace('"host-a"', f'"{host}"'))
    plan = write_plan(paths, [Planned(ASKED), Planned(two)])
    runs = collect(paths).runs
    assert "host-a, host-b" in set(runs["host"])
    assert study_diagnostics(plan, runs) == []


def test_gpus_that_were_not_used_are_one_note(paths, diagnostics):
    diagnostics(SMOOTH, SMOOTH, SMOOTH)
    plan = write_plan(paths, [Planned(ASKED)]).changed(why_not_gpu="this machine has 2 × A100, but")
    notes = [each for each in study_diagnostics(plan, collect(paths).runs) if each.subject == "device"]
    assert [(note.severity, note.configuration_id) for note in notes] == [("note", None)]


@pytest.mark.parametrize(
    ("throughput", "text"), [(29.1, "29.10"), (26.371, "26.37"), (1234.5, "1234.50"), (0.012345, "0.01235")]
)
def test_throughputs_of_one_sentence_have_the_same_decimals(throughput, text):
    assert throughput_text(throughput) == text


@pytest.mark.parametrize(("exposed", "count"), [(0.03, 1), (0.01, 0)])
def test_an_exposed_communication_longer_than_the_exchange_alone_says_how_that_can_be(paths, exposed, count):
    write_study(paths, [Planned(configuration(devices_per_node=2), Recipe(exposed_communication_seconds=exposed), 3)])
    diagnostics = collect(paths).diagnostics
    notes = diagnostics.loc[diagnostics["subject"] == "exposed_communication_seconds", ["severity", "message"]]
    assert len(notes) == count
    for severity, message in notes.itertuples(index=False):
        assert severity == "note"
        exposed_ms, alone_ms = map(float, re.findall(r"([\d.]+) ms", message))
        assert (exposed_ms, alone_ms) == pytest.approx((30, 20), rel=0.1)
