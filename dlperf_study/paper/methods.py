"""The paragraph of a paper that says how a study was measured: what, how often, in which order, with which interval."""

from collections.abc import Iterator

import pandas as pd

from dlperf_study import __version__
from dlperf_study.analysis.statistics import MINIMUM_RUNS
from dlperf_study.columns import COLUMNS
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.plan.plan import Plan
from dlperf_study.report import context
from dlperf_study.report.formatting import listed
from dlperf_study.report.tables.latex import latex_escaped
from dlperf_study.study.turn import BLOCKS, ROUNDS
from dlperf_study.wording import counted

#: How many letters of a commit identify it.
_COMMIT = 12


def methods(dataset: Dataset) -> str:
    """Return the paragraph as LaTeX; its citations are in ``references.bib``."""
    measured_by = _measured if context.page_wording(dataset).is_measured else _ingested
    return " ".join(measured_by(dataset)) + "\n"


def _measured(dataset: Dataset) -> Iterator[str]:
    """Yield the sentences on a study that was measured."""
    runs, rows = context.completed_runs(dataset), context.measured(dataset)
    yield latex_escaped(context.conditions(dataset))
    yield (
        f"We measured {counted(len(rows), 'configuration')} in {counted(len(runs), 'completed run')} with "
        f"dlperf\\_study {__version__}{_commits(runs)}~\\cite{{dlperf_study}}; each run is a new start of all "
        "processes."
    )
    yield _order(dataset)
    yield _windows(rows)
    yield _statistics(dataset)
    if dataset.plan.quick:
        yield r"\textbf{These are runs of the quick form: not for publication.}"


def _ingested(dataset: Dataset) -> Iterator[str]:
    """Yield the sentences on logs that other programs printed."""
    runs = context.completed_runs(dataset)
    yield latex_escaped(context.conditions(dataset))
    yield (
        f"The numbers were read from the logs of {counted(len(runs), 'run')} by dlperf\\_study "
        f"{__version__}~\\cite{{dlperf_study}}. {latex_escaped(context.merging(dataset))}"
    )
    yield _statistics(dataset)


def _commits(runs: pd.DataFrame) -> str:
    commits = [f"\\texttt{{{str(commit)[:_COMMIT]}}}" for commit in runs["git_commit"].dropna().unique()]
    changed = " with uncommitted changes" if runs["git_dirty"].fillna(False).astype(bool).any() else ""
    return f" (commit {listed(commits)}{changed})" if commits else ""


def _order(dataset: Dataset) -> str:
    plan = dataset.plan
    if plan.order == ROUNDS:
        in_rounds = (
            f"The runs were made in rounds, each of them once through every configuration in an order of its own (seed "
            f"{plan.order_seed}), so that a drift of the machine does not set configurations apart."
        )
        return f"{in_rounds}{_added_rounds(plan)}"
    if plan.order == BLOCKS:
        return "All runs of a configuration were made one after another, so ratios have no interval."
    return "The runs were started by hand."


def _added_rounds(plan: Plan) -> str:
    """Return which rounds followed those of the plan; nothing for a study without a precision."""
    if plan.precision is None:
        return ""
    return (
        f" Further rounds measured those configurations only whose intervals were wider than "
        f"$\\pm${100 * plan.precision:g}\\,\\%, up to {plan.max_repeats} rounds in all."
    )


def _windows(rows: pd.DataFrame) -> str:
    """Return how long a window is, with each level that occurs."""
    names = ("warmup_steps", "measured_steps", "measured_seconds")
    parts = []
    for name in names:
        if rows[name].notna().any():
            bounds = dict.fromkeys(f"{level:g}" for level in (rows[name].min(), rows[name].max()))
            parts.append(f"{COLUMNS[name].words} {' to '.join(bounds)} {COLUMNS[name].unit}")
    return (
        f"Throughput is that of the whole job, until its slowest rank was done, over windows of at least the given "
        f"length ({latex_escaped('; '.join(parts))})."
    )


def _statistics(dataset: Dataset) -> str:
    if (context.measured(dataset)["runs_completed"] < MINIMUM_RUNS).all():
        return f"No configuration has {MINIMUM_RUNS} runs, so no number has an interval."
    paired = "in ratios, runs of the same round are paired~\\cite{kalibera2012quantifying}"
    independent = "intervals of ratios are Welch's~\\cite{welch1947generalization}"
    ratios = paired if dataset.plan.order == ROUNDS else independent
    return (
        "Rates and ratios are geometric means over runs, times arithmetic ones, with 95\\,\\% $t$ intervals over "
        f"runs~\\cite{{hoefler2015scientific}}; {ratios}. \\emph{{Faster}} and "
        "\\emph{slower} are said after Holm's procedure~\\cite{holm1979simple}, \\emph{equal within} a bound after two "
        "one-sided tests~\\cite{schuirmann1987comparison}."
    )
