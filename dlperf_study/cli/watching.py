"""What is known while a study is measured: a page that loads itself again, and a table in the terminal each round."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from dlperf_study.cli.output import print_aside, print_line
from dlperf_study.core.errors import DlperfStudyError
from dlperf_study.core.paths import StudyPaths
from dlperf_study.core.writing import write_atomically

if TYPE_CHECKING:
    from dlperf_study.execution.progress import Situation
    from dlperf_study.report.terminal_answer import Throughputs

#: Of the time of a study, at most this share goes into what is known within a round: runs wait for it.
MOST_OF_TIME = 0.05


class Watcher:
    """Writes the page after each run, before the next begins.

    What is known is computed anew after each round, and within one if that takes no more than MOST_OF_TIME.
    ``has_begun``: whether it was told of a situation.
    """

    def __init__(self, paths: StudyPaths, title: str) -> None:
        self._paths, self._title = paths, title
        self._throughputs: Throughputs | None = None
        self._runs_known = 0
        self._next_time = 0.0
        self.has_begun = False

    def __call__(self, situation: "Situation") -> None:
        """Print progress and end time; at first, the page's address."""
        from dlperf_study.report.progress_page import time_left

        with _not_fatal():
            if not self.has_begun:
                self.has_begun = True
                print_line(f"live progress: {self._paths.progress_page}")
            if situation.is_round_over or time.monotonic() >= self._next_time:
                self._compute()
            sentence = time_left(situation.runs_left, situation.seconds_left, datetime.now())
            self._write(sentence)
            if situation.is_round_over and situation.runs_left and self._throughputs:
                print_line("\n".join(["", self._throughputs.in_terminal(), sentence, ""]))

    def end(self, sentence: str) -> None:
        """Report the end, with a link to a current report."""
        from dlperf_study.dataset.inputs import is_report_current

        with _not_fatal():
            self._compute()
            page = self._paths.report_page.relative_to(self._paths.folder)
            self._write(sentence, is_over=True, report=str(page) if is_report_current(self._paths) else "")

    def _compute(self) -> None:
        """Read the evidence, and note when that may be done again."""
        from dlperf_study.dataset.dataset import up_to_date
        from dlperf_study.report.terminal_answer import configuration_throughputs
        from dlperf_study.study.job import RunStatus

        begun = time.monotonic()
        dataset = up_to_date(self._paths)
        self._throughputs = configuration_throughputs(dataset)
        self._runs_known = int((dataset.runs["status"] == RunStatus.COMPLETED).sum())
        ended = time.monotonic()
        self._next_time = ended + (ended - begun) / MOST_OF_TIME

    def _write(self, sentence: str, is_over: bool = False, report: str = "") -> None:
        from dlperf_study.report.progress_page import SoFar, page

        so_far = SoFar(self._title, sentence, datetime.now(), is_over, report, self._runs_known, self._throughputs)
        self._paths.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._paths.progress_page, page(so_far))


@contextmanager
def watched(watcher: Watcher) -> Iterator[Watcher]:
    """End the page with the current results, however measuring ends."""
    sentence = "Measuring was stopped; the same command continues."
    try:
        yield watcher
        sentence = "Measuring has ended."
    finally:
        if watcher.has_begun:
            watcher.end(sentence)


@contextmanager
def _not_fatal() -> Iterator[None]:
    """Keep a study alive if its page fails."""
    try:
        yield
    except Exception as error:
        kind = ""
        if not isinstance(error, (DlperfStudyError, OSError)):
            kind = f"{type(error).__name__}: "
        print_aside(f"note: no live progress: {kind}{error}")
