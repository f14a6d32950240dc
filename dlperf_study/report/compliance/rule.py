"""A rule of measuring, what a check finds of it, and the counts that results are made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pandas as pd

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report import context
from dlperf_study.report.formatting import percent_at_most

#: A share below which two numbers are one, but for arithmetic.
NO_DIFFERENCE = 1e-9


class Compliance(StrEnum):
    """Whether a study keeps a rule."""

    MET = "met"
    NOT_MET = "not met"
    NOT_APPLICABLE = "does not apply"


@dataclass(frozen=True)
class RuleResult:
    """What a check found: whether the rule is kept, and the numbers that say so."""

    compliance: Compliance
    evidence: str

    @classmethod
    def of(cls, is_met: bool, *sentences: str) -> "RuleResult":
        """Return a result with the sentences that are not empty."""
        return cls(Compliance.MET if is_met else Compliance.NOT_MET, "; ".join(filter(None, sentences)))

    @classmethod
    def not_applicable(cls, reason: str) -> "RuleResult":
        """Return that there is nothing to check, and why."""
        return cls(Compliance.NOT_APPLICABLE, reason)


@dataclass(frozen=True)
class Rule:
    """A rule: its number or name, what it asks in a sentence, and what checks it in a study."""

    name: str
    request: str
    check: Callable[[Dataset], RuleResult]


@dataclass(frozen=True)
class Checked:
    """A rule, the name of its set, and the result of its check."""

    rule_set: str
    rule: Rule
    result: RuleResult


def of_all(phrase: str, has: pd.Series) -> str:
    """Return how many of all things are what a phrase says: ``rates with an interval: 5 of 6``."""
    return f"{phrase}: {int(has.sum())} of {len(has)}"


def at_most(share: float) -> str:
    """Return a share as the most that something differs: ``by 0.3 % at most``."""
    return f"by {percent_at_most(share, 1)} at most" if share > NO_DIFFERENCE else "not at all"


def rates(dataset: Dataset) -> pd.DataFrame:
    """Return the configurations with a rate, with its column and the ends of its interval by the same names."""
    rows = dataset.configurations
    rows = rows[rows[dataset.rate].notna()]
    return rows.assign(rate=rows[dataset.rate], low=rows[f"{dataset.rate}_low"], high=rows[f"{dataset.rate}_high"])


def with_speedup(dataset: Dataset) -> pd.DataFrame:
    """Return the configurations with a speedup that are no baseline of their own."""
    rows = dataset.configurations
    return rows[rows["speedup"].notna() & ~rows["is_baseline"].astype(bool)]


def unknown_facts(dataset: Dataset, columns: Sequence[str]) -> list[str]:
    """Return the columns in which some completed run has no value."""
    runs = context.completed_runs(dataset)
    return [name for name in columns if runs[name].isna().any()]


#: What a check says of logs where the rule is about how something was measured.
NOT_MEASURED_HERE = "logs of other programs do not say how they were measured"
NOTHING_MEASURED = "no run completed"


def why_not_measured(dataset: Dataset, runs: pd.DataFrame) -> str:
    """Return why a rule about how runs were measured has nothing to check; empty where it has these runs."""
    if dataset.plan.ingested_from:
        return NOT_MEASURED_HERE
    return NOTHING_MEASURED if runs.empty else ""
