"""Diagnostics by kind: all on the page that has the details, and on each other page one line that leads there."""

from dataclasses import dataclass, replace
from functools import partial
from html import escape

import pandas as pd

from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.diagnostic import Severity
from dlperf_study.paths import StudyPaths
from dlperf_study.report.formatting import display_name, html_text, listed
from dlperf_study.report.series import configuration_labels
from dlperf_study.report.tables.diagnostic_rows import QUALITY, belongs, diagnostic_rows, is_file
from dlperf_study.report.tables.study_tables import diagnostics
from dlperf_study.report.tables.table import Cell, Page
from dlperf_study.wording import counted

ANCHOR = "diagnostics"
#: So many configurations are named.
MOST_NAMED = 3
_SUMMARY_FILE = "index.html"
#: The subject of all diagnostics about files.
_LOGS = "Logs"


@dataclass(frozen=True)
class DiagnosticGroup:
    """The diagnostics of one severity about one subject: how many, about which configurations, and as table rows."""

    severity: str
    subject: str
    count: int
    configurations: str
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def html(self) -> str:
        """The group as one line, with its rows below it when it is opened."""
        head = f"<b>{counted(self.count, self.severity)}</b> {escape(self.subject)}: {escape(self.configurations)}"
        items = "".join(f"<li>{self._item(row)}</li>" for row in self.rows)
        return f'<details class="diagnostic {self.severity}"><summary>{head}</summary><ul>{items}</ul></details>'

    def _item(self, row: tuple[Cell, ...]) -> str:
        _, configurations, runs, subject, message = (html_text(cell.text) for cell in row)
        about = f"{configurations}, {'all runs' if runs == 'all' else f'run {runs}'}"
        return f"{about}, {subject}: {message}" if self.subject == _LOGS else f"{about}: {message}"


def diagnostic_groups(dataset: Dataset, topic: str = "") -> list[DiagnosticGroup]:
    """Return all diagnostics by severity and subject, the most severe first, or those of one topic's page."""
    rows = dataset.diagnostics.fillna({"identity": ""})
    if topic:
        rows = rows[rows["subject"].map(partial(belongs, topic=topic)).astype(bool)]
    subjects = rows["subject"].map(_subject).astype(str)
    groups = []
    for severity in reversed(Severity):
        of_severity = rows[rows["severity"] == severity]
        for subject, group in of_severity.groupby(subjects.loc[of_severity.index], sort=False):
            cells = tuple(diagnostic_rows(replace(dataset, diagnostics=group)))
            groups.append(DiagnosticGroup(str(severity), str(subject), len(group), _affected(dataset, group), cells))
    return groups


def _subject(subject: str) -> str:
    if is_file(subject):
        return _LOGS
    label = COLUMNS[subject].label if subject in COLUMNS else display_name(subject)
    return label[0].upper() + label[1:]


def _affected(dataset: Dataset, diagnostics_of_group: pd.DataFrame) -> str:
    """Return which configurations diagnostics are about: their names, or how many they are."""
    labels = configuration_labels(dataset)
    identities = [identity for identity in diagnostics_of_group["identity"].unique() if identity]
    if not identities:
        return "the study"
    if len(identities) == len(labels) > 1:
        return f"all {len(labels)} configurations"
    if len(identities) > MOST_NAMED:
        return f"{len(identities)} of {len(labels)} configurations"
    return listed([labels.get(identity, identity) for identity in identities])


@dataclass(frozen=True)
class DiagnosticOverview:
    """The diagnostics of a page: by kind with their details on one page of a report, one line on the others."""

    dataset: Dataset
    topic: str

    @property
    def has_details(self) -> bool:
        """Whether this page has the details: that on quality, or the summary of a study that does not ask for it."""
        return self.topic == (QUALITY if QUALITY in self.dataset.plan.questions else "")

    def save(self, paths: StudyPaths) -> "DiagnosticOverview":
        """Write the diagnostics as a table into the study's tables; return the overview, to be shown."""
        for topic in {self.topic, "" if self.has_details else self.topic}:
            diagnostics(self.dataset, topic).save(paths)
        return self

    def _repr_html_(self) -> str:
        if not self.has_details:
            return self._line()
        groups = "".join(group.html for group in diagnostic_groups(self.dataset))
        content = groups or '<p class="nothing">No check of these runs has a diagnostic.</p>'
        return f'<section class="diagnostics"><h2 id="{ANCHOR}">Warnings and notes</h2>{content}</section>'

    def _line(self) -> str:
        counts = self._counts()
        if not counts:
            return '<p class="diagnostics">No check of these runs has a warning about what this page shows.</p>'
        page = Page.answering(QUALITY).file if QUALITY in self.dataset.plan.questions else _SUMMARY_FILE
        verb = "is" if sum(counts.values()) == 1 else "are"
        kind = "diagnostics error" if Severity.ERROR in counts else "diagnostics"
        numbers = listed([counted(count, severity) for severity, count in counts.items()])
        link = f'<a href="{page}#{ANCHOR}">{numbers}</a>'
        return f'<p class="{kind}">{link} from the checks of these runs {verb} about what this page shows.</p>'

    def _counts(self) -> dict[Severity, int]:
        """Return how many diagnostics there are of each severity that has some, the most severe first."""
        totals = dict.fromkeys(reversed(Severity), 0)
        for group in diagnostic_groups(self.dataset, self.topic):
            totals[Severity(group.severity)] += group.count
        return {severity: total for severity, total in totals.items() if total}
