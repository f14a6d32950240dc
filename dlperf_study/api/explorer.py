"""Looking at results in a notebook: choose data, factors and a metric; see a chart, its table, and the code of both."""

from collections.abc import Iterable
from html import escape
from typing import Any

import ipywidgets
import pandas as pd
from itables.widget import ITable

from dlperf_study.api.other_results import published
from dlperf_study.api.plot import (
    known_metrics,
    plot_metric,
    separating_factors,
    varying_columns,
    without_determined,
)
from dlperf_study.api.study_results import open_study
from dlperf_study.core.errors import DlperfStudyError, PublishedError, RecordError
from dlperf_study.core.wording import counted
from dlperf_study.dataset.history import measurement_names
from dlperf_study.metrics.columns import column_named
from dlperf_study.report.figures.factor_figure import SETTING, axis_label
from dlperf_study.report.formatting import format_column, listed, value_name
from dlperf_study.report.series import ordered_values
from dlperf_study.study.study import source_names

PUBLISHED = "published: "


def data_names() -> list[str]:
    """Return the names of all measurements and published sources."""
    return [*measurement_names(), *(f"{PUBLISHED}{name}" for name in source_names())]


def data_rows(name: str) -> pd.DataFrame:
    """Return the configurations or published points of ``data_names``, or raise."""
    if name.startswith(PUBLISHED):
        points = published(name.removeprefix(PUBLISHED), points=True)
        if points.empty:
            raise PublishedError(f"{name} prints no throughput with a number of devices: no data to explore")
        return points
    rows = open_study(name).dataset.measured.set_index("configuration_id")
    if rows.empty:
        raise RecordError(
            f"{name}: no configuration has a completed run with a throughput, so there is nothing to explore"
        )
    return rows


#: The entries of a menu that choose no factor, and all that differ; how many factors have their values in view.
NO_FACTOR, ALL_FACTORS, MOST_FILTERS = "(none)", "(all that differs)", 8
#: Sorted and searched in the page, all rows of it: some studies have hundreds.
_TABLE: dict[str, Any] = {
    "paging": False,
    "showIndex": False,
    "layout": {"topStart": None, "topEnd": "search", "bottomStart": "info", "bottomEnd": None},
    "classes": "display compact",
    "maxBytes": 0,
}


def explore(name: str = "") -> ipywidgets.Widget:
    """Return menus that choose data, metric, factors and values.

    ``name``: of the data that is shown first, a name of ``data_names``. Where there is no such data, the view says so,
    and its menu has the names there are.
    """
    return _Explorer(name or data_names()[0]).view


class _Explorer:
    """The state of the menus; a change redraws everything below."""

    def __init__(self, name: str) -> None:
        names = data_names()
        self._rows = pd.DataFrame()
        self._data = ipywidgets.Dropdown(options=list(dict.fromkeys([name, *names])), value=name, description="Data")
        self._metric, self._x = ipywidgets.Dropdown(description="Metric"), ipywidgets.Dropdown(description="x")
        self._hue, self._col = ipywidgets.Dropdown(description="Colour"), ipywidgets.Dropdown(description="Panels")
        self._filters: dict[str, dict[Any, ipywidgets.Checkbox]] = {}
        self._filter_box = ipywidgets.VBox()
        self._chart, self._table = ipywidgets.HTML(), ITable(**_TABLE)
        self._code = ipywidgets.Textarea(layout={"width": "100%", "height": "7em"}, description="Code")
        menus = ipywidgets.HBox(
            [self._data, self._metric, self._x, self._hue, self._col], layout={"flex_flow": "row wrap"}
        )
        self.view = ipywidgets.VBox([menus, self._filter_box, self._chart, self._table, self._code])
        self._data.observe(self._load, "value")
        for menu in self._menus().values():
            menu.observe(self._changed, "value")
        self._is_offering = False
        self._load(None)

    def _changed(self, _change: object) -> None:
        """Show the new choice; menus change one after another."""
        if not self._is_offering and len(self._rows):
            self._show()

    def _load(self, _change: object) -> None:
        """Read other data, and offer its choices."""
        try:
            self._rows = data_rows(self._data.value)
        except DlperfStudyError as error:
            # Choices of the data before it would be shown under the name of this one.
            self._is_offering = True
            self._rows, self._filters, self._filter_box.children = pd.DataFrame(), {}, ()
            for menu in self._menus().values():
                menu.options = ()
            self._is_offering = False
            self._refuse(str(error))
            return
        self._offer_choices()

    def _offer_choices(self) -> None:
        """Offer the metrics, factors and values of the data."""
        self._is_offering = True
        offered = without_determined(self._rows)
        metrics, varying = known_metrics(offered), varying_columns(offered)
        factors = varying or ["world_size"]
        named = _labelled_options(factors)
        further = [(NO_FACTOR, ""), *named, (ALL_FACTORS, SETTING)]
        _offer(self._metric, _labelled_options(metrics), metrics[0])
        _offer(self._x, named, factors[0])
        colours, panels = separating_factors(offered, factors[0])
        _offer(self._hue, further, colours)
        _offer(self._col, further, panels)
        self._filters = {name: self._boxes(name) for name in varying}
        self._filter_box.children = _factor_lines(self._filters)
        self._is_offering = False
        self._show()

    def _boxes(self, factor: str) -> dict[Any, ipywidgets.Checkbox]:
        """Return a checked box for each value of a factor."""
        boxes = {}
        for value in ordered_values(self._rows[factor]):
            box = ipywidgets.Checkbox(
                value=True, description=value_name(factor, value), indent=False, layout={"width": "max-content"}
            )
            box.observe(self._changed, "value")
            boxes[value] = box
        return boxes

    def _show(self) -> None:
        """Draw the chart and table, and write their code."""
        chosen: dict[str, list[Any]] = {}
        for name, boxes in self._filters.items():
            if not all(box.value for box in boxes.values()):
                chosen[name] = [value for value, box in boxes.items() if box.value]
        rows = self._rows
        for name, values in chosen.items():
            rows = rows[rows[name].isin(values)]
        if rows.empty:
            unticked = [axis_label(name) for name, values in chosen.items() if not values]
            tick = "has all of the ticked values"
            if unticked:
                tick = f"is selected: tick a value of {listed(unticked)}"
            self._refuse(f"no configuration {tick}")
            return
        try:
            figure = plot_metric(rows, **self._arguments(), title=self._data.value)
        except DlperfStudyError as error:
            self._refuse(str(error))
            return
        self._chart.value = figure._repr_html_()
        self._table.update(printed_rows(rows, self._metric.value), **_TABLE)
        self._code.value = self._chart_code(chosen)

    def _refuse(self, reason: str) -> None:
        self._chart.value, self._code.value = escape(reason), ""
        self._table.update(pd.DataFrame(), **_TABLE)

    def _chart_code(self, chosen: dict[str, list[Any]]) -> str:
        """Return the code that makes the chart that is shown."""
        name = self._data.value
        arguments = ", ".join(f"{argument}={value!r}" for argument, value in self._arguments().items() if value)
        if name.startswith(PUBLISHED):
            lines = ["import dlperf_study", ""]
            lines.append(f"points = dlperf_study.published({name.removeprefix(PUBLISHED)!r}, points=True)")
            lines += [f"points = points[points[{factor!r}].isin({values!r})]" for factor, values in chosen.items()]
            return "\n".join([*lines, f"dlperf_study.plot_metric(points, {arguments}, title={name!r})"])
        if not self._hue.value and not self._col.value:
            arguments += ", hue=''"
        selection = ", ".join(f"{factor}={values!r}" for factor, values in chosen.items())
        sel = ""
        if chosen:
            sel = f".sel({selection})"
        return f"import dlperf_study\n\nstudy = dlperf_study.open_study({name!r}){sel}\nstudy.plot({arguments})"

    def _arguments(self) -> dict[str, str]:
        return {name: menu.value for name, menu in self._menus().items()}

    def _menus(self) -> dict[str, ipywidgets.Dropdown]:
        return {"x": self._x, "y": self._metric, "hue": self._hue, "col": self._col}


def _factor_lines(filters: dict[str, dict[Any, ipywidgets.Checkbox]]) -> tuple[ipywidgets.Widget, ...]:
    """Return a line for each factor; many are folded."""
    lines = []
    for factor, boxes in filters.items():
        label = ipywidgets.Label(column_named(factor).label, layout={"width": "9em"})
        lines.append(ipywidgets.HBox([label, *boxes.values()], layout={"flex_flow": "row wrap"}))
    shown, further = lines[:MOST_FILTERS], lines[MOST_FILTERS:]
    if not further:
        return tuple(shown)
    opened = ipywidgets.Accordion([ipywidgets.VBox(further)], titles=[counted(len(further), "further factor")])
    return (*shown, opened)


def _labelled_options(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(axis_label(name), name) for name in names]


def _offer(menu: ipywidgets.Dropdown, options: list[tuple[str, str]], value: str) -> None:
    """Give a menu other choices; keep its value if possible."""
    if menu.value in dict(options).values():
        value = menu.value
    menu.options = options
    menu.value = value


def printed_rows(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the rows as printed: factors, metric and interval."""
    measured = rows[rows[metric].notna()]
    printed = pd.DataFrame(index=range(len(measured)))
    for name in varying_columns(rows):
        printed[axis_label(name)] = [
            value_name(name, value) if isinstance(value, str) else value for value in measured[name]
        ]
    values = [format_column(row, metric) for row in measured.itertuples()]
    return printed.join(pd.DataFrame(values, columns=[axis_label(metric), "95 % CI"]))
