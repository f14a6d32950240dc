"""The paragraph on methods of a paper: what was done for the numbers of a study, from its runs, not from its plan."""

from collections.abc import Iterator

import pandas as pd

from dlperf_study import __version__
from dlperf_study.core.wording import counted
from dlperf_study.dataset.configuration_table import VERDICTS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.dataset.target_precision import too_wide
from dlperf_study.findings import quality
from dlperf_study.metrics.columns import column_named
from dlperf_study.metrics.comparison import EQUAL, RATIOS
from dlperf_study.metrics.environment import VERSION_PREFIX
from dlperf_study.metrics.outcome import begin_and_end, disturbed_configurations
from dlperf_study.metrics.statistics import MINIMUM_RUNS
from dlperf_study.metrics.steady_state import Answer, steadiness_tolerance
from dlperf_study.report import context
from dlperf_study.report.formatting import display_name, distinct_levels, latex_escaped, listed
from dlperf_study.report.say import LATEX, say
from dlperf_study.study.configuration import parameters_in_scope
from dlperf_study.study.job import BLOCKS, ROUNDS
from dlperf_study.study.parameter import Scope

#: What is named of every training, also where captions take it as known.
_ALSO_NAMED = ("classes", "optimizer")
#: What other sentences name, or the batch that a kind of scaling holds constant.
_NAMED_ELSEWHERE = (
    *("framework", "strategy", "model", "nodes", "devices_per_node", "servers", "batch_per_device"),
    *context.SIZES,
)
#: How many letters of a commit identify it.
_COMMIT = 12


def methods(dataset: Dataset) -> str:
    """Return the paragraph as LaTeX; its citations are in ``references.bib``."""
    measured_by = _measured if context.page_wording(dataset).is_measured else _ingested
    return " ".join(filter(None, measured_by(dataset))) + "\n"


def _measured(dataset: Dataset) -> Iterator[str]:
    """Yield the sentences on a study that was measured."""
    runs, rows = dataset.completed_runs, dataset.measured
    stretch = context.stretch_of_time(runs)
    yield latex_escaped(_training(dataset))
    yield latex_escaped(_settings(dataset))
    yield (
        f"We measured {counted(len(rows), 'configuration')} in {counted(len(runs), 'completed run')}"
        f"{f' within {stretch}' if stretch else ''} with dlperf\\_study "
        f"{__version__}{_commits(runs)}~\\cite{{dlperf_study}}; each run is a new start of all processes."
    )
    yield from say([quality.runs(dataset), *quality.unmeasured(dataset)], LATEX, dataset)
    yield _order(dataset)
    fewest, most = int(rows["runs_completed"].min()), int(rows["runs_completed"].max())
    repeats = counted(most, "completed run") if fewest == most else f"{fewest} to {most} completed runs"
    yield f"Each configuration has {repeats}."
    yield _precision(dataset)
    yield _disturbances(dataset)
    yield _windows(rows)
    yield _steadiness(dataset)
    yield from map(latex_escaped, context.breakdown_notes(dataset))
    yield _statistics(dataset)
    if dataset.plan.quick:
        yield r"\textbf{These runs are in quick mode: not for publication.}"


def _training(dataset: Dataset) -> str:
    """Return what was trained with which software, and on which machine."""
    runs, rows = dataset.completed_runs, dataset.measured
    libraries = context.versions(runs)
    nodes, cores = int(rows["nodes"].max()), _counted_levels(runs, "cores", "core")
    kind = ": ".join(filter(None, (_known(runs, "device"), _known(runs, "device_name"))))
    machine = f"{counted(nodes, 'node')}{f' with {cores}' if cores else ''}"
    link, python = _known(runs, "link"), _known(runs, "python_version")
    under = [*filter(None, (python and f"Python {python}", _known(runs, "system")))]
    sentence = f"We trained {_known(rows, _trained(dataset))}{_parallelism(dataset)}"
    sentence += f"{f' with {libraries}' if libraries else ''} on "
    sentence += f"{_counted_levels(rows, 'world_size', 'device')}{f' ({kind})' if kind else ''} of {machine}"
    sentence += f"{f' (link: {link})' if link else ''}{f', under {listed(under)}' if under else ''}."
    return sentence


def _parallelism(dataset: Dataset) -> str:
    """Return the frameworks, each with its strategies: `` by PyTorch DDP (all-reduce)``; empty of a user's program.

    A framework that trained some of the models has their names.
    """
    if dataset.plan.is_program:
        return ""
    rows, parts = dataset.measured, []
    for name, of_framework in rows.groupby("framework", sort=False):
        trained_all = of_framework["model"].nunique() == rows["model"].nunique()
        only = "" if trained_all else f"; {context.levels(of_framework['model'])} only"
        parts.append(f"{display_name(name)} ({context.levels(of_framework['strategy'])}{only})")
    return f" by {listed(parts)},"


def _settings(dataset: Dataset) -> str:
    """Return the settings of the training, each with its levels, as far as they are known."""
    rows = dataset.measured
    further = () if dataset.plan.is_program else _ALSO_NAMED
    departures = context.departures(rows, parameters_in_scope(Scope.WORKLOAD, Scope.NETWORK))
    unnamed = [name for name in departures if name not in _NAMED_ELSEWHERE]
    names = dict.fromkeys((*context.named_factors(dataset, rows), *further, *unnamed))
    # The first sentence says what is trained.
    names.pop(_trained(dataset))
    constant, varied = [], []
    for name in names:
        label, levels = column_named(name).words, distinct_levels(rows[name])
        if len(levels) == 1:
            constant.append(f"{label} {_known(rows, name)}")
        elif levels:
            varied.append(f"{label} ({_known(rows, name)})")
    settings = f", with {listed(constant)}" if constant else ""
    usual = context.usual_of_names(dataset)
    sentences = (
        f"Scaling was {dataset.plan.scaling}{settings}.",
        f"We varied {listed(varied)}." if varied else "",
        f"Where a name says nothing else, a configuration has {listed(usual)}." if usual else "",
    )
    return " ".join(filter(None, sentences))


def _trained(dataset: Dataset) -> str:
    return "own_program" if dataset.plan.is_program else "model"


def _known(table: pd.DataFrame, name: str) -> str:
    """Return the levels of a column as a sentence lists them; empty where none is known."""
    return context.levels(table[name]) if distinct_levels(table[name]) else ""


def _counted_levels(table: pd.DataFrame, name: str, noun: str) -> str:
    """Return the levels of a number of things with their noun: ``1 and 2 devices``; empty where none is known."""
    levels = _known(table, name)
    return f"{levels} {noun}{'' if levels == '1' else 's'}" if levels else ""


def _ingested(dataset: Dataset) -> Iterator[str]:
    """Yield the sentences on logs that other programs printed."""
    runs = dataset.completed_runs
    yield latex_escaped(context.conditions(dataset))
    yield (
        f"The numbers were read from the logs of {counted(len(runs), 'run')} by dlperf\\_study "
        f"{__version__}~\\cite{{dlperf_study}}. {latex_escaped(context.merging(dataset))}"
    )
    yield _statistics(dataset)


def _commits(runs: pd.DataFrame) -> str:
    code_versions = runs["git_commit"].dropna().unique()
    commits = [
        f"\\texttt{{{str(commit)[:_COMMIT]}}}" for commit in code_versions if not commit.startswith(VERSION_PREFIX)
    ]
    changed = " with uncommitted changes" if runs["git_dirty"].fillna(False).astype(bool).any() else ""
    return f" (commit {listed(commits)}{changed})" if commits else ""


def _order(dataset: Dataset) -> str:
    """Return in which order the runs were made."""
    plan, rounds = dataset.plan, dataset.completed_runs["round"]
    if plan.order == ROUNDS:
        missing = int(rounds.isna().sum())
        alone = f"{counted(missing, 'run')} {'shares' if missing == 1 else 'share'} no round with the others"
        repeated = f"; {alone}" if missing else ""
        return (
            "The runs were made in rounds, each of them once through its configurations, in an order that was drawn "
            f"for every other round (seed {plan.order_seed}) and reversed in the next, so that a drift of the machine "
            f"does not set configurations apart{repeated}."
        )
    if plan.order == BLOCKS:
        return "All runs of a configuration were made one after another, so ratios have no interval."
    return "The runs were started by hand."


def _precision(dataset: Dataset) -> str:
    """Return which precision was asked for and how many configurations have it; nothing where none was."""
    plan, reached = dataset.plan, dataset.reached_precisions
    if plan.precision is None:
        return ""
    aim = f"$\\pm${100 * plan.precision:g}\\,\\%"
    count = len(reached) - len(dataset.missed_precisions)
    total = counted(len(reached), "configuration")
    return f"The {aim} aimed for was reached by {count or 'none'} of {total}{_limit(dataset)}."


def _limit(dataset: Dataset) -> str:
    """Return what ended measuring before all intervals were narrow enough; empty where nothing of the study did."""
    plan = dataset.plan
    is_too_wide = dataset.runs["identity"].isin(too_wide(plan, dataset.throughputs))
    rounds = dataset.runs[is_too_wide].groupby("identity")["repetition"].max()
    if rounds.empty:
        return ""
    if (rounds >= plan.rounds.most).all():
        return f" within the {plan.rounds.most} runs of each that the study allows"
    minutes, (begin, end) = plan.time_budget_minutes, begin_and_end(dataset.runs)
    # An interrupted study ends before its budget does.
    is_spent = minutes is not None and end - begin >= pd.Timedelta(minutes=minutes)
    return f" within the time budget of {minutes:g}\\,min" if is_spent else ""


def _disturbances(dataset: Dataset) -> str:
    """Return how many completed runs background load disturbed, and which numbers include them."""
    disturbed = dataset.disturbed_runs
    if not disturbed:
        return ""
    included = len(disturbed_configurations(dataset.runs))
    if not included:
        return f"Background load disturbed {disturbed} of these runs; no number includes them."
    configurations = counted(included, "configuration")
    return (
        f"Background load disturbed {disturbed} of these runs; only the numbers of {configurations}, with fewer than "
        "three undisturbed runs, include them."
    )


def _windows(rows: pd.DataFrame) -> str:
    """Return what a throughput is of, with the length of the windows, as far as a study set one."""
    steps, seconds = _levels(rows, "measured_steps", " steps"), _levels(rows, "measured_seconds", " s")
    warmup = _levels(rows, "warmup_steps", " steps")
    # Such a window can be shorter than that, as its steps may be faster than those of the warm-up.
    by_time = f", or as many as take {seconds} at the speed of the warm-up if these are more" if seconds else ""
    over = f", over windows of at least {steps}{by_time}" if steps else ""
    after = f", after a warm-up of at least {warmup}" if warmup else ""
    return f"Throughput is that of the whole job, until its slowest rank was done{over}{after}."


def _steadiness(dataset: Dataset) -> str:
    """Return whether the windows are steady, and what that is; nothing where they can't decide."""
    answers = dataset.completed_runs["steadiness"]
    unsteady = int(answers.eq(Answer.NOT_STEADY).sum())
    if answers.empty or (answers.isna().any() and not unsteady):
        return ""
    tolerance = f"{100 * steadiness_tolerance(dataset.plan.precision):g}\\,\\%"
    criterion = (
        f"the means of its halves, and of its first and of its last quarter against the rest, within {tolerance}"
    )
    runs = f"{unsteady} of {counted(len(answers), 'run')}" if unsteady else "all runs"
    return f"The window of {runs} is {'not ' if unsteady else ''}steady ({criterion})."


def _levels(rows: pd.DataFrame, name: str, unit: str) -> str:
    """Return the lowest and the highest level of a parameter that a configuration set; empty where none did."""
    levels = rows.loc[rows[name].fillna(0) > 0, name]
    bounds = dict.fromkeys(f"{level:g}" for level in (levels.min(), levels.max())) if len(levels) else {}
    return f"{' to '.join(bounds)}{unit}" if bounds else ""


def _statistics(dataset: Dataset) -> str:
    """Return how runs became the numbers of configurations, and how these were compared, as far as they were."""
    rows = dataset.measured
    if not dataset.has_interval:
        return f"No configuration has {MINIMUM_RUNS} runs, so no number has an interval."
    intervals = (
        "Rates and ratios are geometric means over runs, times arithmetic ones, with 95\\,\\% $t$ "
        "intervals~\\cite{hoefler2015scientific} over runs, of logarithms where a number can't be negative"
    )
    # Every baseline and reference has the interval [1, 1] to itself.
    has_ratios = any(rows.loc[~rows[f"is_{role}"], f"{ratio}_low"].notna().any() for role, ratio in RATIOS.items())
    if has_ratios and dataset.completed_runs["round"].notna().any():
        intervals += "; ratios have intervals of their own~\\cite{kalibera2012quantifying}, from runs paired by round"
    elif has_ratios:
        intervals += "; intervals of ratios are Welch's~\\cite{welch1947generalization}"
    verdicts = set(pd.concat([rows[column] for column in VERDICTS.values()]).dropna())
    tests = []
    if verdicts:
        tests.append(r"\emph{Faster} and \emph{slower} are said after Holm's procedure~\cite{holm1979simple}")
    if EQUAL in verdicts:
        tests.append(r"\emph{equal within} a bound after two one-sided tests~\cite{schuirmann1987comparison}")
    if not tests:
        return f"{intervals}."
    together = "Verdicts and ranges of several numbers hold together, the interval of a single number by itself."
    return f"{intervals}. {', '.join(tests)}. {together}"
