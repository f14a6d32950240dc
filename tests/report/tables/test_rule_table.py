"""The rules of measuring: each is met by a careful study, and not met once that study breaks the rule."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dlperf_study.core.errors import RecordError
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import tables
from dlperf_study.report.tables import about_tables
from dlperf_study.report.tables.about_tables import MET, NOT_MET, NOT_RUN
from dlperf_study.selftest.result import Machine
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import study

ONE, TWO = (configuration(devices_per_node=count, measured_steps=120) for count in (1, 2))
SELF_TEST = "The self-test passed on the machine of the runs"


def careful(**changes: Any) -> Dataset:
    """Return a study of steady runs on an idle machine."""
    alone = Recipe(exposed_communication_seconds=0.0, noise=0.01)
    planned = [Planned(ONE, alone, runs=5), Planned(TWO, Recipe(noise=0.01), runs=5, baseline=ONE)]
    return study(*planned, **changes)


def results(dataset: Dataset) -> dict[str, tuple[str, str]]:
    return {row[0].text: (row[1].text, row[2].text) for row in tables.rules(dataset).rows}


def result(dataset: Dataset, words: str) -> tuple[str, str]:
    [found] = [found for rule, found in results(dataset).items() if words in rule]
    return found


def runs_with(**columns: Any) -> Callable[[Dataset], Dataset]:
    return lambda dataset: replace(dataset, runs=dataset.runs.assign(**columns))


def configurations_with(**columns: Any) -> Callable[[Dataset], Dataset]:
    return lambda dataset: replace(dataset, configurations=dataset.configurations.assign(**columns))


#: Words of a rule, what breaks it, and the number that the table then has.
_BROKEN = [
    ("baseline", configurations_with(speedup=np.nan), "0 of 1 speedup"),
    ("baseline", configurations_with(model=["resnet50", "vgg16"]), "0 of 1 speedup"),
    (
        "as its tests need",
        configurations_with(runs_counted=2),
        "at least 2 runs of each configuration, a CI needs 3",
    ),
    (
        "as its tests need",
        configurations_with(speedup_rounds_missing=2),
        "at least 5 runs of each configuration, 2 more needed",
    ),
    ("interleaved", runs_with(round=pd.NA), "0 of 10 runs"),
    ("95 % CI", configurations_with(speedup_low=np.nan), "2 of 2 throughputs and 0 of 1 speedup"),
    ("95 % CI", configurations_with(throughput_low=np.nan), "0 of 2 throughputs and 1 of 1 speedup"),
    (
        "as its tests need",
        runs_with(disturbed=True),
        "at least 5 runs of each configuration, 2 configurations with fewer than 3 undisturbed runs",
    ),
    (
        "background load",
        runs_with(disturbed=True),
        "background load in 10 of 10 runs; the numbers of 2 of 2 configurations include such runs",
    ),
    ("planned runs", configurations_with(runs_completed=2), "4 of 6 planned runs"),
    ("steady", runs_with(steadiness="not steady"), "10 of 10 runs not steady"),
    ("recorded", runs_with(cpu_model=pd.NA), "11 of 12 facts recorded, without CPU"),
    (
        "recorded",
        runs_with(library_version=["3.0.0", "3.0.1"] * 5),
        "12 of 12 facts recorded; different between runs: library version",
    ),
]


@pytest.mark.parametrize(("words", "change", "number"), _BROKEN)
def test_a_rule_is_met_until_it_is_broken(words, change, number):
    assert result(careful(), words)[0] == MET
    assert result(change(careful()), words) == (NOT_MET, number)


def test_there_are_at_most_ten_rules_and_a_careful_study_meets_them():
    answers = results(careful(target_ci=0.5, max_repetitions=9))
    assert len(answers) == 10
    assert {rule for rule, (answer, _) in answers.items() if answer != MET} == {SELF_TEST}


def test_the_target_is_met_if_every_configuration_reaches_it():
    assert not [rule for rule in results(careful()) if "narrow" in rule]
    assert result(careful(target_ci=0.5, max_repetitions=9), "narrow") == (MET, "2 of 2 configurations within ± 50 %")
    too_narrow = careful(target_ci=0.0002, max_repetitions=9)
    assert result(too_narrow, "narrow") == (NOT_MET, "0 of 2 configurations within ± 0.02 %")


@pytest.mark.parametrize(("passed", "answer"), [(True, MET), (False, NOT_MET), (None, NOT_RUN)])
def test_the_self_test_must_have_passed_on_the_machine_of_the_runs(passed, answer, monkeypatch):
    dataset = careful()
    run = dataset.runs.iloc[0]
    machine = Machine(run["host"], run["cpu_model"], int(run["cores"]) + (passed is None))
    ended = type("Result", (), {"machine": machine, "passed": bool(passed), "quick": False, "ended": "2026-01-01"})()
    monkeypatch.setattr(about_tables, "read_results", lambda: [ended])
    assert result(dataset, "self-test") == (answer, "1 of 1 machine" if passed else "0 of 1 machine")


def test_a_damaged_file_of_self_tests_is_named(monkeypatch):
    def damaged() -> None:
        raise RecordError("results.json: is no JSON")

    monkeypatch.setattr(about_tables, "read_results", damaged)
    assert result(careful(), "self-test") == (NOT_MET, "results.json: is no JSON")


def test_windows_that_decide_nothing_are_no_failure():
    undecided = careful().runs["steadiness"].where(careful().runs["repetition"] > 1)
    assert not [rule for rule in results(runs_with(steadiness=undecided)(careful())) if "steady" in rule]
    one_unsteady = undecided.where(careful().runs["repetition"] > 2, "not steady")
    assert result(runs_with(steadiness=one_unsteady)(careful()), "steady")[0] == NOT_MET


def test_rules_on_how_runs_were_measured_are_left_out_for_logs():
    dataset = careful()
    logs = replace(dataset, plan=dataset.plan.changed(ingested_from="logs", order=""))
    left_out = results(dataset).keys() - results(logs).keys()
    assert len(left_out) == 3
    assert all(any(words in rule for words in ("interleaved", "background load", "self-test")) for rule in left_out)


def test_a_study_without_a_throughput_has_no_rule():
    assert tables.rules(study(Planned(ONE, unsupported="no such device"))).is_empty


def test_a_study_of_one_configuration_needs_no_rounds_of_a_comparison():
    dataset = study(Planned(ONE, Recipe(noise=0.01), runs=5))
    assert result(dataset, "as its tests need")[0] == MET
