"""The menus of the notebook: what is chosen, its chart, its searchable table, and the code that makes the chart."""

from collections.abc import Iterable
from html import escape
from typing import Any

import ipywidgets
import pandas as pd
from itables.widget import ITable

from dlperf_study.columns import COLUMNS
from dlperf_study.errors import DlperfStudyError
from dlperf_study.explorer.chart import chart
from dlperf_study.explorer.results import Results, data_names, results_of
from dlperf_study.report.figures.factor_figure import label_of
from dlperf_study.report.formatting import bounded_value, with_interval
from dlperf_study.report.series import ordered_levels

#: The entry of a menu that chooses no factor, and how many factors can be filtered.
NO_FACTOR, MOST_FILTERS = "(none)", 8
#: Sorted and searched in the page, all rows of it: some studies have hundreds.
_TABLE: dict[str, Any] = {
    "paging": False,
    "showIndex": False,
    "layout": {"topStart": None, "topEnd": "search", "bottomStart": "info", "bottomEnd": None},
    "classes": "display compact",
    "maxBytes": 0,
}


def explore(name: str = "") -> ipywidgets.Widget:
    """Return menus that choose data, metric, factors and levels; with the chart, its table and its code below them.

    ``name``: of the data that is shown first, a name of ``data_names``.

    Raises DlperfStudyError if there is no data of this name.
    """
    return _Explorer(name or data_names()[0]).view


class _Explorer:
    """The state of the menus; a change of one draws everything below them again."""

    def __init__(self, name: str) -> None:
        names = data_names()
        self._results = results_of(name)
        self._data = ipywidgets.Dropdown(options=list(dict.fromkeys([name, *names])), value=name, description="Data")
        self._metric, self._x = ipywidgets.Dropdown(description="Metric"), ipywidgets.Dropdown(description="x")
        self._colour = ipywidgets.Dropdown(description="Colour")
        self._panel = ipywidgets.Dropdown(description="Panels")
        self._filters: dict[str, ipywidgets.SelectMultiple] = {}
        self._filter_box = ipywidgets.HBox(layout={"flex_flow": "row wrap"})
        self._chart, self._table = ipywidgets.HTML(), ITable(**_TABLE)
        self._code = ipywidgets.Textarea(layout={"width": "100%", "height": "7em"}, description="Code")
        menus = ipywidgets.HBox(
            [self._data, self._metric, self._x, self._colour, self._panel], layout={"flex_flow": "row wrap"}
        )
        self.view = ipywidgets.VBox([menus, self._filter_box, self._chart, self._table, self._code])
        self._data.observe(self._load, "value")
        for menu in self._arguments().values():
            menu.observe(self._changed, "value")
        self._is_offering = False
        self._offer_choices()

    def _changed(self, _change: object) -> None:
        """Show what a user chose; while other choices are offered, menus change one after another."""
        if not self._is_offering:
            self._show()

    def _load(self, _change: object) -> None:
        """Read other data, and offer its choices."""
        try:
            self._results = results_of(self._data.value)
        except DlperfStudyError as error:
            self._refuse(error)
            return
        self._offer_choices()

    def _offer_choices(self) -> None:
        """Offer the metrics, factors and levels of the data, and show what is then chosen."""
        self._is_offering = True
        results = self._results
        factors = results.factors or ["world_size"]
        named = _with_labels(factors)
        _offer(self._metric, _with_labels(results.metrics), results.metrics[0])
        _offer(self._x, named, factors[0])
        _offer(self._colour, [(NO_FACTOR, ""), *named], results.independent_factor(factors[0]))
        _offer(self._panel, [(NO_FACTOR, ""), *named], "")
        self._filters = {name: self._filter(name) for name in results.factors[:MOST_FILTERS]}
        self._filter_box.children = tuple(self._filters.values())
        self._is_offering = False
        self._show()

    def _filter(self, factor: str) -> ipywidgets.SelectMultiple:
        """Return the menu of the levels of a factor, with all of them chosen."""
        levels = ordered_levels(self._results.rows[factor])
        label, rows, style = COLUMNS[factor].label, min(5, len(levels)), {"description_width": "initial"}
        menu = ipywidgets.SelectMultiple(options=levels, value=levels, description=label, rows=rows, style=style)
        menu.observe(self._changed, "value")
        return menu

    def _show(self) -> None:
        """Draw the chart and the table of what is chosen, and write its code."""
        chosen = {name: list(menu.value) for name, menu in self._filters.items() if len(menu.value) < len(menu.options)}
        results = self._results.where(chosen)
        try:
            figure = chart(results, self._metric.value, self._x.value, self._colour.value, self._panel.value)
        except DlperfStudyError as error:
            self._refuse(error)
            return
        self._chart.value = figure._repr_html_()
        self._table.update(printed_rows(results, self._metric.value), **_TABLE)
        self._code.value = self._code_of(chosen)

    def _refuse(self, error: DlperfStudyError) -> None:
        self._chart.value, self._code.value = escape(str(error)), ""
        self._table.update(pd.DataFrame(), **_TABLE)

    def _code_of(self, chosen: dict[str, list[Any]]) -> str:
        """Return the code that makes the chart that is shown."""
        where = f".where({chosen!r})" if chosen else ""
        arguments = [f"{name}={menu.value!r}" for name, menu in self._arguments().items() if menu.value]
        return (
            "from dlperf_study.explorer import chart, results_of\n\n"
            f"results = results_of({self._data.value!r}){where}\n"
            f"chart(results, {', '.join(arguments)})"
        )

    def _arguments(self) -> dict[str, ipywidgets.Dropdown]:
        return {"metric": self._metric, "x": self._x, "colour_by": self._colour, "panel_by": self._panel}


def _with_labels(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(label_of(name), name) for name in names]


def _offer(menu: ipywidgets.Dropdown, options: list[tuple[str, str]], value: str) -> None:
    """Give a menu other choices, and keep the present one where there still is."""
    kept = menu.value if menu.value in dict(options).values() else value
    menu.options = options
    menu.value = kept


def printed_rows(results: Results, metric: str) -> pd.DataFrame:
    """Return the rows as the report prints them: the factors, the metric and its interval."""
    rows = results.rows[results.rows[metric].notna()]
    printed = [with_interval(*bounded_value(row, metric)) for row in rows.itertuples()]
    factors = rows[results.factors].rename(columns=label_of).reset_index(drop=True)
    return factors.join(pd.DataFrame(printed, columns=[label_of(metric), "95 % interval"]))
