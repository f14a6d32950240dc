"""The studies of a workspace: which have results, where their reports are, and the code that opens each."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote

import pandas as pd
from jupyter_core.paths import jupyter_runtime_dir

from dlperf_study.core.errors import RecordError
from dlperf_study.core.paths import outputs_folder
from dlperf_study.core.user_commands import command_line, make_or
from dlperf_study.core.wording import counted
from dlperf_study.dataset import history, tables
from dlperf_study.metrics.columns import TableName
from dlperf_study.metrics.run_status import select_completed
from dlperf_study.study.plan import Plan

_HEADINGS = ("Study", "Title", "Measured", "Runs", "Report", "In Python")


@dataclass(frozen=True)
class StudySummary:
    """A summary of one study or earlier measurement.

    ``begun``: when its first completed run began, to the day; ``completed`` and ``runs``: how many runs are completed,
    and how many there are. All are of the tables as they were made last, None before that. ``further``: how many runs
    of planned configurations have a folder and are not in them.
    """

    name: str
    title: str
    begun: str | None
    completed: int | None
    runs: int | None
    report: Path | None
    further: int = 0


class Studies(tuple[StudySummary, ...]):
    """The studies of a workspace, by name, with links in notebooks."""

    @property
    def frame(self) -> pd.DataFrame:
        """A row per study, by ``name``, with ``StudySummary``'s fields."""
        columns = list(StudySummary.__annotations__)
        return pd.DataFrame([vars(study) for study in self], columns=columns).set_index("name")

    def __repr__(self) -> str:
        return "\n".join(f"{study.name}: {study.title}, {_runs(study)}" for study in self) or _nothing()

    def _repr_html_(self) -> str:
        if not self:
            return f"<p>{escape(_nothing())}</p>"
        head = "".join(f"<th style='text-align: left'>{heading}</th>" for heading in _HEADINGS)
        rows = "".join(f"<tr>{''.join(map(_html_cell, _HEADINGS, _cells(study)))}</tr>" for study in self)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def studies() -> Studies:
    """Return the studies in this workspace's outputs, without reading evidence."""
    return Studies(map(_summary, history.measurement_names()))


def _summary(name: str) -> StudySummary:
    paths = history.paths_of_measurement(name)
    report = None
    if paths.report_page.exists():
        report = paths.report_page
    try:
        plan = Plan.read(paths.plan_file)
        if not (paths.dataset / f"{TableName.RUNS}.parquet").exists():
            return StudySummary(name, plan.title, None, None, None, report)
        runs = tables.read(TableName.RUNS, paths.dataset)
    except RecordError as error:
        return StudySummary(name, str(error), None, None, None, report)
    completed = select_completed(runs)
    started = completed["started"].dropna()
    date = None
    if len(started):
        date = str(started.min())[:10]
    further = 0
    if not plan.ingested_from:
        # Other folders are of runs that no table has, such as trials of the largest batch.
        begun = paths.begun_runs()
        further = max(0, sum(len(begun.get(configuration_id, ())) for configuration_id in plan.by_id) - len(runs))
    return StudySummary(name, plan.title, date, len(completed), len(runs), report, further)


def _nothing() -> str:
    command = make_or("study", command_line("run STUDY"))
    return f"{outputs_folder()} has no study yet: `{command}` in a terminal measures one."


def _runs(study: StudySummary) -> str:
    if study.runs is None:
        return "no tables yet"
    completed = f"{study.completed} of {study.runs} completed"
    if not study.further:
        return completed
    return f"{completed}; {counted(study.further, 'further run')} not in its tables; opening it rebuilds them"


def _cells(study: StudySummary) -> Iterator[str]:
    """Yield a study's cells as HTML."""
    yield f"<b>{escape(study.name)}</b>"
    yield escape(study.title)
    yield study.begun or ""
    yield _runs(study)
    yield _report_link(study.report) if study.report else "not built"
    yield f"<code>{escape(f'dlperf_study.open_study({study.name!r})')}</code>"


def _report_link(page: Path) -> str:
    """Return a link to a report; its path if the Jupyter server cannot serve it.

    JupyterLab opens relative links inside its own frame, where it refuses to show HTML.
    """
    target, server = os.path.relpath(page), _jupyter_server()
    if server:
        root = Path(server["root_dir"]).resolve()
        if not page.is_relative_to(root):
            return f"<code>{escape(str(page))}</code>"
        target = f"{server['base_url']}files/{page.relative_to(root).as_posix()}"
    return f'<a href="{escape(quote(target))}" target="_blank">report</a>'


def _jupyter_server() -> dict[str, str]:
    """Return the root folder and base URL of this kernel's server; empty if unknown."""
    file = Path(jupyter_runtime_dir(), f"jpserver-{os.environ.get('JPY_PARENT_PID')}.json")
    with suppress(OSError, ValueError):
        return dict(json.loads(file.read_text(encoding="utf-8")))
    return {}


def _html_cell(heading: str, content: str) -> str:
    wrapped = "nowrap"
    if heading == "Title":
        wrapped = "normal"
    return f"<td style='text-align: left; white-space: {wrapped}'>{content}</td>"
