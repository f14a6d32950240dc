"""Whether the runs can be trusted."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from dlperf_study.core.errors import Severity
from dlperf_study.dataset.cells import is_missing
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.serious_diagnostics import failed_apart
from dlperf_study.dataset.target_ci import MOST_FURTHER_ROUNDS
from dlperf_study.findings import reasons
from dlperf_study.findings.reasons import NoResult, Reason
from dlperf_study.metrics.drift import round_effects
from dlperf_study.metrics.run_status import disturbed_configurations, select_counted
from dlperf_study.metrics.statistics import CONFIDENCE, MINIMUM_RUNS
from dlperf_study.metrics.steady_state import Answer
from dlperf_study.study.job import RunStatus

#: The subjects of diagnostics that other findings are about.
REPORTED_ELSEWHERE = ("status", "runs_completed", "steadiness")
BACKGROUND_LOAD = "background_cores"


class Advice(StrEnum):
    """What makes CIs narrower."""

    MORE_ROUNDS = "more_rounds"
    OTHER_MACHINE = "other_machine"
    IDLE_MACHINE = "idle_machine"


@dataclass(frozen=True)
class TrainedApart:
    """Runs that failed because their ranks ended with different parameters; they are in no number."""

    runs: int
    subjects: tuple[str, ...]


@dataclass(frozen=True)
class Implausible:
    """An error that makes numbers doubtful: its message, their columns and configurations."""

    message: str
    columns: tuple[str, ...]
    subjects: tuple[str, ...]


@dataclass(frozen=True)
class QuickMode:
    """A study in quick mode."""

    max_runs: int
    has_interval: bool
    has_make: bool = True


@dataclass(frozen=True)
class BackgroundLoad:
    """Runs with background load; ``configurations``: how many have numbers of such runs."""

    runs: int
    total: int
    configurations: int
    command: str


@dataclass(frozen=True)
class TargetMissed:
    """Configurations without a CI, or with one wider than the target."""

    missed: int
    total: int
    target: float
    advice: Advice
    max_rounds: int
    max_minutes: float | None


@dataclass(frozen=True)
class NoConclusion:
    """A study in which no configuration has runs enough for a CI."""

    needed_runs: int


@dataclass(frozen=True)
class Runs:
    """How the runs ended; ``others``: those that did not complete, by status; of logs, those that were refused."""

    completed: int
    total: int
    others: tuple[tuple[str, int], ...]
    is_ingested: bool = False


@dataclass(frozen=True)
class Unmeasured:
    """Configurations without a throughput."""

    missing: int
    total: int
    reasons: tuple[tuple[Reason, int], ...]


@dataclass(frozen=True)
class NoThroughput:
    """The only configuration without a throughput."""

    subject: str
    no_result: NoResult


@dataclass(frozen=True)
class TokensOnly:
    """Configurations whose throughput is known in tokens/s only."""

    count: int
    total: int


@dataclass(frozen=True)
class NotSteady:
    """Runs whose step times still changed in the timed window, of those whose windows can decide it."""

    runs: int
    total: int


@dataclass(frozen=True)
class Drift:
    """The largest deviation of a round from the mean of all that the runs don't exclude.

    It is of the configurations that have all rounds: ``compared`` of ``total``.
    """

    rounds: int
    limit: float
    compared: int
    total: int


@dataclass(frozen=True)
class OtherDiagnostics:
    """Errors and warnings that no other finding is about."""

    errors: int
    warnings: int


def implausible(dataset: Dataset) -> Iterator[object]:
    """Yield errors that make numbers doubtful, and ranks that trained apart."""
    apart = failed_apart(dataset.runs)
    if len(apart):
        failed = set(apart["configuration_id"])
        subjects = [configuration_id for configuration_id in dataset.configuration_rows if configuration_id in failed]
        yield TrainedApart(len(apart), tuple(subjects))
    subjects_by_error: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for diagnostic in dataset.serious_diagnostics:
        subjects_by_error.setdefault((diagnostic.message, diagnostic.columns), []).append(diagnostic.configuration_id)
    for (message, columns), configuration_ids in subjects_by_error.items():
        yield Implausible(message, columns, tuple(configuration_ids))


def quick_mode(dataset: Dataset) -> Iterator[QuickMode]:
    """Yield that a study is in quick mode."""
    if dataset.plan.quick:
        max_runs = max(entry.configuration.repetitions for entry in dataset.plan.entries)
        yield QuickMode(max_runs, dataset.has_interval, not dataset.plan.is_program)


def remedies(dataset: Dataset) -> Iterator[object]:
    """Yield background load in numbers, and missed targets."""
    plan, load = dataset.plan, background_load(dataset)
    if load:
        yield load
    missed = dataset.missed_ci_widths
    if missed:
        advice = Advice.IDLE_MACHINE if load else Advice.OTHER_MACHINE
        needed = [precision.further_rounds(plan) for precision in missed]
        if not load and any(rounds is None or rounds[0] <= MOST_FURTHER_ROUNDS for rounds in needed):
            advice = Advice.MORE_ROUNDS
        total, target = len(dataset.reached_ci_widths), plan.target_ci or 0.0
        yield TargetMissed(len(missed), total, target, advice, plan.rounds.most, plan.time_budget_minutes)


def background_load(dataset: Dataset) -> BackgroundLoad | None:
    """Return the background load in numbers; None without any."""
    disturbed = disturbed_configurations((dataset.whole or dataset).runs) & set(
        dataset.configurations["configuration_id"]
    )
    if not disturbed:
        return None
    total = len(dataset.completed_runs)
    return BackgroundLoad(dataset.disturbed_runs, total, len(disturbed), dataset.plan.rerun_command)


def no_conclusion(dataset: Dataset) -> Iterator[object]:
    """Yield why no run allows a conclusion, if none does."""
    rows = dataset.configurations
    measured = rows[rows["throughput"].notna() | rows["token_throughput"].notna()]
    if measured.empty:
        yield runs(dataset)
    elif (measured["runs_completed"] < MINIMUM_RUNS).all():
        yield NoConclusion(MINIMUM_RUNS)


def course(dataset: Dataset) -> Iterator[object]:
    """Yield incomplete runs, changing step times, drift and other diagnostics."""
    ended = runs(dataset)
    if ended.completed < ended.total:
        yield ended
    yield from unmeasured(dataset)
    steadiness = dataset.completed_runs["steadiness"]
    not_steady = int(steadiness.eq(Answer.NOT_STEADY).sum())
    if not_steady:
        yield NotSteady(not_steady, len(steadiness.dropna()))
    yield from drift(dataset)
    yield from other_diagnostics(dataset)


def runs(dataset: Dataset) -> Runs:
    """Return how the runs ended; an interrupted study began fewer."""
    statuses: dict[str, int] = dataset.runs["status"].value_counts().to_dict()
    rows = dataset.configurations
    runnable = rows[rows["unsupported_reason"].isna()]
    begun = runnable["configuration_id"].map(dataset.run_counts).fillna(0)
    not_run = int((runnable["runs_planned"] - begun).clip(lower=0).sum())
    completed = statuses.pop(RunStatus.COMPLETED, 0)
    if not_run:
        statuses[Reason.NOT_RUN] = not_run
    total = completed + sum(statuses.values())
    return Runs(completed, total, tuple(statuses.items()), bool(dataset.plan.ingested_from))


def unmeasured(dataset: Dataset) -> Iterator[object]:
    """Yield the configurations without a throughput, one by name and several by reason; then those in tokens/s."""
    missing: dict[str, NoResult] = {}
    tokens_only = 0
    for configuration_id in dataset.configurations["configuration_id"]:
        row = dataset.configuration_rows[configuration_id]
        no_result = reasons.no_throughput(dataset, row)
        if no_result and no_result.reason == Reason.TOKENS_ONLY:
            tokens_only += 1
        elif no_result and is_missing(row.token_throughput) and is_missing(row.throughput):
            missing[configuration_id] = reasons.without_messages(no_result)
    total = len(dataset.configurations)
    if len(missing) == 1:
        yield NoThroughput(*missing.popitem())
    elif missing:
        by_reason = Counter(no_result.reason for no_result in missing.values())
        yield Unmeasured(len(missing), total, tuple(by_reason.most_common()))
    if tokens_only:
        yield TokensOnly(tokens_only, total)


def drift(dataset: Dataset) -> Iterator[Drift]:
    """Yield the largest drift, unless the rounds allow a factor of two."""
    effects = round_effects(select_counted(dataset.runs), dataset.throughput_column)
    limits = []
    for effect in effects:
        interval = effect.log_throughput.interval(1 - (1 - CONFIDENCE) / len(effects))
        if interval:
            limits.append(max(-math.expm1(interval.low), math.expm1(interval.high)))
    if limits and max(limits) < 1:
        yield Drift(len(effects), max(limits), effects[0].configurations, len(dataset.measured))


def other_diagnostics(dataset: Dataset) -> Iterator[OtherDiagnostics]:
    """Yield how many errors and warnings no other finding is about."""
    diagnostics = dataset.diagnostics
    remaining = diagnostics[~diagnostics["subject"].isin(REPORTED_ELSEWHERE)]
    serious = {(diagnostic.configuration_id, diagnostic.subject) for diagnostic in dataset.serious_diagnostics}
    errors = 0
    for error in remaining[remaining["severity"] == Severity.ERROR].itertuples():
        errors += (error.configuration_id, error.subject) not in serious
    warnings = Counter(remaining.loc[remaining["severity"] == Severity.WARNING, "subject"])
    warnings -= Counter(precision.column for precision in dataset.missed_ci_widths)
    if background_load(dataset):
        del warnings[BACKGROUND_LOAD]
    if errors or warnings.total():
        yield OtherDiagnostics(errors, warnings.total())
