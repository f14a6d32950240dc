"""Ratios pair runs of one round: those that saw the same machine, and no others."""

import json
from collections.abc import Callable

import pytest

from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.study.plan import Plan
from tests.evidence_factory import Planned, change, configuration, write_study

ONE, TWO, THREE = (configuration(batch_per_device=batch) for batch in (4, 8, 16))
#: Three configurations, a run of each in every minute of the first three hours of a day.
MINUTES = {ONE.configuration_id: 0, TWO.configuration_id: 1, THREE.configuration_id: 2}
#: Writes when a run began.
Begin = Callable[[str, int, str], None]


@pytest.fixture
def plan(paths: StudyPaths) -> Plan:
    return write_study(paths, [Planned(ONE), Planned(TWO), Planned(THREE)])


@pytest.fixture
def begin(paths: StudyPaths, plan: Plan) -> Begin:
    def write(configuration_id: str, repetition: int, time: str) -> None:
        change(paths.configuration(configuration_id).run(repetition), started=f"2024-04-{time}:00+00:00")

    for configuration_id, minute in MINUTES.items():
        for repetition in (1, 2, 3):
            write(configuration_id, repetition, f"01T{9 + repetition:02d}:{minute:02d}")
    return write


def rounds(dataset: Dataset, configuration_id: str) -> list[int | None]:
    numbers = dataset.select_runs(configuration_id)["round"].astype(object)
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
        begin(requested.configuration_id, 3, time)
    dataset = collect(paths)
    assert messages(dataset) == []
    assert rounds(dataset, ONE.configuration_id) == rounds(dataset, THREE.configuration_id) == [1, 2, 3]


def test_a_run_after_an_interruption_in_its_round_is_in_none(paths, begin, snapshot):
    begin(THREE.configuration_id, 3, "08T12:02")
    dataset = collect(paths)
    assert rounds(dataset, THREE.configuration_id) == [1, 2, None]
    assert rounds(dataset, ONE.configuration_id) == rounds(dataset, TWO.configuration_id) == [1, 2, 3]
    assert messages(dataset) == snapshot
    [row] = dataset.configurations[dataset.configurations["configuration_id"] == THREE.configuration_id].itertuples()
    assert row.throughput_low < row.throughput


def test_runs_of_another_week_make_no_ratio_with_those_of_today(paths, begin):
    for repetition in (1, 2, 3):
        begin(ONE.configuration_id, repetition, f"0{repetition + 1}T10:00")
    dataset = collect(paths)
    assert rounds(dataset, ONE.configuration_id) == [None] * 3
    ratios = dataset.configurations.set_index("configuration_id").loc[[TWO.configuration_id, THREE.configuration_id]]
    assert ratios["speedup_low"].isna().all()
    assert ratios["baseline_significance"].isna().all()


def test_a_run_that_claims_the_round_of_another_does_not_count(paths, begin):
    change(paths.configuration(TWO.configuration_id).run(1), round=2)
    runs = collect(paths).runs
    statuses = runs[runs["configuration_id"] == TWO.configuration_id].set_index("repetition")["status"]
    assert statuses.tolist() == ["failed", "completed", "completed"]


def test_runs_at_one_position_were_in_no_round_together(paths, begin):
    """One of the two records was changed; which of them, nothing tells."""
    taken = paths.configuration(TWO.configuration_id).run(2)
    position = json.loads(taken.run_file.read_text())["position"]
    change(paths.configuration(ONE.configuration_id).run(2), position=position)
    dataset = collect(paths)
    assert rounds(dataset, ONE.configuration_id) == rounds(dataset, TWO.configuration_id) == [1, None, 3]
    assert rounds(dataset, THREE.configuration_id) == [1, 2, 3]
    assert [message.partition(" position ")[0] for message in messages(dataset)] == ["2: it shares"] * 2
