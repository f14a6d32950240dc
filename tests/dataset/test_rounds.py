"""Ratios pair runs of one round: those that saw the same machine, and no others."""

from collections.abc import Callable

import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.study.plan import Plan
from tests.evidence_factory import Planned, change, configuration, write_study

ONE, TWO, THREE = (configuration(batch_per_device=batch) for batch in (4, 8, 16))
#: Three configurations, a run of each in every minute of the first three hours of a day.
MINUTES = {ONE.identity: 0, TWO.identity: 1, THREE.identity: 2}
#: Writes when a run began.
Begin = Callable[[str, int, str], None]


@pytest.fixture
def plan(paths: StudyPaths) -> Plan:
    return write_study(paths, [Planned(ONE), Planned(TWO), Planned(THREE)])


@pytest.fixture
def begin(paths: StudyPaths, plan: Plan) -> Begin:
    def write(identity: str, repetition: int, time: str) -> None:
        change(paths.configuration(identity).run(repetition), started=f"2024-04-{time}:00+00:00")

    for identity, minute in MINUTES.items():
        for repetition in (1, 2, 3):
            write(identity, repetition, f"01T{9 + repetition:02d}:{minute:02d}")
    return write


def rounds(dataset: Dataset, identity: str) -> list[int | None]:
    numbers = dataset.select_runs(identity)["round"].astype(object)
    return numbers.where(numbers.notna(), None).tolist()


def messages(dataset: Dataset) -> list[str]:
    about_rounds = dataset.diagnostics[dataset.diagnostics["subject"] == "round"]
    return [f"{run.repetition}: {run.message.split(': ratios')[0]}" for run in about_rounds.itertuples()]


@pytest.mark.parametrize(
    "begins",
    [{ONE: "08T12:00", TWO: "08T12:01", THREE: "08T12:02"}, {THREE: "01T12:45"}],
    ids=["interruption between rounds", "pause of less than an hour"],
)
def test_what_separates_no_run_from_its_round(paths, begin, begins):
    """However close together the others are: one run may wait for a quiet machine, or last longer."""
    for requested, time in begins.items():
        begin(requested.identity, 3, time)
    dataset = collect(paths)
    assert messages(dataset) == []
    assert rounds(dataset, ONE.identity) == rounds(dataset, THREE.identity) == [1, 2, 3]


def test_a_run_after_an_interruption_in_its_round_is_in_none(paths, begin, snapshot):
    begin(THREE.identity, 3, "08T12:02")
    dataset = collect(paths)
    assert rounds(dataset, THREE.identity) == [1, 2, None]
    assert rounds(dataset, ONE.identity) == rounds(dataset, TWO.identity) == [1, 2, 3]
    assert messages(dataset) == snapshot
    [row] = dataset.configurations[dataset.configurations["identity"] == THREE.identity].itertuples()
    assert row.throughput_low < row.throughput


def test_runs_of_another_week_make_no_ratio_with_those_of_today(paths, begin):
    for repetition in (1, 2, 3):
        begin(ONE.identity, repetition, f"0{repetition + 1}T10:00")
    dataset = collect(paths)
    assert rounds(dataset, ONE.identity) == [None] * 3
    ratios = dataset.configurations.set_index("identity").loc[[TWO.identity, THREE.identity]]
    assert ratios["speedup_low"].isna().all()
    assert ratios["baseline_verdict"].isna().all()


def test_a_run_that_claims_the_round_of_another_does_not_count(paths, begin):
    change(paths.configuration(TWO.identity).run(1), round=2)
    runs = collect(paths).runs
    outcomes = runs[runs["identity"] == TWO.identity].set_index("repetition")["outcome"]
    assert outcomes.tolist() == ["failed", "completed", "completed"]
