"""Figures of a study: any metric over the values of a factor, in seaborn's words, and those of the report."""

from collections.abc import Sequence
from os import PathLike
from typing import IO, Any, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlperf_study.core.errors import DlperfStudyError, RecordError
from dlperf_study.core.wording import counted, unknown_name
from dlperf_study.dataset.dataset import Dataset
from dlperf_study.metrics.columns import COLUMNS, Summary, summarised
from dlperf_study.metrics.metric import MEANS
from dlperf_study.report import figures, series
from dlperf_study.report.figures.factor_figure import (
    EFFICIENCY,
    EQUAL_DISTANCES,
    EXPLANATION,
    IDEAL,
    SETTING,
    SPEEDUP,
    FactorChart,
)
from dlperf_study.report.figures.figure import Figure
from dlperf_study.study import renamed
from dlperf_study.study.configuration import OF_WHOLE_PROGRAM, PARAMETERS

METRICS = (
    *("throughput", "token_throughput", "speedup", "efficiency", "relative_throughput"),
    *summarised(*MEANS),
    *(name for name in summarised(Summary.GEOMETRIC) if name not in ("throughput", "token_throughput")),
)
#: What varies besides the parameters of a configuration, the number of devices first.
_FURTHER_FACTORS = ("world_size", "global_batch", "table", "program", "mode")
#: What trains, and where it was printed: named also where other values say it too.
_ALWAYS_NAMED = ("framework", "model", "table", "program")
#: What may change along a line over the number of devices.
_ALONG_DEVICES = ("nodes", "devices_per_node", "parameter_servers", "batch_per_device", "global_batch")


def known_metrics(rows: pd.DataFrame) -> list[str]:
    """Return the numbers with an interval that any row has."""
    return list(pd.Index(METRICS).intersection(rows.columns[rows.notna().any()]))


def varying_columns(rows: pd.DataFrame) -> list[str]:
    """Return the varying factors: devices first, program settings last."""
    return [name for name in factor_columns(rows) if name not in OF_WHOLE_PROGRAM and rows[name].nunique() > 1]


def without_determined(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows without the factors that another factor determines.

    Of two factors that determine each other, the first one stays; ``world_size`` and what trains always do.
    """
    factors = varying_columns(rows)
    values, determined = rows[factors].drop_duplicates(), set[str]()
    # The global batch follows from other factors, and not the other way round.
    for name in sorted(reversed(factors), key="global_batch".__ne__):
        kept = [factor for factor in factors if factor not in (name, "global_batch", *determined)]
        if name not in ("world_size", *_ALWAYS_NAMED) and any(_determines(values, factor, name) for factor in kept):
            determined.add(name)
    return rows.drop(columns=list(determined))


def _determines(rows: pd.DataFrame, factor: str, name: str) -> bool:
    return bool((rows.groupby(factor, dropna=False)[name].nunique(dropna=False) == 1).all())


def factor_columns(rows: pd.DataFrame) -> list[str]:
    """Return all factors of the rows, in the same order."""
    names = pd.Index([*_FURTHER_FACTORS, *PARAMETERS])
    if "settings" in rows:
        names = names.append(rows.columns.difference([*COLUMNS], sort=False))
    return list(names[names.isin(rows.columns)].unique())


def independent_factor(rows: pd.DataFrame, x: str, *factors: str) -> str:
    """Return the first factor that varies independently; empty if none.

    What comes along with the devices differs by itself where ``x`` is their number, and is no such factor.
    """
    # The global batch follows from the batch per device, and names none of what a study varies.
    in_order = sorted(varying_columns(rows), key="global_batch".__eq__)
    for name in in_order:
        if name not in (x, *factors) and _differs(rows, name, x, factors):
            return name
    return ""


def _differs(rows: pd.DataFrame, name: str, x: str, factors: Sequence[str]) -> bool:
    """Return whether a factor varies within a line or mark."""
    grouping = list(factors) if x == "world_size" and name not in _ALONG_DEVICES else [x, *factors]
    values = rows.groupby(grouping, dropna=False)[name] if grouping else rows[name]
    return bool(np.max(values.nunique()) > 1)


def separating_factors(rows: pd.DataFrame, x: str, has_panels: bool = True) -> tuple[str, str]:
    """Return the factors of colours and panels that separate the rows.

    Where two factors do not suffice, colours are of all that differs together, in panels by model.
    """
    hue = independent_factor(rows, x)
    col = ""
    if hue:
        col = independent_factor(rows, x, hue)
    if not col or (has_panels and not independent_factor(rows, x, hue, col)):
        return hue, col
    if has_panels and "model" in varying_columns(rows):
        return SETTING, "model"
    return SETTING, ""


def settings_in_words(rows: pd.DataFrame, x: str, col: str = "") -> pd.Series:
    """Return each row's settings besides ``x`` and ``col``."""
    factors = [name for name in varying_columns(rows) if name not in (x, col)]
    # The global batch follows from the batch per device, and not the other way round.
    omissible = sorted(reversed(factors), key="global_batch".__ne__)
    for name in (name for name in omissible if name not in _ALWAYS_NAMED):
        rest = [factor for factor in factors if factor != name]
        if not _differs(rows, name, x, [*rest, *filter(None, [col])]):
            factors = rest
    labels = []
    for values in rows[factors].itertuples(index=False, name=None):
        named = dict(zip(factors, values, strict=True))
        unusual = {name: value for name, value in named.items() if not series.goes_without_saying(name, value)}
        labels.append(series.joined(*(series.value_label(name, value) for name, value in (unusual or named).items())))
    return pd.Series(labels, rows.index, dtype=str)


def require(name: str, choices: list[str], kind: str) -> None:
    """Raise DlperfStudyError with the choices for an unknown name."""
    if name not in choices:
        if new := renamed.name_column(name):
            raise DlperfStudyError(f"{kind} is {name!r}; it is named {new} now")
        raise DlperfStudyError(unknown_name(f"{kind} is", name, f"{kind}s", choices))


def plot_metric(rows: pd.DataFrame, x: str, y: str, hue: str = "", col: str = "", title: str = "") -> Figure:
    """Return a figure of ``y`` over ``x``, with 95 % CIs.

    A row without an interval has an open mark. Rows that state no value of a factor are left out, and counted in the
    caption.

    Args:
        rows: configurations of a study, or points of a published source
        x, y: a factor, and a metric
        hue, col: factors whose values have a colour or a panel of their own; empty for none; ``setting`` is all that
            differs besides
        title: what the rows are of

    Raises DlperfStudyError for a metric or factor that the rows do not have.
    """
    chart = _chart(rows, x, y, hue, col)
    left_out = int(rows[y].notna().sum()) - len(chart.rows)
    caption = EXPLANATION
    if x != "world_size":
        caption += f" {EQUAL_DISTANCES}"
    elif y in (SPEEDUP, EFFICIENCY):
        caption += f" {IDEAL}"
    if left_out:
        caption += f" {counted(left_out, 'row')} left out: no value is stated."
    heading = f"{title}: {COLUMNS[y].words}" if title else COLUMNS[y].label
    draw = None
    if len(chart.rows):
        draw = chart.drawing
    return Figure("exploration", heading, caption, draw, "No row that is chosen has this metric and these factors.")


def _chart(rows: pd.DataFrame, x: str, y: str, hue: str, col: str = "") -> FactorChart:
    """Return the chart of the complete rows."""
    require(y, known_metrics(rows), "metric")
    if hue == col == SETTING:
        raise DlperfStudyError(f"colours and panels can't both be of {SETTING!r}, all that differs: choose a factor")
    chosen = [name for name in (x, hue, col) if name and name != SETTING]
    for factor in chosen:
        require(factor, factor_columns(rows), "factor")
    shown = rows.dropna(subset=[y, *chosen])
    if SETTING in (hue, col):
        shown = shown.assign(**{SETTING: settings_in_words(shown, x, col if hue == SETTING else hue)})
    is_quick = "quick" in shown and bool(shown["quick"].eq(True).any())
    return FactorChart(shown, y, x, hue, col, is_quick)


class Figures(tuple[Figure, ...]):
    """The figures of one kind, one per model."""

    def savefig(self, file: str | PathLike[str] | IO[bytes], **options: Any) -> None:
        """Write the only figure; raises DlperfStudyError if there are several."""
        if len(self) != 1:
            raise DlperfStudyError(
                f"there are {len(self)} figures, one for each model, and one file: choose a model by "
                "`study.sel(model=...)`, or a figure by its index"
            )
        self[0].savefig(file, **options)

    def _repr_html_(self) -> str:
        return "".join(figure._repr_html_() for figure in self)


class Plot:
    """The figures of a study; called, any metric over any factor."""

    def __init__(self, name: str, dataset: Dataset) -> None:
        self._name, self._dataset = name, dataset

    @overload
    def __call__(
        self, x: str = "", y: str = "", hue: str | None = None, col: str | None = None, ax: None = None
    ) -> Figure: ...
    @overload
    def __call__(
        self, x: str = "", y: str = "", hue: str | None = None, col: str | None = None, *, ax: Axes
    ) -> Axes: ...
    def __call__(
        self, x: str = "", y: str = "", hue: str | None = None, col: str | None = None, ax: Axes | None = None
    ) -> Figure | Axes:
        """Return a figure of ``y`` over ``x``, or draw on ``ax``.

        Without ``y`` it is of the throughput, and without ``x`` over the number of devices or the first factor that
        varies. Without ``hue`` and ``col`` colours and panels separate what else differs.

        Raises DlperfStudyError for a metric or factor that the study does not have, and for ``col`` with ``ax``, which
        has one panel; RecordError if nothing was measured.
        """
        rows = self._dataset.configurations.set_index("configuration_id")
        if not known_metrics(rows):
            raise RecordError(
                f"{self._name}: no configuration has a completed run with a throughput: nothing can be drawn"
            )
        x, y = x or next(iter(varying_columns(rows)), "world_size"), y or self._dataset.throughput_column
        if hue is None and col is None:
            require(x, factor_columns(rows), "factor")
            hue, col = separating_factors(rows[rows[y].notna()] if y in rows else rows, x, has_panels=ax is None)
        hue, col = hue or "", col or ""
        if ax is None:
            return plot_metric(rows, x, y, hue, col, self._name)
        if col:
            raise DlperfStudyError(f"col is {col!r}, but ax has one panel; leave out one of the two")
        _chart(rows, x, y, hue).draw_on(ax)
        return ax

    def overview(self) -> Figures:
        """Return the throughput of every configuration, with its runs."""
        return Figures(figures.overview(self._dataset))

    def scaling(self) -> Figures:
        """Return throughput, speedup and efficiency over the number of devices."""
        return Figures(figures.scaling(self._dataset))

    def factors(self) -> Figures:
        """Return the throughput over each factor but devices and model."""
        return Figures(figures.factors(self._dataset))

    def communication(self) -> Figures:
        """Return the parts of a step beside its communication-only time."""
        return Figures(figures.communication(self._dataset))

    def comparison(self) -> Figures:
        """Return each reference and its compared configurations, side by side."""
        return Figures(figures.comparison(self._dataset))

    def steps(self) -> Figures:
        """Return every step of each run."""
        return Figures(figures.steps(self._dataset))

    def stragglers(self) -> Figures:
        """Return the computation time of each rank relative to the slowest."""
        return Figures(figures.stragglers(self._dataset))

    def drift(self) -> Figures:
        """Return each run's deviation from its configuration, by time."""
        return Figures(figures.drift(self._dataset))

    def memory(self) -> Figures:
        """Return the memory of a rank, beside the largest micro-batch."""
        return Figures(figures.memory(self._dataset))

    def prediction(self) -> Figures:
        """Return the predictions of sizes that were not measured."""
        return Figures(figures.prediction(self._dataset))

    def waterfall(self) -> Figures:
        """Return the scaling-loss breakdown of the slowest configurations."""
        return Figures(figures.waterfall(self._dataset))
