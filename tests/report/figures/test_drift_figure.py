import pytest

from dlperf_study.analysis.drift import round_effects
from dlperf_study.paths import StudyPaths
from dlperf_study.report import figures, tables
from dlperf_study.report.context import completed_runs
from tests.evidence_factory import Planned, configuration
from tests.report.conftest import ALONE, write_titled
from tests.report.figures.drawn import axes_of, lines, only


def test_the_drift_has_a_mark_for_every_run_and_a_line_for_every_round(paths: StudyPaths) -> None:
    counts = (1, 2, 4)
    dataset = write_titled(paths, [Planned(configuration(devices_per_node=count), ALONE) for count in counts])
    [axes] = axes_of(only(figures.drift(dataset)))
    marks = [lines(axes, f"round {number}") for number in (1, 2, 3)]
    assert [len(mark.get_xdata()) for [mark] in marks] == [3, 3, 3]
    assert [set(mark.get_xdata()) for [mark] in marks] == [{0.0}, {1.0}, {2.0}]
    assert len(axes.get_lines()) == 1 + 2 * 3
    table = tables.rounds(dataset)
    assert table.column("Round") == ["1", "2", "3"]
    intervals = [cell.interval for row in table.rows for cell in row if "." in cell.text]
    assert len(intervals) == 3
    assert all(intervals)


def test_without_repetitions_there_is_no_drift_to_show(paths: StudyPaths) -> None:
    dataset = write_titled(paths, [Planned(configuration(), ALONE, runs=1)])
    assert only(figures.drift(dataset)).drawing is None
    assert tables.rounds(dataset).rows == ()


def test_a_round_that_lacks_configurations_has_marks_and_no_line(paths: StudyPaths) -> None:
    runs = {1: 4, 2: 3, 4: 3}
    dataset = write_titled(
        paths, [Planned(configuration(devices_per_node=n), ALONE, runs=count) for n, count in runs.items()]
    )
    figure = only(figures.drift(dataset))
    [axes] = axes_of(figure)
    assert len(lines(axes, "round 4")) == 1
    means = [line.get_ydata()[0] for line in axes.get_lines() if line.get_linestyle() == "-"][1:]
    changes = [100 * (effect.log_rate.factor - 1) for effect in round_effects(completed_runs(dataset))]
    assert means == pytest.approx(changes)
    assert len(means) == 3
    assert "a round without all configurations has marks only" in figure.caption
