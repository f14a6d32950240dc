"""One chart of any metric over any factor, with intervals; colour and panels by further factors."""

from functools import partial

from dlperf_study.columns import COLUMNS
from dlperf_study.explorer.results import Results, require
from dlperf_study.report.figures.factor_figure import EXPLANATION, factor_drawing
from dlperf_study.report.figures.figure import Figure

_NOTHING = "No row that is chosen has this metric."


def chart(results: Results, metric: str, x: str, colour_by: str = "", panel_by: str = "") -> Figure:
    """Return a figure of ``metric`` over the levels of ``x``: a mark for each row, a bar for its 95 % interval.

    A row without an interval has an open mark. ``colour_by`` and ``panel_by``: factors whose levels have a colour or a
    panel of their own; empty for none.

    Raises DlperfStudyError for a metric or factor that the results do not have.
    """
    require(metric, results.metrics, "metric")
    for factor in filter(None, (x, colour_by, panel_by)):
        require(factor, list(results.rows.columns), "factor")
    rows = results.rows[results.rows[metric].notna()]
    title = f"{results.name}: {COLUMNS[metric].words}"
    if rows.empty:
        return Figure("exploration", title, EXPLANATION, None, _NOTHING)
    is_quick = "quick" in rows and bool(rows["quick"].eq(True).any())
    draw = partial(factor_drawing, rows, metric, x, colour_by, panel_by, is_quick=is_quick)
    return Figure("exploration", title, EXPLANATION, draw)
