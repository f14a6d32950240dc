"""What each page found, in sentences made from the data: one function for each page, which takes the dataset."""

from collections.abc import Callable, Iterable, Iterator

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.findings import quality_sentences, source_sentences, step_sentences
from dlperf_study.report.findings.finding_list import MOST_SENTENCES, Findings
from dlperf_study.report.findings.ratio_sentences import reference_claims, sentences, speedup_claims
from dlperf_study.selftest.result import SelftestResult
from dlperf_study.study.study import COMPARISON, PUBLISHED, REPLICATION

__all__ = [
    "audit",
    "communication",
    "comparison",
    "published",
    "quality",
    "replication",
    "scaling",
    "selftest",
    "summary",
]

Sentences = Iterator[str]


def summary(dataset: Dataset) -> Findings:
    """Return the answers to the questions of the study, in its order: several of the first, one of each other."""
    if nothing := quality_sentences.why_nothing(dataset):
        return Findings.of(dataset, [nothing, *_quality(dataset)])
    asked = {name: _SENTENCES[name] for name in dataset.plan.questions if name in _SENTENCES}
    if "scaling" in asked:
        asked["scaling"] = _speedups
    if {"scaling", "communication"} <= asked.keys():
        # How long a step waits for gradients is in the sentences on speedups.
        asked["communication"] = step_sentences.on_batches
    answers = [list(dict.fromkeys(filter(None, answer(dataset)))) for answer in asked.values()]
    answers = [answer for answer in answers if answer] or [list(_throughputs(dataset))]
    first, *others = answers
    others = others[: MOST_SENTENCES - 1]
    chosen = first[: MOST_SENTENCES - len(others)]
    return Findings.of(dataset, [*chosen, *(answer[0] for answer in others)])


def scaling(dataset: Dataset) -> Findings:
    """Return how much faster the most devices of each series are than its baseline, and what that loses."""
    return _page(dataset, _scaling(dataset))


def communication(dataset: Dataset) -> Findings:
    """Return how long steps wait for gradients and for batches, and what most of an efficiency is lost to."""
    return _page(dataset, _communication(dataset))


def comparison(dataset: Dataset) -> Findings:
    """Return what is faster or slower than its reference."""
    return _page(dataset, _comparison(dataset))


def quality(dataset: Dataset) -> Findings:
    """Return whether the runs completed, were steady, and were measured on a machine that did not drift."""
    return Findings.of(dataset, _quality(dataset))


def published(dataset: Dataset) -> Findings:
    """Return how much of what was published has a measured number next to it."""
    return Findings.of(dataset, source_sentences.on_published(dataset))


def replication(dataset: Dataset) -> Findings:
    """Return what the original asked, and how much of it is answered here."""
    return Findings.of(dataset, source_sentences.on_replication(dataset))


def audit(dataset: Dataset) -> Findings:
    """Return whether anything contradicts itself."""
    return Findings.of(dataset, source_sentences.on_audit(dataset))


def selftest(result: SelftestResult) -> Findings:
    """Return whether the instrument finds what is known."""
    return Findings(tuple(source_sentences.on_selftest(result)))


def _page(dataset: Dataset, found: Iterable[str]) -> Findings:
    """Return the findings of a page; of a study in which nothing can be concluded only that, and why."""
    nothing = quality_sentences.why_nothing(dataset)
    return Findings.of(dataset, [nothing] if nothing else found)


def _speedups(dataset: Dataset) -> Sentences:
    claims = speedup_claims(dataset)
    if not claims:
        yield "Nothing can be said of scaling: every configuration is its own baseline."
    yield from sentences(claims)


def _scaling(dataset: Dataset) -> Sentences:
    yield from _speedups(dataset)
    yield from step_sentences.on_losses(dataset)


def _communication(dataset: Dataset) -> Sentences:
    exchanges, batches = step_sentences.on_gradients(dataset), step_sentences.on_batches(dataset)
    is_alone = (context.measured(dataset)["exposed_seconds"].fillna(0) == 0).all()
    yield from (*batches, *exchanges) if is_alone else (*exchanges, *batches)
    yield from step_sentences.on_losses(dataset)


def _comparison(dataset: Dataset) -> Sentences:
    claims = reference_claims(dataset)
    if not claims:
        yield "Nothing is compared: no configuration has a reference that is another program."
    yield from sentences(claims)


def _quality(dataset: Dataset) -> Sentences:
    yield from quality_sentences.on_runs(dataset)
    yield from quality_sentences.on_missing_configurations(dataset)
    yield from quality_sentences.on_steadiness(dataset)
    yield from quality_sentences.on_drift(dataset)
    yield from quality_sentences.on_warnings(dataset)


def _throughputs(dataset: Dataset) -> Sentences:
    """Yield how many configurations have a throughput, for a study that asks nothing of them."""
    total, measured = len(dataset.configurations), len(context.measured(dataset))
    yield f"{measured} of {total} configurations were measured; the study asks no question of them."


_SENTENCES: dict[str, Callable[[Dataset], Sentences]] = {
    "scaling": _scaling,
    "communication": _communication,
    COMPARISON: _comparison,
    PUBLISHED: source_sentences.on_published,
    "audit": source_sentences.on_audit,
    "quality": _quality,
    REPLICATION: source_sentences.on_replication,
}
