"""The results that can be explored: of studies that were measured or ingested, and of published sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dlperf_study.analysis.published_points import Published
from dlperf_study.dataset.configuration_table import MEANS, RATES
from dlperf_study.errors import DlperfStudyError, EvidenceError
from dlperf_study.history.measurements import find_measurement, measurement_names
from dlperf_study.report import context
from dlperf_study.study.configuration import PARAMETERS
from dlperf_study.study.study import source_names
from dlperf_study.wording import unknown_name

#: Before the name of a published source.
PUBLISHED = "published: "
#: Numbers with an interval, in the order of the menu.
METRICS = (
    *("throughput", "token_throughput", "speedup", "efficiency", "relative_throughput"),
    *MEANS,
    *(name for name in RATES if name not in ("throughput", "token_throughput")),
)
#: What varies besides the parameters of a configuration.
_FURTHER_FACTORS = ("world_size", "global_batch", "table", "program", "mode")

Where = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Results:
    """Rows of results with the columns of the dataset, a row for each configuration or published point."""

    name: str
    rows: pd.DataFrame

    @property
    def factors(self) -> list[str]:
        """The columns that have several levels, the number of devices first."""
        names = dict.fromkeys(("world_size", *_FURTHER_FACTORS, *PARAMETERS))
        return [name for name in names if name in self.rows and self.rows[name].nunique() > 1]

    @property
    def metrics(self) -> list[str]:
        """The numbers that at least one row has."""
        return [name for name in METRICS if name in self.rows and self.rows[name].notna().any()]

    def independent_factor(self, factor: str) -> str:
        """Return the first other factor that has several levels at one level of ``factor``; empty if none has."""
        by_level = self.rows.groupby(factor, dropna=False)
        other_factors = (name for name in self.factors if name != factor)
        return next((name for name in other_factors if by_level[name].nunique().gt(1).any()), "")

    def where(self, levels: Where) -> "Results":
        """Return the rows that have one of the given levels of each given factor.

        Raises DlperfStudyError for a column that there is not.
        """
        rows = self.rows
        for name, chosen in levels.items():
            require(name, list(rows.columns), "column")
            rows = rows[rows[name].isin(list(chosen))]
        return Results(self.name, rows)


def data_names() -> list[str]:
    """Return the names of all data: measurements under outputs, ingested ones among them, and published sources."""
    return [*measurement_names(), *(f"{PUBLISHED}{name}" for name in source_names())]


def results_of(name: str) -> Results:
    """Return the results of a study or of a published source, by a name of ``data_names``.

    Raises EvidenceError or PublishedError, with the names there are, for another name, or if nothing was measured.
    """
    if name.startswith(PUBLISHED):
        return Results(name, Published.read((name.removeprefix(PUBLISHED),)).points)
    rows = context.measured(find_measurement(name).dataset)
    if rows.empty:
        raise EvidenceError(f"{name}: no configuration has a completed run with a rate, so there is nothing to explore")
    return Results(name, rows)


def require(name: str, choices: Sequence[str], kind: str) -> None:
    """Raise DlperfStudyError, with the choices and the one most like it, for a name that is none of them."""
    if name not in choices:
        raise DlperfStudyError(unknown_name(f"{kind} is", name, f"{kind}s", choices))
