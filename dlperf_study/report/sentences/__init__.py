"""What each page found, in sentences made from the data: one function for each page, which takes the dataset."""

from collections.abc import Callable, Iterable, Iterator

from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.measurement_comparison import MeasurementComparison
from dlperf_study.report.sentences import prediction_sentences, quality_sentences, source_sentences, step_sentences
from dlperf_study.report.sentences.names import MOST_OF_FIRST, MOST_SENTENCES, PageSentences
from dlperf_study.report.sentences.ratio_sentences import claim_sentences, reference_claims, speedup_claims
from dlperf_study.report.sentences.serious_sentences import serious_sentences
from dlperf_study.report.series import all_groups
from dlperf_study.report.tables.answers import nothing_compared
from dlperf_study.report.tables.history_tables import change_sentences
from dlperf_study.selftest.result import SelftestResult
from dlperf_study.study.study import COMPARISON, PREDICTION, PUBLISHED

__all__ = [
    "audit",
    "communication",
    "comparison",
    "history",
    "prediction",
    "published",
    "quality",
    "resources",
    "runs",
    "scaling",
    "selftest",
    "summary",
]

Texts = Iterator[str]


def summary(dataset: Dataset) -> PageSentences:
    """Return the answers to the questions of the study, in its order: several of the first, then one of each other.

    Before them, which numbers are doubtful, that the study is a quick one, and what to do where its runs were disturbed
    or tell too little.
    """
    course = (quality_sentences.quick_sentence(dataset), quality_sentences.remedy_sentence(dataset))
    opening = [*serious_sentences(dataset), *filter(None, course)]
    if nothing := quality_sentences.no_conclusion_reason(dataset):
        return PageSentences.of(dataset, [*opening, nothing, *_course(dataset)], is_first=True)
    answering = {name: _SENTENCES[name] for name in dataset.plan.questions if name in _SENTENCES}
    if {"scaling", "communication"} <= answering.keys():
        # How long a step waits for gradients is in the sentences on speedups.
        answering["communication"] = step_sentences.batch_sentences
    answers = [list(dict.fromkeys(filter(None, answer(dataset)))) for answer in answering.values()]
    answers = [answer for answer in answers if answer] or [list(_throughputs(dataset))]
    most = MOST_SENTENCES - len(opening)
    first_answer, *other_answers = answers
    chosen = first_answer[: max(MOST_OF_FIRST, most - len(other_answers))]
    first_sentences = [*opening, *chosen, *(answer[0] for answer in other_answers[: most - len(chosen)])]
    return PageSentences.of(dataset, first_sentences, is_first=True)


def scaling(dataset: Dataset) -> PageSentences:
    """Return how much faster the most devices of each series are than its baseline."""
    return _page(dataset, _speedups(dataset))


def communication(dataset: Dataset) -> PageSentences:
    """Return how long steps wait for gradients and for batches."""
    return _page(dataset, _communication(dataset))


def comparison(dataset: Dataset) -> PageSentences:
    """Return what is faster or slower than its reference."""
    return _page(dataset, _comparison(dataset))


def quality(dataset: Dataset) -> PageSentences:
    """Return whether the runs completed, were steady, and were measured on a machine that did not drift."""
    return PageSentences.of(dataset, [quality_sentences.remedy_sentence(dataset), *_course(dataset)])


def resources(dataset: Dataset) -> PageSentences:
    """Return what a sample takes in energy, the largest peak of memory, and whether clocks were limited."""
    return PageSentences.of(dataset, _resources(dataset))


def runs(dataset: Dataset) -> PageSentences:
    """Return how many runs completed, and how many configurations have none."""
    return PageSentences.of(dataset, _runs(dataset))


def prediction(dataset: Dataset) -> PageSentences:
    """Return what larger sizes give that were not measured, and what can't be predicted."""
    return _page(dataset, prediction_sentences.prediction_sentences(dataset))


def published(dataset: Dataset) -> PageSentences:
    """Return how much of what was published was measured here too, and how much both change."""
    return PageSentences.of(dataset, source_sentences.published_sentences(dataset))


def audit(dataset: Dataset) -> PageSentences:
    """Return whether anything contradicts itself."""
    return PageSentences.of(dataset, source_sentences.audit_sentences(dataset))


def history(comparison: MeasurementComparison) -> PageSentences:
    """Return what changed since the study was measured before."""
    return PageSentences(tuple(change_sentences(comparison)))


def selftest(result: SelftestResult) -> PageSentences:
    """Return whether the instrument finds what is known."""
    return PageSentences(tuple(source_sentences.selftest_sentences(result)))


def _page(dataset: Dataset, sentences: Iterable[str]) -> PageSentences:
    """Return the findings of a page, the serious ones first.

    Of a study in which nothing else can be concluded only that, and why.
    """
    nothing = quality_sentences.no_conclusion_reason(dataset)
    return PageSentences.of(dataset, [*serious_sentences(dataset), *([nothing] if nothing else sentences)])


def _speedups(dataset: Dataset) -> Texts:
    claims = speedup_claims(dataset)
    if not claims:
        yield "Nothing can be said of scaling: every configuration is its own baseline."
    yield from claim_sentences(claims)


def _communication(dataset: Dataset) -> Texts:
    exchanges, batches = step_sentences.gradient_sentences(dataset), step_sentences.batch_sentences(dataset)
    is_alone = (dataset.measured["exposed_seconds"].fillna(0) == 0).all()
    yield from (*batches, *exchanges) if is_alone else (*exchanges, *batches)


def _comparison(dataset: Dataset) -> Texts:
    claims = reference_claims(dataset)
    if not claims:
        has_groups = bool(all_groups(dataset))
        nothing = "Nothing is compared: no configuration has a reference that is another program."
        yield nothing if has_groups else nothing_compared(dataset)
    yield from claim_sentences(claims)


def _runs(dataset: Dataset) -> Texts:
    yield from quality_sentences.run_sentences(dataset)
    yield from quality_sentences.rate_sentences(dataset)


def _course(dataset: Dataset) -> Texts:
    # That all runs completed is on their own page.
    other_runs = len(dataset.runs) - len(dataset.completed_runs) + quality_sentences.unmeasured_runs(dataset)
    if other_runs or dataset.configurations["throughput"].isna().any():
        yield from _runs(dataset)
    yield from quality_sentences.steadiness_sentences(dataset)
    yield from quality_sentences.drift_sentences(dataset)
    yield from quality_sentences.warning_sentences(dataset)


def _resources(dataset: Dataset) -> Texts:
    """Yield what was measured, and that energy was not after all that was."""
    has_energy = dataset.configurations["energy_per_sample"].notna().any()
    if has_energy:
        yield from quality_sentences.energy_sentences(dataset)
    yield from quality_sentences.memory_sentences(dataset)
    yield from quality_sentences.clock_sentences(dataset)
    if not has_energy:
        yield from quality_sentences.energy_sentences(dataset)


def _throughputs(dataset: Dataset) -> Texts:
    """Yield how many configurations have a throughput, for a study that asks nothing of them."""
    total, measured = counted(len(dataset.configurations), "configuration"), len(dataset.measured)
    verb = "was" if measured == 1 else "were"
    yield f"{measured} of {total} {verb} measured; the study asks no question of them."


_SENTENCES: dict[str, Callable[[Dataset], Texts]] = {
    "scaling": _speedups,
    "communication": _communication,
    COMPARISON: _comparison,
    PUBLISHED: source_sentences.published_sentences,
    "audit": source_sentences.audit_sentences,
    # What to do about it is the first sentence in any case.
    "quality": _course,
    "resources": _resources,
    PREDICTION: prediction_sentences.prediction_sentences,
}
