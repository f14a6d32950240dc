"""The findings of a page, and one line on the conditions that they hold under."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape

from dlperf_study.core.paths import is_building_report
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.measurement_comparison import MeasurementComparison
from dlperf_study.findings import history as changes
from dlperf_study.findings import selftest as checks
from dlperf_study.findings.pages import MAX_FINDINGS, PAGES
from dlperf_study.report import context
from dlperf_study.report.formatting import text_if
from dlperf_study.report.say import HTML, TERMINAL, Medium, say
from dlperf_study.report.section import page_link
from dlperf_study.selftest.result import SelftestResult


@dataclass(frozen=True)
class PageFindings:
    """The findings of a page; ``is_first``: the page is the summary, which has all conditions."""

    findings: tuple[object, ...]
    dataset: Dataset | None = None
    conditions: str = ""
    is_first: bool = False

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings as text."""
        return self.as_text(TERMINAL)

    def as_text(self, medium: Medium) -> tuple[str, ...]:
        """Return the findings as text of a medium."""
        return tuple(say(self.findings, medium, self.dataset))

    def head(self, count: int) -> "PageFindings":
        """Return the first findings, without conditions."""
        return replace(self, findings=self.findings[:count], conditions="")

    def __repr__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{sentence}</li>" for sentence in self.as_text(HTML))
        return f'<div class="findings"><ul>{items}</ul>{self._conditions_html()}</div>'

    def _conditions_html(self) -> str:
        if not self.conditions:
            return ""
        anchor = text_if(self.is_first, ' id="conditions"')
        all_conditions = page_link("index.html#conditions", "All conditions")
        link = text_if(not self.is_first and is_building_report(), f" {all_conditions}")
        return f'<p class="conditions"{anchor}>{escape(self.conditions)}{link}</p>'


def page_findings(dataset: Dataset, page: str) -> PageFindings:
    """Return the first findings of a page, each once, with the conditions of the study."""
    distinct = tuple(dict.fromkeys(PAGES[page](dataset)))
    is_first = page == "summary"
    # Next to a notebook no page has the other conditions.
    conditions: Callable[[Dataset], str] = context.page_conditions_in_short
    if is_first or not is_building_report():
        conditions = context.page_conditions
    return PageFindings(distinct[:MAX_FINDINGS], dataset, conditions(dataset), is_first)


def history(comparison: MeasurementComparison) -> PageFindings:
    """Return what changed since the study was measured before."""
    return PageFindings(tuple(changes.page(comparison)), comparison.after.dataset)


def selftest(result: SelftestResult) -> PageFindings:
    """Return whether the instrument finds what is known."""
    return PageFindings(tuple(checks.page(result)))
