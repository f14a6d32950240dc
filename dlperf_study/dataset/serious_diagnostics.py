"""The errors among the diagnostics that make a ratio of a configuration wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from dlperf_study.core.errors import Severity
from dlperf_study.metrics.run_status import select_completed
from dlperf_study.records import rank_agreement, run_agreement

_RATIOS = ("speedup", "efficiency", "relative_throughput")
#: The ratios that the denominator of a row makes doubtful, and its name, by the column of its identity.
_DENOMINATORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "baseline_id": ("baseline", ("speedup", "efficiency")),
    "reference_id": ("reference", ("relative_throughput",)),
}
#: The columns that an error makes doubtful, by its subject; the most serious subject first.
DOUBTFUL_COLUMNS: dict[str, tuple[str, ...]] = {
    rank_agreement.PROGRAM: ("throughput", "token_throughput", *_RATIOS),
    "speedup": ("speedup", "efficiency"),
    "relative_throughput": ("relative_throughput",),
}
TRAINED_APART = run_agreement.TRAINED_APART


@dataclass(frozen=True)
class SeriousDiagnostic:
    """An error about a configuration; ``columns``: those of its doubtful numbers."""

    configuration_id: str
    subject: str
    message: str
    columns: tuple[str, ...]


def serious_diagnostics(
    configurations: pd.DataFrame, runs: pd.DataFrame, diagnostics: pd.DataFrame
) -> list[SeriousDiagnostic]:
    """Return the serious diagnostics of existing numbers, the most serious first."""
    is_serious = (diagnostics["severity"] == Severity.ERROR) & diagnostics["subject"].isin(list(DOUBTFUL_COLUMNS))
    completed = set(select_completed(runs)[["configuration_id", "repetition"]].itertuples(index=False, name=None))
    rows = configurations.set_index("configuration_id")
    serious: dict[tuple[str, str], SeriousDiagnostic] = {}
    for error in diagnostics[is_serious].itertuples():
        counts = pd.isna(error.repetition) or (error.configuration_id, error.repetition) in completed
        if not counts or error.configuration_id not in rows.index:
            continue
        subject, configuration_id = str(error.subject), str(error.configuration_id)
        columns = tuple(rows.loc[configuration_id, list(DOUBTFUL_COLUMNS[subject])].dropna().index)
        if columns:
            first = SeriousDiagnostic(configuration_id, subject, str(error.message), columns)
            serious.setdefault((subject, configuration_id), first)
    every = list(serious.values())
    for diagnostic in serious.values():
        if diagnostic.subject == rank_agreement.PROGRAM:
            # All ratios of a configuration with an error of its own are doubtful already.
            of_others = _doubtful_ratios(configurations, diagnostic)
            every += [ratio for ratio in of_others if (rank_agreement.PROGRAM, ratio.configuration_id) not in serious]
    subjects = list(DOUBTFUL_COLUMNS)
    return sorted(every, key=lambda diagnostic: subjects.index(diagnostic.subject))


def _doubtful_ratios(configurations: pd.DataFrame, denominator: SeriousDiagnostic) -> Iterator[SeriousDiagnostic]:
    """Yield the configurations whose ratios are relative to a doubtful throughput."""
    for column, (name, ratios) in _DENOMINATORS.items():
        rows = configurations[configurations[column] == denominator.configuration_id]
        for _, row in rows[rows["configuration_id"] != denominator.configuration_id].iterrows():
            columns = tuple(row[list(ratios)].dropna().index)
            if columns:
                message = f"in its {name} {denominator.message}"
                yield SeriousDiagnostic(str(row["configuration_id"]), rank_agreement.PROGRAM, message, columns)


def failed_apart(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that failed because their ranks diverged."""
    return runs[runs["reason"].astype(str).str.contains(TRAINED_APART, regex=False)]


def with_problems(configurations: pd.DataFrame, serious: Sequence[SeriousDiagnostic]) -> pd.DataFrame:
    """Return the configurations with their messages as problem."""
    messages = pd.DataFrame(map(vars, serious), columns=["configuration_id", "message"])
    problems = configurations["configuration_id"].map(messages.groupby("configuration_id")["message"].agg("; ".join))
    return configurations.assign(problem=problems.astype(configurations["problem"].dtype))
