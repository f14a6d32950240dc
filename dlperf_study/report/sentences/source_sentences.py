"""Sentences on published sources, the audit and the self-test."""

from collections.abc import Iterator, Sequence

from dlperf_study.audit.audit import own_results, published_results
from dlperf_study.audit.checks import AuditResult
from dlperf_study.audit.published.same_question import SameQuestion
from dlperf_study.core.errors import Severity
from dlperf_study.core.wording import counted
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import listed, value_text
from dlperf_study.report.sentences.names import answer
from dlperf_study.report.series import published_of
from dlperf_study.report.tables.printed_tables import changes
from dlperf_study.report.tables.published_tables import unanswered_reason
from dlperf_study.selftest.result import SelftestResult, Status


def published_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield how many published throughputs have one of ours next to them, and why the others have none."""
    if not dataset.plan.published:
        yield context.NO_SOURCES
        return
    points = published_of(dataset).points
    matches = SameQuestion(points, dataset.configurations).matches()
    measured = set(dataset.measured["identity"])
    answered = [bool(measured.intersection(match.identities)) for match in matches]
    total = f"{counted(len(answered), 'throughput')} of {counted(len(dataset.plan.published), 'source')}"
    if not any(answered):
        verdict = answer("Nothing comparable was measured here")
        yield f"{verdict}: of {total} none is of a configuration that was measured here too."
    else:
        verb = "is" if sum(answered) == 1 else "are"
        yield f"Of {total}, {sum(answered)} {verb} of a configuration that was measured here too."
    yield unanswered_reason(match for match, is_answered in zip(matches, answered, strict=True) if not is_answered)
    if planned := sum(bool(match.identities) for match in matches) - sum(answered):
        yield f"{planned} of them {'is' if planned == 1 else 'are'} of planned configurations without a completed run."
    for change in changes(dataset):
        ratios = [value_text(ratio.bounded_factor, "×", decision=1) for ratio in (change.published, change.ours)]
        where = f"{change.table}, {change.program}, {change.between}"
        yield f"{where}: throughput changes by {ratios[0]} in print and by {ratios[1]} here."


def audit_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield what the audit says of the numbers of the study, and of the published ones."""
    is_measured = context.page_wording(dataset).is_measured
    yield _audited(own_results(dataset), "our numbers" if is_measured else "these numbers")
    if dataset.plan.published:
        yield _audited(published_results(dataset), "the published numbers")


def _audited(results: Sequence[AuditResult], about: str) -> str:
    examined, checks = sum(result.examined for result in results), sum(result.examined > 0 for result in results)
    scope = f"{counted(checks, 'check')} of {counted(examined, 'item')}"
    counts = []
    for severity in reversed(Severity):
        if count := sum(result.count(severity) for result in results):
            counts.append(counted(count, severity))
    if not examined:
        return f"There is nothing to examine in {about}."
    if not counts:
        return f"Nothing contradicts itself in {about}: {scope}."
    return f"The audit has {listed(counts)} about {about}: {scope}."


def selftest_sentences(result: SelftestResult) -> Iterator[str]:
    """Yield whether a self-test passed, and which of its checks did not."""
    passed = len(result.names_of(Status.PASSED))
    if result.passed:
        yield f"The instrument passed: {passed} of {counted(len(result.done), 'check')} with known answers."
    else:
        yield f"The instrument did not pass: {passed} of {counted(len(result.done), 'check')} passed."
    for status in (Status.FAILED, Status.UNDECIDED, Status.SKIPPED):
        if names := result.names_of(status):
            yield f"{status.capitalize()}: {listed(names)}."
    if result.power:
        yield f"{result.power}."
    if result.quick:
        yield "This was quick mode: it shows that the checks work, not that the instrument is right."
