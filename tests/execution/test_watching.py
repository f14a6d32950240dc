"""What is shown while a study is measured: on its page, and in the terminal after each round."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from types import SimpleNamespace

import pytest

from dlperf_study.cli import watching
from dlperf_study.cli.watching import Watcher, watched
from dlperf_study.core.paths import StudyPaths
from dlperf_study.dataset.dataset import collect
from dlperf_study.execution.controller import run_study
from dlperf_study.execution.measurement import MeasurementSummary
from dlperf_study.execution.planning import load_cluster
from dlperf_study.execution.progress import Situation
from dlperf_study.records.run_record import RequestedRun
from dlperf_study.report import terminal_answer
from dlperf_study.report.formatting import format_column
from dlperf_study.report.progress_page import CAVEAT, SoFar, page, time_left
from dlperf_study.report.terminal_answer import Throughputs
from dlperf_study.study.configuration import Configuration
from dlperf_study.study.plan import Plan
from tests.execution.constructed import measure_here, perform_one

pytestmark = pytest.mark.usefixtures("constructed_runs")
RUNS = 9


@pytest.fixture
def pages(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The page as it is while each execution is measured, in this process."""
    seen: list[str] = []

    def measured(configuration: Configuration, runs: Sequence[RequestedRun]) -> MeasurementSummary:
        seen.append(StudyPaths.of(plan.study).progress_page.read_text(encoding="utf-8"))
        return perform_one(configuration, runs, monkeypatch)

    measure_here(measured, monkeypatch)
    return seen


def measure(plan: Plan) -> str:
    """Measure a study that is watched; return its page."""
    paths = StudyPaths.of(plan.study)
    with watched(Watcher(paths, plan.title)) as watcher:
        run_study(plan, load_cluster(plan.cluster), lambda _: None, watch=watcher)
    return paths.progress_page.read_text(encoding="utf-8")


def test_the_page_counts_down_and_loads_itself_until_all_is_measured(plan, pages):
    last = measure(plan)
    assert [int(re.search(r"To do: (\d+) run", each)[1]) for each in pages] == [*range(RUNS, 0, -1)]
    assert all('http-equiv="refresh"' in each for each in pages)
    assert 'http-equiv="refresh"' not in last
    assert "To do" not in last
    assert f"From {RUNS} completed runs" in last


def test_it_shows_the_numbers_of_the_runs_so_far(plan, pages):
    last = measure(plan)
    for row in collect(StudyPaths.of(plan.study)).configurations.itertuples():
        assert f"<td>{' '.join(format_column(row, 'throughput'))}</td>" in last
    after_a_round = [each for each in pages if "From 3 completed runs" in each]
    assert after_a_round
    assert "[" not in re.sub(r"<style>.*</style>", "", after_a_round[0], flags=re.DOTALL)
    assert "[" in last


def test_the_terminal_has_a_table_after_each_round_but_the_last(plan, pages, capsys):
    measure(plan)
    printed = capsys.readouterr().out
    assert re.findall(r"^To do: (\d+) run", printed, re.MULTILINE) == ["6", "3"]
    assert printed.count(str(StudyPaths.of(plan.study).progress_page)) == 1


def test_within_a_round_the_evidence_is_read_again_when_that_takes_5_per_cent_of_the_time(plan, monkeypatch):
    """A run takes 15 s by the clock of this test, and reading the evidence 1 s: it may be read every 20 s."""
    clock, known = count(), []

    def measured(configuration: Configuration, runs: Sequence[RequestedRun]) -> MeasurementSummary:
        text = StudyPaths.of(plan.study).progress_page.read_text(encoding="utf-8")
        found = re.search(r"From (\d+) completed run", text)
        known.append(int(found[1]) if found else 0)
        for _ in range(15):
            next(clock)
        return perform_one(configuration, runs, monkeypatch)

    measure_here(measured, monkeypatch)
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    measure(plan)
    assert known == [0, 0, 2, 3, 3, 5, 6, 6, 8]


def test_what_cannot_be_shown_ends_no_study(plan, pages, capsys):
    paths = StudyPaths.of(plan.study)
    watcher = Watcher(paths, plan.title)
    # There is no plan, so nothing can be read.
    watcher(Situation(3))
    assert "no live progress" in capsys.readouterr().err


def test_an_error_of_what_makes_the_page_ends_no_study(plan, monkeypatch, capsys):
    """Whatever it is: the runs that are still to do matter more than the page."""

    def broken(dataset):
        raise KeyError("a column")

    measure_here(lambda configuration, runs: perform_one(configuration, runs, monkeypatch), monkeypatch)
    monkeypatch.setattr(terminal_answer, "configuration_throughputs", broken)
    with watched(Watcher(StudyPaths.of(plan.study), plan.title)) as watcher:
        result = run_study(plan, load_cluster(plan.cluster), lambda _: None, watch=watcher)
    assert (result.measured, result.failures) == (RUNS, [])
    assert "no live progress: KeyError: 'a column'" in capsys.readouterr().err


def test_what_is_stopped_says_so_and_what_never_began_leaves_the_page_alone(plan, pages):
    measure(plan.changed(entries=plan.entries[:2]))
    page_file = StudyPaths.of(plan.study).progress_page
    before = page_file.read_text(encoding="utf-8")
    watcher = Watcher(StudyPaths.of(plan.study), plan.title)

    def stop() -> None:
        raise ZeroDivisionError

    def begin_and_stop() -> None:
        watcher(Situation(3))
        stop()

    with pytest.raises(ZeroDivisionError), watched(watcher):
        stop()
    assert page_file.read_text(encoding="utf-8") == before
    with pytest.raises(ZeroDivisionError), watched(watcher):
        begin_and_stop()
    text = page_file.read_text(encoding="utf-8")
    assert "was stopped" in text
    assert 'http-equiv="refresh"' not in text


def test_the_end_is_a_clock_time_and_has_a_date_where_it_is_another_day(snapshot):
    now = datetime(2024, 5, 1, 23, 0)
    assert [time_left(2, None, now), time_left(1, 600.0, now), time_left(30, 7200.0, now)] == snapshot


def test_a_page_warns_of_conclusions_until_the_study_is_over_and_escapes_its_title():
    throughputs = Throughputs(["", "samples/s"], [["one", "1"]], ["█"], "")
    so_far = SoFar(
        "A <b>title</b>", "To <b>do</b>: 1 run.", datetime(2024, 5, 1, 10), runs_known=1, throughputs=throughputs
    )
    assert CAVEAT in page(so_far)
    assert CAVEAT not in page(replace(so_far, is_over=True))
    assert "<b>" not in page(so_far)
