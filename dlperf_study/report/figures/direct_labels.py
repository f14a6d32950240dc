"""The names of lines next to the panels that they end in, and a legend below for what has no name there."""

import math
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.transforms import ScaledTranslation

from dlperf_study.report.figures.style import SOFT, Width, colour, marker, wrapped

IDEAL, BOUND = "ideal", "bound"
Item = TypeVar("Item")
#: So many lines have their names next to a panel; more are drawn in several panels.
MOST_LABELS = 6
#: Letters on a line of a name, the height of such a line, and how far the mark and the name are from the panel.
_LETTERS = {"page": 26, "column": 20}
_LINE_INCHES, _MARK_POINTS, _NAME_POINTS = 0.125, 9, 15
_LEGEND_LETTERS_PER_INCH, _LEGEND_LINE_INCHES = 15, 0.15


@dataclass(frozen=True)
class EndLabel:
    """The name of the line or the marks of one colour that end at ``value``; NaN: that are not in the panel."""

    value: float
    position: int
    text: str


def parted(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Return items in as few parts of about the same length as panels can name."""
    count = max(1, math.ceil(len(items) / MOST_LABELS))
    length = math.ceil(len(items) / count)
    return [items[start : start + length] for start in range(0, len(items), max(1, length))]


def labels_inches(texts: Iterable[str], width: Width) -> float:
    """Return how much height names need below each other."""
    return sum(_LINE_INCHES * (_wrapped(name, width).count("\n") + 1 + 1 / 3) for name in texts)


def draw_end_labels(axes: Axes, labels: Iterable[EndLabel], panel_inches: float, width: Width) -> None:
    """Name lines on the right of a panel, each as high as it ends where that leaves room for the others.

    Limits and scales of the axes must be set. A text has ``\\n`` between its parts.
    """
    line_inches = _LINE_INCHES / panel_inches
    # A name has the colour and the marker of its line, so it is known also where the line ends elsewhere.
    ends = [(_height(axes, label.value), label.position, _wrapped(label.text, width)) for label in labels]
    ordered = sorted(ends, reverse=True)
    sizes = [line_inches * (name.count("\n") + 1) for *_, name in ordered]
    middles = _without_overlap([height for height, *_ in ordered], sizes, line_inches / 3)
    for middle, (_, position, name) in zip(middles, ordered, strict=True):
        style: dict[str, Any] = {"color": colour(position), "clip_on": False}
        axes.scatter(1, middle, s=12, marker=marker(position), transform=_right_of(axes, _MARK_POINTS), **style)
        axes.text(1, middle, name, va="center", transform=_right_of(axes, _NAME_POINTS), **style)


def _height(axes: Axes, value: float) -> float:
    """Return how high a value is in the panel: 0 at its bottom, also for what is not in it."""
    if math.isnan(value):
        return 0.0
    point = axes.transScale.transform((1.0, value))
    return float(axes.transLimits.transform(point)[1])


def _without_overlap(heights: Sequence[float], sizes: Sequence[float], gap: float) -> list[float]:
    """Return the middles of names from the top: as near to their heights as others and the bottom allow."""
    middles, top = [], math.inf
    for height, size in zip(heights, sizes, strict=True):
        middles.append(min(height, top - size / 2))
        top = middles[-1] - size / 2 - gap
    bottom = 0.0
    for index in reversed(range(len(middles))):
        middles[index] = max(middles[index], bottom + sizes[index] / 2)
        bottom = middles[index] + sizes[index] / 2 + gap
    return middles


def _right_of(axes: Axes, points: float) -> Any:
    return axes.transAxes + ScaledTranslation(points / 72, 0, axes.figure.dpi_scale_trans)


def _wrapped(text: str, width: Width) -> str:
    return "\n".join(wrapped(part, _LETTERS[width.name]) for part in text.split("\n"))


def legend_below(drawing: Drawing, panels: Iterable[Axes], width: Width, named: Collection[str] = ()) -> None:
    """Name what panels show below them, once each, but ``named``, which have their names elsewhere.

    The drawing becomes higher by its legend.
    """
    handles: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            if label not in named:
                handles.setdefault(label, handle)
    for label in {IDEAL, BOUND} & handles.keys():
        # Each line has its own; the legend shows what all have in common.
        handles[label] = copy(handles[label])
        handles[label].set_color(SOFT)
    if handles:
        fitting = math.floor(width.inches * _LEGEND_LETTERS_PER_INCH / (max(map(len, handles)) + 6))
        columns = max(1, min(fitting, len(handles)))
        drawing.set_figheight(drawing.get_figheight() + _LEGEND_LINE_INCHES * math.ceil(len(handles) / columns))
        drawing.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)
