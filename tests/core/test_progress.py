"""What a long command says of how far it is."""

from dlperf_study.core import progress
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.progress import Progress
from dlperf_study.dataset.dataset import collect
from tests.evidence_factory import Planned, Recipe, configuration, write_study


def test_each_few_seconds_a_line_says_what_is_done_and_how_long_the_rest_takes(monkeypatch):
    seconds, lines = iter((0.0, 4.0, 6.0, 9.0, 20.0)), list[str]()
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    report = Progress("building the report", "page", 4, lines.append)
    for page in ("summary", "scaling", "history", ""):
        report.end(page)
    assert lines == [
        "building the report: page 1 of 4 (summary), about 12 s left",
        "building the report: page 3 of 4 (history), about 3 s left",
    ]


def test_evidence_that_takes_long_is_counted_in_configurations(tmp_path, monkeypatch):
    """Each look at the clock is five seconds after the last."""
    paths, seconds, lines = StudyPaths(tmp_path), iter(range(0, 100, 5)), list[str]()
    write_study(paths, [Planned(configuration(devices_per_node=count), Recipe(), 1) for count in (1, 2)])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    collect(paths, lines.append)
    assert lines == ["reading the runs: configuration 1 of 2, about 5 s left"]


def test_parts_that_are_under_way_together_shorten_the_time_left(monkeypatch):
    lines: list[str] = []
    clock = iter([0.0, 10.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    Progress("building the report", "page", 6, lines.append, at_once=2).end()
    assert lines == ["building the report: page 1 of 6, about 25 s left"]
