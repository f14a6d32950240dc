"""Tables of the audit: what each check examined, and what it found."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dlperf_study.audit.audit import audit, cited, counts
from dlperf_study.audit.check import Checked, Finding, weighed
from dlperf_study.audit.frames import results_of_dataset, results_of_sources
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.context import quick_label
from dlperf_study.report.formatting import human, listed, whole
from dlperf_study.report.pages.pages import Page
from dlperf_study.report.published_series import NOTHING_NAMED
from dlperf_study.report.tables.table import Cell, Heading, Link, Table

_WEIGHTS = (
    "Error: the number contradicts others beside it. Warning: it is hardly right as it stands. Note: worth knowing; "
    "nothing need be wrong."
)
_INNOCENT = "Nothing was corrected; the letters lead to what would make the numbers right after all."
#: The page with these tables.
PAGE = Page.answering("audit")
_OWN, _PUBLISHED = "audit-own-findings", "audit-published-findings"


def own(dataset: Dataset) -> Iterator[Table]:
    """Yield what was examined of the study's own configurations, and what was found."""
    checked = audit(results_of_dataset(dataset))
    whose = f"The configurations and runs of this study.{quick_label(dataset)}"
    yield _checks(checked, "audit-own", "Checks of our numbers", whose)
    empty = "Nothing was found in our numbers."
    yield _findings(_anchored(checked, _OWN), _OWN, "Found in our numbers", whose, empty)


def published(dataset: Dataset) -> Iterator[Table]:
    """Yield the same for the published sources that the study names."""
    names = dataset.plan.published
    checked = _checked(dataset)
    whose = f"The sources {listed(list(names))}." if names else NOTHING_NAMED
    empty = "Nothing was found in the published numbers." if names else NOTHING_NAMED
    yield _checks(checked, "audit-published", "Checks of the published numbers", whose)
    yield _findings(_anchored(checked, _PUBLISHED), _PUBLISHED, "Found in the published numbers", whose, empty)


def published_findings(dataset: Dataset) -> list[tuple[str, Finding]]:
    """Return what was found in the published sources a study names, each with its anchor on the page of the audit."""
    return _anchored(_checked(dataset), _PUBLISHED)


def _checked(dataset: Dataset) -> Sequence[Checked]:
    """Return the checks of the published sources that a study names; none where it names none."""
    names = dataset.plan.published
    return audit(results_of_sources(names)) if names else []


def _anchored(checked: Sequence[Checked], name: str) -> list[tuple[str, Finding]]:
    found = weighed(finding for one in checked for finding in one.findings)
    return [(f"{name}-{number}", finding) for number, finding in enumerate(found, 1)]


def _checks(checked: Sequence[Checked], name: str, title: str, whose: str) -> Table:
    headings = (Heading("Check"), Heading("Examined", numeric=True), Heading("Of what"), Heading("Found"))
    rows = tuple(
        (Cell(one.check.asks), Cell(whole(one.examined)), Cell(one.check.examines), Cell(counts(one)))
        for one in checked
    )
    return Table(name, title, whose, headings, rows, (_WEIGHTS,), empty=whose)


def _findings(found: Sequence[tuple[str, Finding]], name: str, title: str, whose: str, empty: str) -> Table:
    headings = tuple(map(Heading, ("Severity", "Check", "What was reckoned", "Where it stands")))
    caption = f"{whose} {_INNOCENT}" if found else whose
    return Table(name, title, caption, headings, tuple(_row(*one) for one in found), empty=empty)


def _row(anchor: str, finding: Finding) -> tuple[Cell, ...]:
    innocent = f"Innocent if: {'; or '.join(finding.explanations)}." if finding.explanations else ""
    # With spaces around them, the parts of a key may stand on several lines.
    place = cited(finding).replace("/", " / ")
    severity, computation = Cell(finding.severity, anchor=anchor), Cell(finding.computation, note=innocent)
    return severity, Cell(human(finding.check)), computation, Cell(place)


# From a published number to what the audit says of it.


@dataclass(frozen=True)
class AuditLinks:
    """What the audit found in the published numbers a study names, by the key of each number it diagnostics."""

    by_key: Mapping[str, tuple[Link, ...]]

    @classmethod
    def of(cls, dataset: Dataset) -> "AuditLinks":
        """Audit the sources of a study; where it has no page of the audit, the words stand without a link."""
        page = PAGE.file if PAGE.notebook in dataset.plan.questions else ""
        links: dict[str, tuple[Link, ...]] = defaultdict(tuple)
        for anchor, finding in published_findings(dataset):
            link = Link(f"audit, {finding.severity}: {finding.computation}", f"{page}#{anchor}" if page else "")
            for key in finding.accused:
                links[key] += (link,)
        return cls(links)

    def about(self, keys: Iterable[str]) -> tuple[Link, ...]:
        """Return what is said of some numbers, each finding once."""
        return tuple(dict.fromkeys(link for key in keys for link in self.by_key.get(key, ())))
