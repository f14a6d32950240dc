"""What no interval shows, from constructed studies whose runs began at known times."""

from dataclasses import replace

import pytest

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.paths import StudyPaths
from dlperf_study.report import tables
from dlperf_study.report.tables import answers
from dlperf_study.report.tables.answers import comparison_notes
from tests.evidence_factory import Planned, Recipe, configuration
from tests.report.conftest import write_titled

BLOCKS = "one right after another"


def began(dataset: Dataset, order: list[tuple[str, int]]) -> Dataset:
    """Return the dataset with its runs, by framework and repetition, begun in this order."""
    places = [order.index(key) for key in zip(dataset.runs["framework"], dataset.runs["repetition"], strict=True)]
    return replace(
        dataset, runs=dataset.runs.assign(started=[f"2024-05-01T10:00:{place:02d}+00:00" for place in places])
    )


def both(paths: StudyPaths, devices: int = 1, slower: float = 1.25) -> Dataset:
    rates = {"torch_ddp": 0.080, "horovod_torch": 0.080 * slower}
    planned = [
        Planned(configuration(framework=name, devices_per_node=devices), Recipe(seconds, noise=0))
        for name, seconds in rates.items()
    ]
    return write_titled(paths, planned)


def test_runs_in_blocks_are_a_caution(paths: StudyPaths) -> None:
    order = [(name, run) for name in ("torch_ddp", "horovod_torch") for run in (1, 2, 3)]
    assert BLOCKS in " ".join(comparison_notes(began(both(paths), order)))


def test_runs_that_take_turns_are_none(paths: StudyPaths) -> None:
    order = [(name, run) for run in (1, 2, 3) for name in ("torch_ddp", "horovod_torch")]
    assert BLOCKS not in " ".join(comparison_notes(began(both(paths), order)))


def test_two_frameworks_that_run_one_program_say_how_far_apart_they_are(paths: StudyPaths) -> None:
    said = " ".join(comparison_notes(both(paths)))
    assert "On one device PyTorch DDP and Horovod (PyTorch) run the same program" in said
    assert "ResNet-50: 1.25×" in said


@pytest.mark.parametrize("build", [tables.scaling, tables.comparison])
def test_it_is_below_the_tables_of_ratios(paths: StudyPaths, build: object) -> None:
    assert any("run the same program" in note for note in build(both(paths)).notes)


def test_a_difference_of_one_program_is_explained_as_none(paths: StudyPaths) -> None:
    ddp, horovod = (configuration(framework=name) for name in ("torch_ddp", "horovod_torch"))
    planned = [Planned(ddp, Recipe(0.080), reference=ddp), Planned(horovod, Recipe(0.060), reference=ddp)]
    [(_, said)] = answers.comparison(write_titled(paths, planned)).verdicts
    assert said.endswith("so this is no difference between the two.")
    assert "lies" not in said


def test_on_two_devices_the_programs_differ(paths: StudyPaths) -> None:
    assert not any("same program" in said for said in comparison_notes(both(paths, devices=2)))
