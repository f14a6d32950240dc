"""The findings of each page of the report, the most important first."""

from collections.abc import Callable, Iterator

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.findings import communication as stalls
from dlperf_study.findings import prediction as predictions
from dlperf_study.findings import published as sources
from dlperf_study.findings import quality as checks
from dlperf_study.findings import resources as use
from dlperf_study.findings import scaling as ratios
from dlperf_study.study.study import COMPARISON, PREDICTION, PUBLISHED

#: How many findings a page has, and how many of them answer the first question of the summary.
MAX_FINDINGS, MAX_FIRST = 5, 3

Findings = Iterator[object]


def summary(dataset: Dataset) -> Findings:
    """Yield implausible numbers and remedies, then answers to the questions of the study in their order."""
    opening = [*checks.implausible(dataset), *checks.quick_mode(dataset), *checks.remedies(dataset)]
    nothing = list(checks.no_conclusion(dataset))
    yield from opening
    if nothing:
        yield from [*nothing, *checks.course(dataset)]
        return
    answers, has_exposed = [], False
    for question in dataset.plan.questions:
        answer = list(_ANSWERS[question](dataset)) if question in _ANSWERS else []
        if question == "communication" and has_exposed:
            answer = list(stalls.stalls(dataset, stalls.Loss.INPUT))
        elif question == "scaling":
            # Of few comparisons with a baseline each has its exposed communication.
            has_exposed = all(isinstance(finding, ratios.Comparison) for finding in answer)
        if answer:
            answers.append(answer)
    if not answers:
        yield ratios.Measured(len(dataset.measured), len(dataset.configurations))
        return
    room = MAX_FINDINGS - len(opening)
    yield from answers[0][: max(MAX_FIRST, room - len(answers) + 1)]
    for answer in answers[1:]:
        yield answer[0]


def scaling(dataset: Dataset) -> Findings:
    """Yield the speedups at the largest device counts."""
    yield from _unless_nothing(dataset, _speedups)


def communication(dataset: Dataset) -> Findings:
    """Yield exposed communication and data-loading time."""
    yield from _unless_nothing(dataset, stalls.page)


def comparison(dataset: Dataset) -> Findings:
    """Yield the comparisons with references."""
    yield from _unless_nothing(dataset, _references)


def prediction(dataset: Dataset) -> Findings:
    """Yield predictions of larger sizes."""
    yield from _unless_nothing(dataset, predictions.page)


def quality(dataset: Dataset) -> Findings:
    """Yield remedies, then the course of the runs."""
    yield from checks.remedies(dataset)
    yield from checks.course(dataset)


def runs(dataset: Dataset) -> Findings:
    """Yield how the runs ended."""
    yield checks.runs(dataset)
    yield from checks.unmeasured(dataset)


def resources(dataset: Dataset) -> Findings:
    """Yield energy, memory and limited clocks."""
    yield from use.page(dataset)


def published(dataset: Dataset) -> Findings:
    """Yield how much of what was published was measured here too."""
    yield from sources.page(dataset)


def audit(dataset: Dataset) -> Findings:
    """Yield what contradicts itself."""
    yield from sources.audit(dataset)


def _speedups(dataset: Dataset) -> Findings:
    yield from ratios.lines(ratios.speedups(dataset), dataset, "baseline")


def _references(dataset: Dataset) -> Findings:
    yield from ratios.lines(ratios.references(dataset), dataset, "reference")


def _unless_nothing(dataset: Dataset, findings: Callable[[Dataset], Findings]) -> Findings:
    """Yield implausible numbers, then the findings of a page, or why nothing can be concluded."""
    yield from checks.implausible(dataset)
    nothing = list(checks.no_conclusion(dataset))
    yield from nothing or findings(dataset)


_ANSWERS: dict[str, Callable[[Dataset], Findings]] = {
    "scaling": _speedups,
    "communication": stalls.page,
    COMPARISON: _references,
    PUBLISHED: sources.page,
    "audit": sources.audit,
    "quality": checks.course,
    "resources": use.page,
    PREDICTION: predictions.page,
}
#: The pages about one study, by name.
PAGES: dict[str, Callable[[Dataset], Findings]] = {
    "summary": summary,
    "scaling": scaling,
    "communication": communication,
    "comparison": comparison,
    "quality": quality,
    "resources": resources,
    "runs": runs,
    "prediction": prediction,
    "published": published,
    "audit": audit,
}
