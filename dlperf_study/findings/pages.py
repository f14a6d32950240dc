"""The findings of each page of the report, the most important first."""

from collections.abc import Callable, Iterator
from functools import partial

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
    for question in dataset.plan.sections:
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


def _speedups(dataset: Dataset) -> Findings:
    yield from ratios.lines(ratios.speedups(dataset), dataset, "baseline")


def _references(dataset: Dataset) -> Findings:
    yield from ratios.lines(ratios.references(dataset), dataset, "reference")


def _unless_nothing(findings: Callable[[Dataset], Findings], dataset: Dataset) -> Findings:
    """Yield implausible numbers, then findings, or why there are none."""
    yield from checks.implausible(dataset)
    nothing = list(checks.no_conclusion(dataset))
    yield from nothing or findings(dataset)


def quality(dataset: Dataset) -> Findings:
    """Yield remedies, then the course of the runs."""
    yield from checks.remedies(dataset)
    yield from checks.course(dataset)


def runs(dataset: Dataset) -> Findings:
    """Yield how the runs ended."""
    yield checks.runs(dataset)
    yield from checks.unmeasured(dataset)


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
scaling = partial(_unless_nothing, _speedups)
comparison = partial(_unless_nothing, _references)
#: The pages about one study, by name.
PAGES: dict[str, Callable[[Dataset], Findings]] = {
    "summary": summary,
    "scaling": scaling,
    "communication": partial(_unless_nothing, stalls.page),
    "comparison": comparison,
    "quality": quality,
    "resources": use.page,
    "runs": runs,
    "prediction": partial(_unless_nothing, predictions.page),
    "published": sources.page,
    "audit": sources.audit,
}
