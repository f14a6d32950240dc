"""Tables of the audit: what each check examined, and what it found."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dlperf_study.audit.audit import audit, cited_cells, severity_counts
from dlperf_study.audit.audit_check import AuditDiagnostic, CheckResult, most_severe_first
from dlperf_study.audit.result_frames import results_of_dataset, results_of_sources
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
_OWN, _PUBLISHED = "audit-own-diagnostics", "audit-published-diagnostics"


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


def published_diagnostics(dataset: Dataset) -> list[tuple[str, AuditDiagnostic]]:
    """Return what was found in the published sources a study names, each with its anchor on the page of the audit."""
    return _anchored(_checked(dataset), _PUBLISHED)


def _checked(dataset: Dataset) -> Sequence[CheckResult]:
    """Return the checks of the published sources that a study names; none where it names none."""
    names = dataset.plan.published
    return audit(results_of_sources(names)) if names else []


def _anchored(checked: Sequence[CheckResult], name: str) -> list[tuple[str, AuditDiagnostic]]:
    found = most_severe_first(diagnostic for one in checked for diagnostic in one.diagnostics)
    return [(f"{name}-{number}", diagnostic) for number, diagnostic in enumerate(found, 1)]


def _checks(checked: Sequence[CheckResult], name: str, title: str, whose: str) -> Table:
    headings = (Heading("Check"), Heading("Examined", numeric=True), Heading("Of what"), Heading("Found"))
    rows = tuple(
        (Cell(one.check.question), Cell(whole(one.examined)), Cell(one.check.examines), Cell(severity_counts(one)))
        for one in checked
    )
    return Table(name, title, whose, headings, rows, (_WEIGHTS,), empty=whose)


def _findings(found: Sequence[tuple[str, AuditDiagnostic]], name: str, title: str, whose: str, empty: str) -> Table:
    headings = tuple(map(Heading, ("Severity", "Check", "What was reckoned", "Where it stands")))
    caption = f"{whose} {_INNOCENT}" if found else whose
    return Table(name, title, caption, headings, tuple(_row(*one) for one in found), empty=empty)


def _row(anchor: str, diagnostic: AuditDiagnostic) -> tuple[Cell, ...]:
    explanations = f"Possible explanations: {'; or '.join(diagnostic.explanations)}." if diagnostic.explanations else ""
    # With spaces around them, the parts of a key may stand on several lines.
    place = cited_cells(diagnostic).replace("/", " / ")
    severity, computation = Cell(diagnostic.severity, anchor=anchor), Cell(diagnostic.computation, note=explanations)
    return severity, Cell(human(diagnostic.check)), computation, Cell(place)


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
        for anchor, diagnostic in published_diagnostics(dataset):
            link = Link(f"audit, {diagnostic.severity}: {diagnostic.computation}", f"{page}#{anchor}" if page else "")
            for key in diagnostic.diagnosed:
                links[key] += (link,)
        return cls(links)

    def about(self, keys: Iterable[str]) -> tuple[Link, ...]:
        """Return what is said of some numbers, each diagnostic once."""
        return tuple(dict.fromkeys(link for key in keys for link in self.by_key.get(key, ())))
