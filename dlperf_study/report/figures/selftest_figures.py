"""The figure of the page on the self-test: every measured ratio with its interval, next to the true one."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.report.figures.charts import ROW_INCHES
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import INK, PAGE_INCHES, PALETTE, category_axes, publication_style
from dlperf_study.selftest.result import CheckResult, Comparison, SelftestResult

RIGHT, WRONG = PALETTE[0], PALETTE[1]
_MARGIN_INCHES = 0.8
_CAPTION = (
    "Dot and bar: the measured ratio of throughputs with its interval; black mark: the true ratio. Orange: the "
    "interval misses the truth. An interval of 95 % does so in one of 20 cases."
)


def ratios(result: SelftestResult) -> Figure:
    """Return one panel per check that compares ratios: those of the same program, and those of planted slowdowns."""
    drawn = [check for check in result.checks if any(comparison.low is not None for comparison in check.comparisons)]
    empty = "No check has a ratio with an interval."
    if not drawn:
        return Figure("ratios", "Ratios and their truth", "", None, empty)
    with publication_style():
        most = max(len(check.comparisons) for check in drawn)
        drawing = Drawing(figsize=(PAGE_INCHES, _MARGIN_INCHES + ROW_INCHES * most), layout="constrained")
        for axes, check in zip(drawing.subplots(1, len(drawn), squeeze=False)[0], drawn, strict=True):
            _draw(axes, check)
    return Figure("ratios", "Ratios and their truth", _CAPTION, drawing, empty)


def _draw(axes: Axes, check: CheckResult) -> None:
    ordered = sorted(check.comparisons, key=lambda comparison: -comparison.true)
    for y, comparison in enumerate(ordered):
        _draw_comparison(axes, comparison, y)
    category_axes(axes, [comparison.label for comparison in ordered])
    axes.set_title(check.name)
    axes.set_xlabel("throughput / reference (×)")


def _draw_comparison(axes: Axes, comparison: Comparison, y: int) -> None:
    bar_colour = RIGHT if comparison.holds_truth else WRONG
    axes.plot([comparison.low or 0.0, comparison.high or 0.0], [y, y], color=bar_colour, linewidth=3, alpha=0.4)
    axes.plot(comparison.measured, y, marker="o", color=bar_colour)
    axes.plot(comparison.true, y, marker="|", markersize=9, markeredgewidth=1.3, color=INK)
