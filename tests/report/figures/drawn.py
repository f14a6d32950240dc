"""What tests look up in the figures of a study."""

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dlperf_study.report.figures.figure import Figure


def only(built: object) -> Figure:
    [figure] = built
    return figure


def axes_of(figure: Figure) -> list[Axes]:
    assert figure.drawing is not None
    return figure.drawing.axes


def lines(axes: Axes, label: str) -> list[Line2D]:
    return [line for line in axes.get_lines() if line.get_label() == label]


def curve(axes: Axes, label: str) -> Line2D:
    [line] = [line for line in axes.get_lines() if label in str(line.get_label())]
    return line
