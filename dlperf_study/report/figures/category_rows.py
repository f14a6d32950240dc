"""Rows of categories: each has its name on its left, or above it where there is no room on the left."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from dlperf_study.report.figures.style import Width, wrapped

#: Height of a row with its name on the left; and of a line of a name above a row, of a row below it, and of a margin.
_ROW_INCHES, _LINE_INCHES, _BAR_ROW_INCHES, _MARGIN_INCHES = 0.21, 0.125, 0.22, 0.1
#: How far above its row a name begins, and how far the heading of a group is below the middle of the row it has.
_NAME_INCHES, _HEADING_INCHES = 0.08, 0.06
_LETTERS_PER_INCH = 15.5
#: What part of the width names on the left may take.
_MOST_OF_WIDTH = 0.45
_BAR_INCHES = 0.13


@dataclass(frozen=True)
class CategoryRows:
    """Rows at y = 0, 1, …, the first on top; those at ``headings`` name a group and hold nothing."""

    labels: Sequence[str]
    width: Width
    headings: Collection[int] = ()

    @property
    def are_below_names(self) -> bool:
        """Whether names are above their rows: names on the left would take too much of the width."""
        longest = max(map(len, self.labels), default=0)
        return longest > _MOST_OF_WIDTH * self.width.inches * _LETTERS_PER_INCH

    @property
    def inches(self) -> float:
        """The height of all rows together."""
        margins = 2 * _MARGIN_INCHES + self._name_inches if self.are_below_names else self._row_inches
        return self._row_inches * (len(self.labels) - 1) + margins

    @property
    def bar_height(self) -> float:
        """The height of a bar, where the distance of two rows is 1."""
        return _BAR_INCHES / self._row_inches

    @property
    def _name_inches(self) -> float:
        return _LINE_INCHES * max(name.count("\n") + 1 for name in self._names)

    @property
    def _row_inches(self) -> float:
        return _BAR_ROW_INCHES + self._name_inches if self.are_below_names else _ROW_INCHES

    @property
    def _names(self) -> list[str]:
        letters = round(self.width.inches * _LETTERS_PER_INCH)
        return [wrapped(label, letters) for label in self.labels]

    def draw(self, axes: Axes, *others: Axes) -> None:
        """Name the rows of axes, which other panels have too; categories get no grid lines of their own."""
        for panel in (axes, *others):
            panel.tick_params(axis="y", length=0)
            panel.grid(True, axis="x")
            panel.spines["left"].set_visible(False)
        if self.are_below_names:
            self._draw_above(axes)
        else:
            axes.set_yticks(range(len(self.labels)), self.labels)
            axes.set_ylim(len(self.labels) - 0.5, -0.5)
            for position in self.headings:
                axes.get_yticklabels()[position].set_fontweight("bold")

    def _draw_above(self, axes: Axes) -> None:
        axes.set_yticks([])
        bottom = len(self.labels) - 1 + _MARGIN_INCHES / self._row_inches
        axes.set_ylim(bottom, -(_MARGIN_INCHES + self._name_inches) / self._row_inches)
        # A name may be longer than its panel: it is above the next one, and it hides the grid below it.
        axes.set_zorder(1)
        axes.patch.set_visible(False)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
        style: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "bottom", "bbox": box}
        for position, name in enumerate(self._names):
            is_heading = position in self.headings
            offset = _HEADING_INCHES if is_heading else -_NAME_INCHES
            y = position + offset / self._row_inches
            weight = "bold" if is_heading else "normal"
            axes.text(0, y, name, fontweight=weight, **style).set_in_layout(False)
