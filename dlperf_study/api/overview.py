"""A study at a glance, as text and as HTML: how much was measured, what failed, and the first answer."""

from html import escape

from dlperf_study.core.wording import counted, list_first
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.formatting import display_name, listed
from dlperf_study.report.page_findings import page_findings
from dlperf_study.report.series import ordered_values
from dlperf_study.report.tables.about_tables import added_runs
from dlperf_study.report.tables.study_tables import measured
from dlperf_study.study.job import RunStatus

_MOST_VALUES = 6


def text(dataset: Dataset, factors: list[str], name: str) -> str:
    """Return a measurement's name, title, and a line per fact."""
    lines = [f"<StudyResults {name}: {dataset.plan.title}>", *map(": ".join, _facts(dataset, factors).items())]
    return "\n".join([*lines, *page_findings(dataset, "summary").head(_shown(dataset)).sentences])


def html(dataset: Dataset, factors: list[str], name: str) -> str:
    """Return title, facts, the first answer in bold, and the table."""
    rows = []
    for label, fact in _facts(dataset, factors).items():
        rows.append(f"<tr><th style='text-align: left'>{escape(label)}</th><td>{escape(fact)}</td></tr>")
    answer = page_findings(dataset, "summary").head(_shown(dataset))._repr_html_()
    title = f"<b>{escape(dataset.plan.title)}</b> ({escape(name)})"
    table = measured(dataset)
    results = ""
    if not table.is_empty:
        results = table._repr_html_()
    return f"<div><p>{title}</p>{answer}<table>{''.join(rows)}</table>{results}</div>"


def _facts(dataset: Dataset, factors: list[str]) -> dict[str, str]:
    """Return how much was measured and what failed, by label."""
    rows = dataset.configurations
    completed, planned = int(rows["runs_completed"].sum()), int(rows["runs_planned"].sum())
    varied = []
    for name in factors:
        values = list(map(str, ordered_values(rows[name])))
        varied.append(f"{name} {list_first(values, _MOST_VALUES)}")
    facts = {
        "configurations": f"{len(dataset.measured)} of {len(rows)} measured",
        "runs": f"{completed} completed of {planned} planned{added_runs(dataset)}",
        "factors": "; ".join(varied) or "none",
    }
    failed = dataset.runs["status"].value_counts().drop(RunStatus.COMPLETED, errors="ignore")
    failures = [f"{count} × {display_name(status)}" for status, count in failed.items()]
    unsupported = int(rows["unsupported_reason"].notna().sum())
    if unsupported:
        failures.append(f"{counted(unsupported, 'configuration')} unsupported")
    if failures:
        facts["failed"] = listed(failures)
    return facts


def _shown(dataset: Dataset) -> int:
    """Return how many sentences are shown."""
    if dataset.plan.quick:
        return 2
    return 1
