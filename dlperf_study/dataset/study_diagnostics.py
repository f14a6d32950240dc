"""Diagnostics across runs: of a configuration, of a round, whose runs must have seen one machine, and of a study."""

from collections.abc import Iterator, Sequence

import pandas as pd

from dlperf_study.core.errors import Diagnostic, Severity
from dlperf_study.core.wording import counted, throughput_text
from dlperf_study.metrics import run_status
from dlperf_study.metrics.columns import COLUMNS
from dlperf_study.metrics.metric import STUDY
from dlperf_study.study.job import INTERLEAVED, SEQUENTIAL, RunStatus
from dlperf_study.study.plan import Plan

CAUSES = ("background_cores", "other_processes", "gpu_utilisation", "clock_limited_share", "sm_clock")
#: A run that is slower than each undisturbed run by a smaller share is no outlier.
MIN_SLOWDOWN = 0.05
#: With fewer undisturbed runs nothing is known of how runs differ.
MIN_UNDISTURBED = 2
#: By how much the clocks of the runs of a configuration may differ, as a share of the slowest.
CLOCK_SPREAD = 0.03


def study_diagnostics(plan: Plan, runs: pd.DataFrame) -> list[Diagnostic]:
    """Return the diagnostics that need several runs."""
    completed = run_status.select_completed(runs)
    return [
        *unused_gpus(plan),
        *number_of_runs(plan, runs),
        *other_orders(plan, completed),
        *varying_clocks(completed),
        *mixed_environments(completed),
        *mixed_hosts(completed),
        *uncommitted(completed),
    ]


def unused_gpus(plan: Plan) -> Iterator[Diagnostic]:
    """The runs were measured on the CPU of a GPU machine."""
    if plan.why_not_gpu:
        yield Diagnostic("device", plan.why_not_gpu, Severity.NOTE)


def number_of_runs(plan: Plan, runs: pd.DataFrame) -> Iterator[Diagnostic]:
    """Fewer or more runs than planned completed, memory aside."""
    counts = runs.loc[runs["status"] == RunStatus.COMPLETED, "configuration_id"].value_counts().to_dict()
    not_fitting = set(runs.loc[runs["status"] == RunStatus.OUT_OF_MEMORY, "configuration_id"])
    # Rounds with background load are repeated.
    repeated = 0
    if run_status.had_background_load(runs).any():
        repeated = plan.rounds.planned
    for entry in plan.runnable:
        configuration_id, planned = entry.configuration.configuration_id, entry.configuration.repetitions
        count = counts.get(configuration_id, 0)
        if count < planned and (count or configuration_id not in not_fitting):
            severity = Severity.WARNING if count else Severity.ERROR
            yield Diagnostic("runs_completed", f"{count} of {planned} runs completed", severity, configuration_id)
        if count > max(planned, plan.rounds.most) + repeated:
            message = f"{counted(count, 'run')} counted, but planned: {planned}"
            yield Diagnostic("runs_completed", message, configuration_id=configuration_id)


def other_orders(plan: Plan, completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """Runs were measured in another order than the study's."""
    if plan.order != INTERLEAVED:
        return
    in_no_round = completed.loc[completed["order"] != INTERLEAVED, ["configuration_id", "order"]]
    for (configuration_id, order), runs in in_no_round.groupby(["configuration_id", "order"]):
        verb = "were"
        if len(runs) == 1:
            verb = "was"
        measured = (
            f"{counted(len(runs), 'run')} {verb} measured {'in sequential order' if order == SEQUENTIAL else order}"
        )
        message = f"{measured}, but the study is interleaved: machine drift does not cancel in their ratios"
        yield Diagnostic("order", message, configuration_id=str(configuration_id))


def varying_clocks(completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """The GPU clocks differed between repetitions of a configuration."""
    for configuration_id, clocks in completed.groupby("configuration_id")["sm_clock"]:
        lowest, highest = clocks.min(), clocks.max()
        if highest > (1 + CLOCK_SPREAD) * lowest:
            message = f"the SM clock of its runs is between {lowest:.0f} and {highest:.0f} MHz"
            share = f"more than {100 * CLOCK_SPREAD:.0f} % apart"
            yield Diagnostic(
                "sm_clock",
                f"{message}, {share}: they ran under different conditions",
                configuration_id=str(configuration_id),
            )


def mixed_environments(completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """Runs that are compared were measured in different environments."""
    for column, metric in COLUMNS.items():
        if not metric.same_within:
            continue
        recorded = completed[column].dropna()
        # Nearly all columns have one value, and to group takes ten times as long as to count.
        if recorded.nunique() < 2:
            continue
        is_of_study = metric.same_within == STUDY
        groups = pd.Series("the study", completed.index) if is_of_study else completed[metric.same_within]
        values = recorded.groupby(groups, sort=False).unique()
        for name, different in values[values.map(len) > 1].items():
            message = f"the runs of {name} were measured with different {column}: {', '.join(map(str, different))}"
            yield Diagnostic(
                column, message, configuration_id=str(name) if metric.same_within == "configuration_id" else None
            )


def mixed_hosts(completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """Runs took other hosts than those of the largest run."""
    hosts = [set(names.split(", ")) for names in completed["host"].dropna().unique()]
    largest = max(hosts, key=len, default=set())
    every = set().union(*hosts)
    if every > largest:
        yield Diagnostic("host", f"the study was measured on different hosts: {', '.join(sorted(every))}")


def uncommitted(completed: pd.DataFrame) -> Iterator[Diagnostic]:
    """Runs were measured with files that are in no commit."""
    count = int(completed["git_dirty"].fillna(False).astype(bool).sum())
    if count:
        message = f"{count} of {len(completed)} runs were measured with uncommitted files"
        yield Diagnostic("git_dirty", f"{message}: others cannot reproduce them")


def outliers(runs: pd.DataFrame, run_diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield a warning for each outlier, with its cause.

    A run is disturbed if it has a warning about background load, other processes or clocks. An outlier is a disturbed
    run that is more than 5 % slower than the slowest undisturbed run of its configuration. No distribution of runs is
    assumed: a slow run without a known cause may be chance, and is not mentioned.
    """
    causes: dict[tuple[str | None, int | None], list[str]] = {}
    for diagnostic in run_diagnostics:
        if diagnostic.subject in CAUSES and diagnostic.severity is Severity.WARNING:
            causes.setdefault((diagnostic.configuration_id, diagnostic.repetition), []).append(diagnostic.message)
    completed = run_status.select_completed(runs)
    for configuration_id in dict.fromkeys(configuration_id for configuration_id, _ in causes):
        of_configuration = completed[completed["configuration_id"] == configuration_id].set_index("repetition")
        column = "token_throughput"
        if of_configuration["throughput"].notna().any():
            column = "throughput"
        throughputs = of_configuration[column].dropna()
        repetitions = [repetition for name, repetition in causes if name == configuration_id]
        is_disturbed = throughputs.index.isin(repetitions)
        undisturbed = throughputs[~is_disturbed]
        if len(undisturbed) < MIN_UNDISTURBED:
            continue
        lowest = undisturbed.min()
        slow = throughputs[is_disturbed]
        for repetition, throughput in slow[slow * (1 + MIN_SLOWDOWN) < lowest].items():
            undisturbed_runs = counted(len(undisturbed), "undisturbed run")
            message = (
                f"outlier: {throughput_text(throughput)} {COLUMNS[column].unit}, and at least "
                f"{throughput_text(lowest)} in "
                f"{undisturbed_runs}. Cause: {'; '.join(causes[configuration_id, repetition])}"
            )
            yield Diagnostic(column, message, configuration_id=configuration_id, repetition=int(repetition))


def longer_than_the_communication(configurations: pd.DataFrame) -> Iterator[Diagnostic]:
    """Exposed communication is significantly longer than communication alone."""
    intervals = [
        "exposed_communication_seconds",
        "exposed_communication_seconds_low",
        "communication_seconds",
        "communication_seconds_high",
    ]
    for row in configurations[["configuration_id", *intervals]].itertuples():
        exposed, alone = row.exposed_communication_seconds_low, row.communication_seconds_high
        if pd.isna(exposed) or pd.isna(alone):
            exposed, alone = row.exposed_communication_seconds, row.communication_seconds
        if exposed > alone:
            exposed_ms, alone_ms = 1e3 * row.exposed_communication_seconds, 1e3 * row.communication_seconds
            lengths = f"{exposed_ms:.3g} ms are exposed, but communication alone takes {alone_ms:.3g} ms"
            reason = (
                "a step also waits for the slower of its ranks, and may share cores with the threads that communicate"
            )
            yield Diagnostic(
                "exposed_communication_seconds", f"{lengths}: {reason}", Severity.NOTE, row.configuration_id
            )


#: Runs of a round that begin further apart than this, and than so many times the usual, are not in one round.
LONGEST_PAUSE, LONG_PAUSES = pd.Timedelta(hours=1), 10


def leave_out_of_rounds(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[Diagnostic]]:
    """Return the runs without rounds they did not share, and diagnostics."""
    completed = run_status.select_completed(runs)[["round", "position", "started"]].dropna(subset=["round"])
    reasons = dict(_far_apart(completed)) | dict(_at_one_position(completed))
    diagnostics = []
    for index, reason in reasons.items():
        run = runs.loc[index]
        message = f"{reason}: {run_status.REMEDY}"
        diagnostics.append(
            Diagnostic("round", message, configuration_id=run["configuration_id"], repetition=int(run["repetition"]))
        )
    shared = runs["round"].mask(runs.index.isin(list(reasons)))
    return runs.assign(round=shared), diagnostics


def _at_one_position(completed: pd.DataFrame) -> Iterator[tuple[int, str]]:
    """Yield each run that has the round and position of another run; only a changed record does."""
    is_shared = completed.duplicated(["round", "position"], keep=False)
    for index in completed.index[is_shared]:
        position, round_number = completed.loc[index, ["position", "round"]]
        yield index, f"it shares position {position} of round {round_number} with another run, so a record was changed"


def _far_apart(completed: pd.DataFrame) -> Iterator[tuple[int, str]]:
    """Yield each run that began far from its round, and how far."""
    started = pd.to_datetime(completed["started"], utc=True, format="ISO8601").sort_values()
    limit = max(LONGEST_PAUSE, LONG_PAUSES * started.diff().median())
    for round_number, begun in started.groupby(completed["round"]):
        part = (begun.diff() > limit).cumsum()
        largest_part = begun[part == part.mode()[0]]
        for index in begun.index.difference(largest_part.index):
            hours = (begun[index] - largest_part).abs().min().total_seconds() / 3600
            yield index, f"it started {hours:.1f} hours apart from the other runs of round {round_number}"
