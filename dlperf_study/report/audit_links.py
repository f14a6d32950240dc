"""From a published number to what the audit says of it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dlperf_study.analysis.dataset import Dataset
from dlperf_study.report.audits import PAGE, published_findings
from dlperf_study.report.table import Link


@dataclass(frozen=True)
class AuditLinks:
    """What the audit found in the published numbers a study names, by the key of each number it doubts."""

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
