"""Diagnostics as a table, in which those of many runs share a row, and by kind on the page that has the details."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import chain, islice

import pandas as pd

from dlperf_study.core.errors import Severity
from dlperf_study.core.paths import StudyPaths, is_building_report
from dlperf_study.core.wording import counted, in_sentence
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.metrics.columns import COLUMNS, list_pages
from dlperf_study.metrics.metric import QUALITY, THROUGHPUT_PAGES
from dlperf_study.report import context, formatting, section, series
from dlperf_study.report.formatting import text_if
from dlperf_study.report.say import caption
from dlperf_study.report.tables.table import Cell, Page, Table, make_table
from dlperf_study.study.study import PUBLISHED

#: A number that measures something: no part of a name or version, no process, and no rank, which says who it was.
_NUMBER = re.compile(r"(?<![\w.-])(?<!rank )\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w:-]|\.\w)")


def belongs(subject: str, topic: str) -> bool:
    """Return whether a topic's page shows diagnostics about a subject."""
    return topic in (THROUGHPUT_PAGES if is_file(subject) else list_pages(subject))


def is_file(subject: str) -> bool:
    """Return whether a diagnostic is about a file, by its name."""
    return "." in subject or "/" in subject


def mask_numbers(message: str) -> str:
    """Return a message with its numbers masked."""
    return _NUMBER.sub("#", message)


def merged(messages: Iterable[str]) -> str:
    """Return messages that differ in numbers as one, with ranges."""
    distinct = list(dict.fromkeys(messages))
    ranges = []
    for values in zip(*map(_NUMBER.findall, distinct), strict=True):
        low, high = min(values, key=float), max(values, key=float)
        ranges.append(low if float(low) == float(high) else f"{low} to {high}")
    remaining = iter(ranges)
    return _NUMBER.sub(lambda _: next(remaining), distinct[0])


def diagnostic_rows(dataset: Dataset, diagnostics: pd.DataFrame) -> Iterator[tuple[Cell, ...]]:
    """Yield a row per severity, subject and message; the most severe first.

    Each configuration has its own rows for diagnostics about columns. What many logs have in common is one row.
    """
    severities = diagnostics["severity"].map(list(reversed(Severity)).index)
    rows = diagnostics.iloc[severities.astype("int64").argsort(kind="stable")]
    are_files = rows["subject"].map(is_file).astype(bool)
    configuration_ids, subjects = rows["configuration_id"].mask(are_files, ""), rows["subject"].mask(are_files, "")
    keys = [rows["severity"], configuration_ids, subjects, rows["message"].map(mask_numbers)]
    labels = series.configuration_labels(dataset)
    for _, group in rows.groupby(keys, sort=False):
        configurations = []
        for configuration_id in group["configuration_id"].unique():
            configurations.append(labels.get(configuration_id, configuration_id) or "study")
        runs = sorted(group["repetition"].dropna().unique())
        yield (
            Cell(group["severity"].iloc[0]),
            Cell(formatting.listed(configurations)),
            Cell(", ".join(map(str, runs)) or "all"),
            _subject_cell(group["subject"].unique()),
            Cell(merged(group["message"])),
        )


@kept_with_dataset
def diagnostics_about(dataset: Dataset, topic: str = "") -> pd.DataFrame:
    """Return the diagnostics of one topic's page; all without a topic."""
    rows = dataset.diagnostics.fillna({"configuration_id": ""})
    if topic not in {*THROUGHPUT_PAGES, *chain.from_iterable(map(list_pages, COLUMNS))}:
        return rows
    return rows[rows["subject"].map(partial(belongs, topic=topic)).astype(bool)]


def _subject_cell(subjects: list[str]) -> Cell:
    if len(subjects) > 1:
        return Cell(counted(len(subjects), "log"))
    [subject] = subjects
    if is_file(subject):
        return Cell(subject, code=True)
    return Cell(COLUMNS[subject].label if subject in COLUMNS else formatting.display_name(subject))


ANCHOR = "diagnostics"
MOST_KINDS = 5
_SUMMARY_FILE = "index.html"
_LOGS = "Logs"
_HEADINGS = ("severity", "configuration_id", "repetition", "subject", "message")


def diagnostics(dataset: Dataset, topic: str = "") -> Table:
    """Return all diagnostics, or the diagnostics of one topic's page."""
    definition = COLUMNS["severity"].definition.capitalize()
    about = caption("diagnostics", definition=definition, is_published=topic == PUBLISHED)
    empty = caption("diagnostics", "empty" if dataset.diagnostics.empty else "empty_page")
    rows = diagnostic_rows(dataset, diagnostics_about(dataset, topic))
    name, title = f"diagnostics{text_if(topic, f'-{topic}')}", caption("diagnostics", "title")
    headings = [COLUMNS[heading].label for heading in _HEADINGS]
    return make_table(name, headings, rows, about + context.quick_label(dataset), title=title, empty=empty)


@dataclass(frozen=True)
class DiagnosticGroup:
    """The diagnostics of one severity about one subject."""

    severity: str
    subject: str
    count: int
    configurations: str
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def html(self) -> str:
        """The group as one line that unfolds into rows."""
        head = f"<b>{counted(self.count, self.severity)}</b> {escape(self.subject)}: {escape(self.configurations)}"
        items = ""
        for row in self.rows:
            _, configurations, runs, subject, message = (formatting.html_text(cell.text) for cell in row)
            about = f"{configurations}, {'all runs' if runs == 'all' else f'run {runs}'}"
            if self.subject == _LOGS:
                about += f", {subject}"
            items += f"<li>{about}: {message}</li>"
        return f'<details class="diagnostic {self.severity}"><summary>{head}</summary><ul>{items}</ul></details>'


@kept_with_dataset
def diagnostic_groups(dataset: Dataset) -> list[DiagnosticGroup]:
    """Return all diagnostics by severity and subject, the most severe first."""
    rows = diagnostics_about(dataset)
    subjects = rows["subject"].map(subject_label).astype(str)
    groups = []
    for severity in reversed(Severity):
        of_severity = rows[rows["severity"] == severity]
        for subject, group in of_severity.groupby(subjects.loc[of_severity.index], sort=False):
            cells = tuple(diagnostic_rows(dataset, group))
            groups.append(DiagnosticGroup(str(severity), str(subject), len(group), _affected(dataset, group), cells))
    return groups


def subject_label(subject: str) -> str:
    """Return what pages call the subject of a diagnostic."""
    if is_file(subject):
        return _LOGS
    label = COLUMNS[subject].label if subject in COLUMNS else formatting.display_name(subject)
    return label[0].upper() + label[1:]


def _affected(dataset: Dataset, diagnostics_of_group: pd.DataFrame) -> str:
    labels = series.configuration_labels(dataset)
    configuration_ids = list(filter(None, diagnostics_of_group["configuration_id"].unique()))
    if not configuration_ids:
        return "the study"
    if len(configuration_ids) == len(labels) > 1:
        return f"all {len(labels)} configurations"
    if len(configuration_ids) > formatting.MOST_NAMED:
        return f"{len(configuration_ids)} of {len(labels)} configurations"
    return formatting.listed([labels.get(configuration_id, configuration_id) for configuration_id in configuration_ids])


@dataclass(frozen=True)
class DiagnosticOverview:
    """The diagnostics of a page, in detail or as one line."""

    dataset: Dataset
    topic: str

    @property
    def has_details(self) -> bool:
        """Whether this page has the details."""
        return self.topic == (QUALITY if QUALITY in self.dataset.plan.sections else "")

    def save(self, paths: StudyPaths) -> "DiagnosticOverview":
        """Save the diagnostics tables if a report is built; return the overview."""
        if not is_building_report():
            return self
        for topic in {self.topic, "" if self.has_details else self.topic}:
            diagnostics(self.dataset, topic).save(paths)
        return self

    def __repr__(self) -> str:
        return repr(diagnostics(self.dataset, self.topic))

    def _repr_html_(self) -> str:
        if not self.has_details:
            return self._line()
        groups = "".join(group.html for group in diagnostic_groups(self.dataset))
        content = groups or '<p class="nothing">No warnings or notes.</p>'
        return f'<section class="diagnostics"><h2 id="{ANCHOR}">Warnings and notes</h2>{content}</section>'

    def _line(self) -> str:
        totals = diagnostics_about(self.dataset, self.topic)["severity"].value_counts()
        counts = {severity: int(totals[severity]) for severity in reversed(Severity) if severity in totals}
        if not counts:
            return '<p class="diagnostics">No warnings.</p>'
        page, topic = _SUMMARY_FILE, ""
        if QUALITY in self.dataset.plan.sections:
            page, topic = Page.answering(QUALITY).file, QUALITY
        verb = "concern" + text_if(sum(counts.values()) == 1, "s")
        kind = "diagnostics" + text_if(Severity.ERROR in counts, " error")
        counted_diagnostics = formatting.listed([counted(count, severity) for severity, count in counts.items()])
        link = section.page_link(f"{page}#{ANCHOR}", counted_diagnostics)
        # Next to a notebook no page has their messages.
        code = f" <code>results.warnings({topic!r})</code> has their messages."
        code = text_if(not is_building_report(), code)
        return f'<p class="{kind}">{link} {verb} these numbers: {escape(self._kinds())}.{code}</p>'

    def _kinds(self) -> str:
        """Return the subjects, most severe first: ``busy cores 13 and memory 2``."""
        about = diagnostics_about(self.dataset, self.topic)
        subjects = about["subject"].map(subject_label)
        counts: Counter[str] = Counter()
        for severity in reversed(Severity):
            counts.update(dict(subjects[about["severity"] == severity].value_counts()))
        # In the order of their severity, as they were counted.
        kinds = [f"{in_sentence(subject)} {count}" for subject, count in counts.items()]
        remaining = sum(islice(counts.values(), MOST_KINDS, None))
        further = text_if(remaining, f"{remaining} about other things")
        return formatting.listed(filter(None, (*kinds[:MOST_KINDS], further)))
