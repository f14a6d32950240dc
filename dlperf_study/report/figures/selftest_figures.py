"""The figure of the page on the self-test: every measured ratio with its interval, next to the true one."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.report.alt_text import alt_text_of_table
from dlperf_study.report.figures.charts import ROW_INCHES
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import INK, PAGE_INCHES, PALETTE, category_axes, publication_style
from dlperf_study.report.tables.selftest_tables import comparisons as comparisons_table
from dlperf_study.selftest.result import Comparison, SelftestResult

RIGHT, WRONG = PALETTE[0], PALETTE[1]
_MARGIN_INCHES = 0.8
_CAPTION = (
    "Dot and bar: the measured ratio of throughputs with its interval; black mark: the true ratio. Orange: the "
    "interval misses the truth. An interval of 95 % does so in one of 20 cases."
)


def ratios(result: SelftestResult) -> Figure:
    """Return a panel for each check with intervals: of the same program, and of planted slowdowns."""
    drawn: dict[str, list[Comparison]] = {}
    for check in result.checks:
        for comparison in check.comparisons:
            if comparison.interval and comparison.verdict:
                drawn.setdefault(check.name, []).append(comparison)
    empty = "No check has a ratio with an interval."
    if not drawn:
        return Figure("ratios", "Ratios and their truth", "", None, empty)
    with publication_style():
        height = _MARGIN_INCHES + ROW_INCHES * max(map(len, drawn.values()))
        drawing = Drawing(figsize=(PAGE_INCHES, height), layout="constrained")
        panels = drawing.subplots(1, len(drawn), squeeze=False)[0]
        for axes, (name, comparisons) in zip(panels, drawn.items(), strict=True):
            _draw(axes, name, comparisons)
    title = "Ratios and their truth"
    return Figure("ratios", title, _CAPTION, drawing, empty, alt=alt_text_of_table(title, comparisons_table(result)))


def _draw(axes: Axes, name: str, comparisons: list[Comparison]) -> None:
    ordered = sorted(comparisons, key=lambda comparison: -comparison.true)
    for y, comparison in enumerate(ordered):
        _draw_comparison(axes, comparison, y)
    category_axes(axes, [comparison.label for comparison in ordered])
    axes.set_title(name)
    axes.set_xlabel("throughput / reference (×)")


def _draw_comparison(axes: Axes, comparison: Comparison, y: int) -> None:
    bar_colour = RIGHT if comparison.holds_truth else WRONG
    if comparison.interval:
        axes.plot(comparison.interval, [y, y], color=bar_colour, linewidth=3, alpha=0.4)
    axes.plot(comparison.measured, y, marker="o", color=bar_colour)
    axes.plot(comparison.true, y, marker="|", markersize=9, markeredgewidth=1.3, color=INK)
