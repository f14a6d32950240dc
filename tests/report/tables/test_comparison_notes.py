"""What no interval shows, from constructed studies whose runs began at known times."""

import re
from dataclasses import replace

import pytest

from dlperf_study.dataset.dataset import Dataset, collect
from dlperf_study.paths import StudyPaths
from dlperf_study.report import figures, tables
from dlperf_study.report.tables import answers
from dlperf_study.report.tables.answers import comparison_notes
from tests.evidence_factory import Planned, Recipe, change, configuration
from tests.report.conftest import write_titled

BLOCKS = "not measured in rounds"


def both(paths: StudyPaths, order: str = "rounds", devices: int = 1, noise: float = 0.001) -> Dataset:
    rates = {"torch_ddp": 0.080, "horovod_torch": 0.080 * 1.25}
    planned = [
        Planned(configuration(framework=name, devices_per_node=devices), Recipe(seconds, noise=noise, order=order))
        for name, seconds in rates.items()
    ]
    return write_titled(paths, planned)


@pytest.mark.parametrize(("order", "is_noted"), [("rounds", False), ("blocks", True), ("by hand", True)])
def test_runs_that_were_in_no_rounds_are_a_caution(paths: StudyPaths, order: str, is_noted: bool) -> None:
    assert (BLOCKS in " ".join(comparison_notes(both(paths, order=order)))) == is_noted


def test_one_run_after_its_round_does_not_make_a_study_one_in_blocks(paths: StudyPaths) -> None:
    first = configuration(framework="torch_ddp")
    both(paths)
    change(paths.configuration(first.identity).run(1), round=None, position=None)
    assert BLOCKS not in " ".join(comparison_notes(collect(paths)))


def test_only_a_study_in_rounds_says_that_ratios_are_of_the_same_round(paths: StudyPaths) -> None:
    dataset = both(paths, order="blocks")
    captions = [tables.scaling(dataset).caption, *(figure.caption for figure in figures.drift(dataset))]
    assert "because the runs were not measured in rounds" in captions[0]
    assert "These runs were not measured in rounds" in captions[1]
    assert not any("same round" in caption or "within rounds" in caption for caption in captions)


def test_runs_in_blocks_have_intervals_of_their_own_and_no_verdict(paths: StudyPaths) -> None:
    table = tables.scaling(both(paths, order="blocks"))
    labels = [heading.label for heading in table.headings]
    cells = dict(zip(labels, table.rows[1], strict=True))
    assert cells["Throughput"].interval.startswith("[")
    assert cells["Speedup"].interval == ""
    assert "fewer than 3 rounds have a run of both" in cells["Speedup"].footnote
    assert "fewer than 3 rounds have a run of both" in cells["Against baseline"].footnote


def test_a_planned_study_in_blocks_says_that_no_number_of_runs_gives_its_ratios_an_interval(paths: StudyPaths) -> None:
    dataset = both(paths, order="blocks")
    table = tables.scaling(replace(dataset, plan=replace(dataset.plan, order="blocks")))
    cells = dict(zip([heading.label for heading in table.headings], table.rows[1], strict=True))
    assert cells["Speedup"].footnote == "a study in blocks has no interval of a ratio, however many runs it has"


def test_two_frameworks_that_run_one_program_say_how_far_apart_they_are(paths: StudyPaths) -> None:
    notes = " ".join(comparison_notes(both(paths)))
    assert "On one device PyTorch DDP and Horovod (PyTorch) run the same program" in notes
    [(ratio, low, high)] = re.findall(r"ResNet-50: ([\d.]+)× \[([\d.]+), ([\d.]+)\]", notes)
    assert 1.24 < float(low) < float(ratio) < float(high) < 1.26


def test_runs_in_no_rounds_say_how_far_apart_one_program_is_without_an_interval(paths: StudyPaths) -> None:
    assert "ResNet-50: 1.25×, without an interval" in " ".join(comparison_notes(both(paths, order="blocks")))


def test_equal_runs_have_neither_interval_nor_verdict_and_say_why(paths: StudyPaths) -> None:
    table = tables.scaling(both(paths, noise=0.0))
    cells = dict(zip([heading.label for heading in table.headings], table.rows[1], strict=True))
    assert (cells["Throughput"].interval, cells["Speedup"].interval) == ("", "")
    assert "all its runs have this very value: no interval" in cells["Throughput"].footnote
    for label in ("Speedup", "Against baseline"):
        assert "are equal, or differ by the same in every round" in cells[label].footnote


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
