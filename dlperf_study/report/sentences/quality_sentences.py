"""Sentences on whether the runs can be trusted, and on what they took besides time: energy, memory, limited clocks."""

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from dlperf_study.core.errors import Severity
from dlperf_study.core.wording import counted, first_of, in_sentence
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.target_precision import MOST_FURTHER_ROUNDS
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.drift import round_effects
from dlperf_study.metrics.outcome import counted_of, disturbed_configurations
from dlperf_study.metrics.statistics import CONFIDENCE, MINIMUM_RUNS
from dlperf_study.metrics.steady_state import Answer
from dlperf_study.report import context
from dlperf_study.report.formatting import THIN_SPACE, display_name, listed, percent_at_most, plain, unit_of
from dlperf_study.report.sentences.names import NOTHING, Names, answer, quantity_text, together
from dlperf_study.report.tables.diagnostic_tables import MOST_KINDS, diagnostic_groups, subject_label
from dlperf_study.report.tables.missing import explain_unmeasured
from dlperf_study.study.job import Outcome

#: What diagnostics are about of which other sentences tell.
_REPORTED_BEFORE = frozenset(subject_label(name) for name in ("outcome", "runs_completed"))
_BACKGROUND_LOAD = subject_label("background_cores")


def no_conclusion_reason(dataset: Dataset) -> str:
    """Return that nothing can be concluded from any run, and why; empty where a configuration has an interval."""
    rows = dataset.configurations
    measured = rows[rows["throughput"].notna() | rows["token_throughput"].notna()]
    if measured.empty:
        return next(run_sentences(dataset))
    if (measured["runs_completed"] < MINIMUM_RUNS).all():
        return f"{NOTHING}: an interval needs {MINIMUM_RUNS} completed runs, and no configuration has them."
    return ""


def quick_sentence(dataset: Dataset) -> str:
    """Return how few runs a study in quick mode has, and how it is measured in full; empty for any other study."""
    if not dataset.plan.quick:
        return ""
    most = max(entry.configuration.repeats for entry in dataset.plan.entries)
    no_interval = ", so no interval" if not dataset.has_interval else ""
    runs = f"at most {counted(most, 'run')} of each configuration{no_interval}"
    form = answer("These runs are in quick mode, not for publication")
    return f"{form}: {runs}. Without --quick (of make, without QUICK=1) the study is measured in full."


def remedy_sentence(dataset: Dataset) -> str:
    """Return what to do where other programs disturbed many runs or a precision was missed; empty where neither."""
    plan, disturbance = dataset.plan, _disturbance(dataset)
    reasons = "; ".join(filter(None, (disturbance, _imprecision(dataset))))
    if not reasons:
        return ""
    if disturbance:
        return f"{answer('Re-run on an idle machine')} (`{plan.command_again}`): {reasons}."
    needed = [precision.further_rounds(plan) for precision in dataset.missed_precisions]
    if not any(runs and runs[0] <= MOST_FURTHER_ROUNDS for runs in needed):
        return f"{answer('Measure on a machine that varies less, or ask for less precision')}: {reasons}."
    minutes = plan.time_budget_minutes
    budget = f" or {minutes:g} minutes (`time_budget_minutes`)" if minutes is not None else ""
    limits = f"The study ends after {counted(plan.rounds.most, 'round')} (`max_repeats`){budget}"
    return f"{answer('Measure more runs')}: {reasons}. {limits}."


def _disturbance(dataset: Dataset) -> str:
    """Return during how many runs there was background load; empty if no number is of such a run."""
    disturbed = disturbed_configurations((dataset.whole or dataset).runs) & set(dataset.configurations["identity"])
    if not disturbed:
        return ""
    runs = f"{dataset.disturbed_runs} of {counted(len(dataset.completed_runs), 'run')}"
    configurations = counted(len(disturbed), "configuration")
    return (
        f"background load disturbed {runs}; the numbers of {configurations} include such runs, so comparisons with "
        "them have no outcome"
    )


def _imprecision(dataset: Dataset) -> str:
    """Return of how many configurations a throughput or a ratio is less precise than the study asks for."""
    missed, total = len(dataset.missed_precisions), len(dataset.reached_precisions)
    if not missed:
        return ""
    precision = f"±{100 * (dataset.plan.precision or 0.0):g}{THIN_SPACE}%"
    if missed == total:
        return f"no configuration is as precise as the {precision} asked for"
    verb = "is" if missed == 1 else "are"
    return f"{missed} of {counted(total, 'configuration')} {verb} less precise than the {precision} asked for"


def run_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield how many runs completed, how the others ended, and which configurations have no number."""
    yield f"{'; '.join(filter(None, (_completed(dataset), without_number(dataset))))}."


def _completed(dataset: Dataset) -> str:
    outcomes, unmeasured = dataset.runs["outcome"].value_counts(), unmeasured_runs(dataset)
    completed, total = int(outcomes.get(Outcome.COMPLETED, 0)), int(outcomes.sum()) + unmeasured
    other_endings = [
        f"{count} {display_name(outcome)}" for outcome, count in outcomes.items() if outcome != Outcome.COMPLETED
    ]
    if outcomes.empty:
        planned = int(dataset.configurations["runs_planned"].sum())
        return f"{NOTHING}: none of {counted(planned, 'planned run')} was measured"
    other_endings += [f"{unmeasured} not measured"] if unmeasured else []
    if not completed:
        return f"{NOTHING}: no run completed ({listed(other_endings)})"
    if other_endings:
        return f"{completed} of {counted(total, 'run')} completed ({listed(other_endings)})"
    return "The only run completed" if total == 1 else f"All {total} runs completed"


def unmeasured_runs(dataset: Dataset) -> int:
    """Return how many planned runs have not begun, of configurations that can run: a study was interrupted."""
    rows = dataset.configurations
    rows = rows[rows["unsupported_reason"].isna()]
    begun = rows["identity"].map(dataset.run_counts).fillna(0)
    return int((rows["runs_planned"] - begun).clip(lower=0).sum())


def without_number(dataset: Dataset) -> str:
    """Return how many configurations have no number, and why; empty where all have one, or no run completed."""
    rows, is_any_completed = dataset.configurations, len(dataset.completed_runs) > 0
    missing = rows[rows["throughput"].isna() & rows["token_throughput"].isna()]
    unsupported = int(missing["unsupported_reason"].notna().sum())
    if missing.empty or not (is_any_completed or unsupported):
        return ""
    subject = f"{len(missing)} of {counted(len(rows), 'configuration')} {_have(len(missing))} no number"
    if len(missing) == 1:
        row = next(missing.itertuples())
        reason = explain_unmeasured(dataset, row, with_messages=False)
        return f"{subject}: {Names(dataset).of_configuration(row)} ({reason})"
    reason = "can't run here" if context.page_wording(dataset).is_measured else f"{_have(unsupported)} no log"
    without_rate = int((missing["runs_completed"] > 0).sum())
    unmeasured = len(missing) - unsupported - without_rate
    parts = [f"{unsupported} {reason}"] if unsupported else []
    parts += [f"{unmeasured} {_have(unmeasured)} no completed run"] if unmeasured else []
    parts += [f"the completed runs of {without_rate} have no rate"] if without_rate else []
    return f"{subject}: {listed(parts)}"


def rate_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield of how many configurations the rates are in tokens/s; nothing where all are in samples/s."""
    rows = dataset.configurations
    in_samples, in_tokens = rows["throughput"].notna(), rows["token_throughput"].notna()
    count = int((in_tokens & ~in_samples).sum())
    if count and not in_samples.any():
        yield "All rates are in tokens/s."
    elif count:
        subject = f"The rates of {count} of {counted(len(rows), 'configuration')}"
        yield f"{subject} are in tokens/s: ratios and figures, of samples/s, leave them out."


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def steadiness_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield how many runs are not steady, or that all are; nothing if their windows can't decide."""
    answers = dataset.completed_runs["steadiness"]
    runs, unsteady = counted(len(answers), "run"), int(answers.eq(Answer.NOT_STEADY).sum())
    if unsteady:
        yield f"{unsteady} of {runs} {'is' if unsteady == 1 else 'are'} not steady."
    elif len(answers) and answers.notna().all():
        yield f"The step times of {'the only run' if len(answers) == 1 else f'all {runs}'} are steady."


def drift_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield how much the machine drifted at most; nothing if the rounds can't exclude a factor of two."""
    effects = round_effects(counted_of(dataset.runs), dataset.rate)
    confidence = together(CONFIDENCE, max(1, len(effects)))
    intervals = [interval for effect in effects if (interval := effect.log_rate.interval(confidence))]
    largest = max((max(-math.expm1(interval.low), math.expm1(interval.high)) for interval in intervals), default=1.0)
    if largest < 1:
        rounds, compared = counted(len(effects), "round"), effects[0].configurations
        total = len(dataset.measured)
        of_part = f", for the {compared} of {total} configurations that have all rounds" if compared < total else ""
        yield f"The throughput of each of {rounds} is within {percent_at_most(largest)} of their mean{of_part}."


def warning_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield how many errors and warnings there are of each kind; nothing where there are none.

    Without those that other sentences are about: how runs ended, which other programs ran, and what is imprecise.
    """
    parts = []
    for severity in (Severity.ERROR, Severity.WARNING):
        kinds = _further_diagnostics(dataset, severity).most_common()
        if kinds:
            names = first_of([f"{in_sentence(subject)} {count}" for subject, count in kinds], MOST_KINDS)
            parts.append(f"{counted(sum(count for _, count in kinds), severity)} ({names})")
    if parts:
        yield f"Further diagnostics: {listed(parts)}."


def _further_diagnostics(dataset: Dataset, severity: Severity) -> Counter[str]:
    """Return how many diagnostics of a severity there are of each subject, without those of other sentences."""
    groups = [group for group in diagnostic_groups(dataset) if group.severity == severity]
    counts = Counter({group.subject: group.count for group in groups if group.subject not in _REPORTED_BEFORE})
    if severity == Severity.WARNING:
        counts -= Counter(subject_label(precision.column) for precision in dataset.missed_precisions)
        if _disturbance(dataset):
            del counts[_BACKGROUND_LOAD]
    return counts


#: The memory that decides what fits, by what it is of; the first that was counted is told.
_MEMORY = {"peak_device_bytes": "one GPU has {} in use", "peak_process_bytes": "the process of a rank holds {}"}
_MOST_REASONS = 2


def energy_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield the least and the most energy of a sample, or why there is no reading."""
    rows, runs = dataset.measured, dataset.completed_runs
    counted_rows = rows[rows["energy_per_sample"].notna()].sort_values("energy_per_sample")
    if counted_rows.empty:
        reasons = list(dict.fromkeys(runs["energy_obstacle"].dropna()))
        if reasons:
            yield f"No energy is reported: {first_of(reasons, _MOST_REASONS)}."
        return
    covered = first_of(list(dict.fromkeys(runs["energy_of"].dropna())))
    ordered = list(counted_rows.itertuples())
    ends = list(dict.fromkeys([_energy_text(dataset, ordered[0]), _energy_text(dataset, ordered[-1])]))
    amounts = f"from {ends[0]}, to {ends[1]}" if len(ends) > 1 else ends[0]
    yield f"A trained sample takes {amounts} ({covered} alone)."


def _energy_text(dataset: Dataset, row: Any) -> str:
    """Return the energy of a sample with its interval, and of which configuration it is."""
    joules = quantity_text(dataset, row, "energy_per_sample").replace(COLUMNS["energy_per_sample"].unit, "J")
    return f"{joules} with {Names(dataset).of_configuration(row)}"


def memory_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield the largest peak of memory, and which configuration has it."""
    rows = dataset.measured
    for column, sentence in _MEMORY.items():
        peaks = rows[rows[column].notna()].sort_values(column)
        if len(peaks):
            row = next(peaks.iloc[::-1].itertuples())
            value = getattr(row, column)
            unit = unit_of(column, [value])
            size = f"{plain(value / unit.size)} {unit.symbol}"
            yield f"At its peak {sentence.format(size)}, with {Names(dataset).of_configuration(row)}."
            return


def clock_sentences(dataset: Dataset) -> Iterator[str]:
    """Yield in how many runs power or temperature limited clocks; nothing where that is not known."""
    shares = dataset.completed_runs["clock_limited_share"].dropna()
    limited = shares[shares > 0]
    if len(limited):
        most = percent_at_most(limited.max())
        of_runs = f"in {len(limited)} of {counted(len(shares), 'run')}"
        yield f"Power or temperature limited the clock of a GPU {of_runs}, in up to {most} of the samples."
    elif len(shares):
        yield "Neither power nor temperature limited the clock of a GPU in any sample."
