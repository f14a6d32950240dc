"""The figure of the page on the self-test: every measured ratio with its interval, next to the true one."""

from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.report.alt_text import alt_text_of_table
from dlperf_study.report.figures.category_rows import CategoryRows
from dlperf_study.report.figures.figure import Figure
from dlperf_study.report.figures.style import INK, PAGE, PALETTE, Width
from dlperf_study.report.tables.selftest_tables import comparisons as comparisons_table
from dlperf_study.selftest.result import Comparison, SelftestResult

RIGHT, WRONG = PALETTE[0], PALETTE[1]
_MARGIN_INCHES = 0.6
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
    title = "Ratios and their truth"
    return Figure(
        "ratios", title, _CAPTION, partial(_draw, drawn), empty, alt=alt_text_of_table(title, comparisons_table(result))
    )


def _draw(drawn: dict[str, list[Comparison]], width: Width) -> Drawing:
    """Draw the panels of checks: next to each other on a page, below each other in a column of it."""
    ordered, rows = {}, []
    for name, comparisons in drawn.items():
        ordered[name] = sorted(comparisons, key=lambda comparison: -comparison.true)
        rows.append(CategoryRows([comparison.label for comparison in ordered[name]], width))
    heights = [_MARGIN_INCHES + row.inches for row in rows]
    if width is PAGE:
        drawing = Drawing(figsize=(width.inches, max(heights)), layout="constrained")
        panels = drawing.subplots(1, len(ordered), squeeze=False)
    else:
        drawing = Drawing(figsize=(width.inches, sum(heights)), layout="constrained")
        panels = drawing.subplots(len(ordered), 1, squeeze=False, height_ratios=heights)
    for axes, (name, comparisons), row in zip(panels.flat, ordered.items(), rows, strict=True):
        row.draw(axes)
        for y, comparison in enumerate(comparisons):
            _draw_comparison(axes, comparison, y)
        axes.set_title(name)
        axes.set_xlabel("Throughput / reference (×)")
    return drawing


def _draw_comparison(axes: Axes, comparison: Comparison, y: int) -> None:
    bar_colour = RIGHT if comparison.holds_truth else WRONG
    if comparison.interval:
        axes.plot(comparison.interval, [y, y], color=bar_colour, linewidth=3, alpha=0.4)
    axes.plot(comparison.measured, y, marker="o", color=bar_colour)
    axes.plot(comparison.true, y, marker="|", markersize=9, markeredgewidth=1.3, color=INK)
