"""Sentences on whether the runs can be trusted: which completed, were steady, and whether the machine drifted."""

from collections.abc import Iterator

from dlperf_study.analysis.drift import round_effects
from dlperf_study.analysis.statistics import MINIMUM_RUNS
from dlperf_study.analysis.steady_state import Answer
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.diagnostic import Severity
from dlperf_study.report import context
from dlperf_study.report.formatting import THIN_SPACE, display_name, listed, value_text
from dlperf_study.report.sentences.page_sentences import NOTHING, answer
from dlperf_study.report.tables.diagnostic_groups import diagnostic_groups
from dlperf_study.study.job import Outcome
from dlperf_study.wording import counted, first_of

#: So many rounds that differ are named.
_MOST_ROUNDS = 3


def why_nothing(dataset: Dataset) -> str:
    """Return that nothing can be concluded from any run, and why; empty where a configuration has an interval."""
    rows = dataset.configurations
    measured = rows[rows["throughput"].notna() | rows["token_throughput"].notna()]
    if measured.empty:
        return next(on_runs(dataset))
    if (measured["runs_completed"] < MINIMUM_RUNS).all():
        return f"{NOTHING}: an interval needs {MINIMUM_RUNS} completed runs, and no configuration has them."
    return ""


def on_runs(dataset: Dataset) -> Iterator[str]:
    """Yield how many runs completed, and how the others ended."""
    outcomes, planned = dataset.runs["outcome"].value_counts(), int(dataset.configurations["runs_planned"].sum())
    completed, total = int(outcomes.get(Outcome.COMPLETED, 0)), int(outcomes.sum())
    other_endings = [
        f"{count} {display_name(outcome)}" for outcome, count in outcomes.items() if outcome != Outcome.COMPLETED
    ]
    if not total:
        yield f"{NOTHING}: none of {counted(planned, 'planned run')} was measured."
    elif not completed:
        yield f"{NOTHING}: no run completed ({listed(other_endings)})."
    elif other_endings:
        yield f"{completed} of {counted(total, 'run')} completed; the others: {listed(other_endings)}."
    else:
        yield "The only run completed." if total == 1 else f"All {total} runs completed."


def on_missing_configurations(dataset: Dataset) -> Iterator[str]:
    """Yield how many configurations have no number; nothing where all have one, or no run completed."""
    rows, is_any_completed = dataset.configurations, len(context.completed_runs(dataset)) > 0
    unsupported, has_no_samples = int(rows["unsupported_reason"].notna().sum()), rows["throughput"].isna()
    in_tokens = int((has_no_samples & rows["token_throughput"].notna()).sum())
    missing = int(has_no_samples.sum()) - in_tokens
    wording = context.page_wording(dataset)
    if missing and (is_any_completed or unsupported):
        reason = "can't run here" if wording.is_measured else f"{_have(unsupported)} no log"
        unmeasured = missing - unsupported
        parts = [f"{unsupported} {reason}"] if unsupported else []
        parts += [f"{unmeasured} {_have(unmeasured)} no completed run"] if unmeasured > 0 else []
        yield f"{missing} of {counted(len(rows), 'configuration')} {_have(missing)} no number: {listed(parts)}."
    if in_tokens:
        if in_tokens == len(rows) - missing:
            yield "All rates are in tokens/s."
        else:
            subject = f"The rates of {in_tokens} of {counted(len(rows), 'configuration')}"
            yield f"{subject} are in tokens/s: ratios and figures, of samples/s, leave them out."


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def on_steadiness(dataset: Dataset) -> Iterator[str]:
    """Yield how many runs are shown to be steady or not, and of how many that can't be told."""
    counts = context.completed_runs(dataset)["steadiness"].value_counts()
    total = int(counts.sum())
    if not total:
        return
    answers = {possible: int(counts.get(possible, 0)) for possible in Answer}
    parts = [f"{count} {_steadiness(given, count)}" for given, count in answers.items() if count]
    if total == 1:
        yield f"The only run {_steadiness(Answer(counts.index[0]), 1)}."
    elif answers[Answer.CANT_TELL] == total:
        yield f"All {total} runs {_steadiness(Answer.CANT_TELL, total)}."
    elif answers[Answer.STEADY] == total:
        yield f"The step times of all {total} runs are steady."
    else:
        yield f"Of {total} runs, {listed(parts)}."


def _steadiness(given: Answer, count: int) -> str:
    """Return what is said of as many runs: ``is steady``, ``are too short to tell whether they are steady``."""
    runs, are = ("it", "is") if count == 1 else ("they", "are")
    return f"{are} too short to tell whether {runs} {are} steady" if given == Answer.CANT_TELL else f"{are} {given}"


def on_drift(dataset: Dataset) -> Iterator[str]:
    """Yield which rounds differ from the mean of all, after Holm; nothing without rounds that can be compared."""
    effects = round_effects(context.completed_runs(dataset))
    tested = [effect for effect in effects if effect.log_rate.error is not None]
    if not tested:
        return
    different = [effect for effect in tested if effect.is_different]
    if different:
        changes = []
        for effect in different:
            change = value_text(effect.percent_change, f"{THIN_SPACE}%", decision=0.0)
            changes.append(f"round {effect.round} changed the throughput by {answer(change)}")
        yield f"The machine drifted: {first_of(changes, _MOST_ROUNDS)}; ratios are taken within rounds."
    else:
        yield f"None of {counted(len(tested), 'round')} differs from the mean of all by more than chance."


def on_warnings(dataset: Dataset) -> Iterator[str]:
    """Yield how many errors and warnings there are, and what they are about; nothing where there are none."""
    groups = diagnostic_groups(dataset)
    for severity in (Severity.ERROR, Severity.WARNING):
        kinds = [f"{group.subject} ({group.count})" for group in groups if group.severity == severity]
        if kinds:
            yield f"{severity.capitalize()}s by what they are about: {listed(kinds)}."
