"""The tables of rules: what each asks, whether the study keeps it, and what was checked; and their counts in a line."""

from collections import Counter
from dataclasses import dataclass

from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.compliance import Compliance, checked_rules
from dlperf_study.report.formatting import listed
from dlperf_study.report.section import page_link
from dlperf_study.report.tables.table import Cell, Heading, Page, Table

PAGE = Page("compliance", "Compliance", "compliance.html")
_CAPTION = "Each rule with what was checked in the evidence of this study; nothing is claimed that was not checked."
_HEADINGS = (Heading("Rule"), Heading("Asks"), Heading("Result"), Heading("What was checked"))


def compliance(dataset: Dataset) -> Table:
    """Return every rule with what it asks, whether the study keeps it, and the numbers that say so."""
    rows, groups = [], []
    for checked in checked_rules(dataset):
        rule, result = checked.rule, checked.result
        rows.append((Cell(rule.name), Cell(rule.request), Cell(result.compliance), Cell(f"{result.evidence}.")))
        groups.append(checked.rule_set)
    caption = f"{_CAPTION}{context.quick_label(dataset)}"
    return Table("compliance", "Rules of measuring", caption, _HEADINGS, tuple(rows), groups=tuple(groups))


def compliance_counts(dataset: Dataset) -> str:
    """Return how many rules the study keeps: ``17 of 25 rules are met, 5 are not, and 3 do not apply``."""
    counts = Counter(checked.result.compliance for checked in checked_rules(dataset))
    missed, idle = counts[Compliance.NOT_MET], counts[Compliance.NOT_APPLICABLE]
    parts = [f"{missed} {'is' if missed == 1 else 'are'} not"]
    parts += [f"{idle} {'does' if idle == 1 else 'do'} not apply"] if idle else []
    total = counted(sum(counts.values()), "rule")
    return f"{counts[Compliance.MET]} of {total} of measuring are met, {listed(parts)}"


@dataclass(frozen=True)
class ComplianceLine:
    """The counts of a study in one line, which leads to its page on them."""

    dataset: Dataset

    def _repr_html_(self) -> str:
        link = page_link(PAGE.file, compliance_counts(self.dataset))
        return f'<p class="diagnostics">{link}.</p>'
