"""The drawing of scaling: throughput, speedup and efficiency over the number of devices."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dlperf_study.dataset.dataset import Dataset
from dlperf_study.report.figures import charts, line_charts
from dlperf_study.report.figures.direct_labels import legend_below
from dlperf_study.report.figures.line_charts import LineBlock
from dlperf_study.report.figures.style import Width, colour
from dlperf_study.report.series import Series, short_labels


def scaling(dataset: Dataset, series: list[Series], width: Width) -> Drawing | None:
    """Draw the rate, speedup and efficiency against devices, one line per series."""
    lines = [line for line in series if len(line.measured)]
    devices = sorted({size for line in lines for size in line.measured["world_size"]})
    if len(devices) < 2:
        return None
    names = dict(zip((line.label for line in lines), short_labels(lines), strict=True))
    details = {line.label: line_charts.baseline_label(line) for line in lines}
    columns = (dataset.rate, "speedup", "efficiency")
    blocks = LineBlock.of(lines, columns, names, details, width)
    drawing = charts.page(dataset, width, line_charts.blocks_inches(blocks))
    rows = line_charts.panels_of_blocks(drawing, blocks)
    for block, panels in zip(blocks, rows, strict=True):
        block.draw(panels, _draw_line)
        _draw_ideal(panels, block.lines, devices)
    # Panels of one column share their limits, so all lines come first.
    for block, panels in zip(blocks, rows, strict=True):
        for column, panel in zip(columns, panels, strict=True):
            line_charts.device_axes(panel, devices, logarithmic_y=column != "efficiency")
        block.name_lines(panels)
    legend_below(drawing, drawing.axes, width, named=names)
    return drawing


def _draw_line(panel: Axes, line: Series, column: str, shift_points: float) -> None:
    line_charts.interval_line(panel, line, column, shift_points=shift_points)
    if line.measured["exchange_seconds"].notna().any():
        line_charts.bound_line(panel, line.measured, column, colour(line.position))


def _draw_ideal(axes: Sequence[Axes], lines: Sequence[Series], devices: Sequence[int]) -> None:
    """Draw what perfect scaling gives: a rate per line from its baseline on, which may be a point of another line."""
    rates_panel, speedup, efficiency = axes
    all_baseline_devices = set()
    for line in lines:
        rows = line.measured.dropna(subset=["speedup"])
        # The number of devices that efficiency was computed with.
        all_devices = (rows["efficiency"] * rows["world_size"] / rows["speedup"]).round().astype(int)
        for (rate, baseline_devices), points in rows.groupby([f"baseline_{line.rate}", all_devices]):
            sizes = sorted({baseline_devices, *points["world_size"]})
            rates = [rate * size / baseline_devices for size in sizes]
            line_charts.ideal_line(rates_panel, sizes, rates, colour(line.position))
        all_baseline_devices.update(all_devices)
    for baseline_devices in sorted(all_baseline_devices):
        line_charts.ideal_line(speedup, devices, [size / baseline_devices for size in devices])
    line_charts.ideal_line(efficiency, devices, [1.0] * len(devices))
