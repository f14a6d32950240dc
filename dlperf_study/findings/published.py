"""Published numbers beside ours, and what the audit found."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dlperf_study.audit.audit import own_results, published_results
from dlperf_study.audit.checks import AuditResult
from dlperf_study.audit.published.points import Published
from dlperf_study.audit.published.same_question import Match, SameQuestion
from dlperf_study.core.errors import Severity
from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.study.study import PUBLISHED


@dataclass(frozen=True)
class NoSources:
    """A study that names no published source; ``can_add_section``: its study file has no section for them."""

    can_add_section: bool


@dataclass(frozen=True)
class PublishedCounts:
    """How many published throughputs are of configurations that were measured here, or planned."""

    throughputs: int
    sources: int
    measured: int
    planned: int


@dataclass(frozen=True)
class PublishedDifferences:
    """In which columns the most similar configurations differ from published ones: all of them, and some."""

    count: int
    common: tuple[str, ...]
    further: tuple[str, ...]


@dataclass(frozen=True)
class Audited:
    """How many checks examined how many items, and their diagnostics by severity."""

    is_published: bool
    checks: int
    items: int
    diagnostics: tuple[tuple[Severity, int], ...]


@kept_with_dataset
def read_published(dataset: Dataset) -> Published:
    """Return the sources that a study reproduces."""
    return Published.read(dataset.plan.published)


def no_sources(dataset: Dataset) -> NoSources:
    """Return that no source is named."""
    return NoSources(dataset.plan.can_add_section(PUBLISHED))


def page(dataset: Dataset) -> Iterator[object]:
    """Yield how many published numbers were measured here, and why not."""
    if not dataset.plan.published:
        yield no_sources(dataset)
        return
    matches = SameQuestion(read_published(dataset).points, dataset.configurations).matches()
    measured_identities = set(dataset.measured["configuration_id"])
    measured = planned = 0
    for match in matches:
        if measured_identities.intersection(match.configuration_ids):
            measured += 1
        elif match.configuration_ids:
            planned += 1
    yield PublishedCounts(len(matches), len(dataset.plan.published), measured, planned)
    yield from differences(matches)


def differences(matches: Sequence[Match]) -> Iterator[PublishedDifferences]:
    """Yield in what the most similar configurations differ from those published numbers that have none of ours."""
    unmatched = [match for match in matches if not match.configuration_ids]
    counts = Counter(difference.name for match in unmatched for difference in match.differences)
    if counts:
        common = tuple(name for name in counts if counts[name] == len(unmatched))
        further = tuple(name for name in counts if name not in common)
        yield PublishedDifferences(len(unmatched), common, further)


def audit(dataset: Dataset) -> Iterator[Audited]:
    """Yield what the audit found in our and published numbers."""
    yield _audited(own_results(dataset), is_published=False)
    if dataset.plan.published:
        yield _audited(published_results(dataset), is_published=True)


def _audited(results: Sequence[AuditResult], is_published: bool) -> Audited:
    checks = items = 0
    for result in results:
        checks += result.examined > 0
        items += result.examined
    diagnostics = []
    for severity in reversed(Severity):
        count = sum(result.count(severity) for result in results)
        if count:
            diagnostics.append((severity, count))
    return Audited(is_published, checks, items, tuple(diagnostics))
