"""How figures look: one palette, one set of sizes, and the two widths that each is drawn for."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes

from dlperf_study.report.series import SEPARATOR


@dataclass(frozen=True)
class Width:
    """A width of drawings; ``suffix`` ends the names of its files."""

    name: str
    inches: float
    suffix: str


#: A page of 504 pt and one of its two columns, of 252 pt, as TeX counts them: 72.27 to the inch.
PAGE, COLUMN = Width("page", 504 / 72.27, ""), Width("column", 252 / 72.27, "-column")
WIDTHS = (PAGE, COLUMN)
#: Okabe and Ito's palette for all kinds of colour vision, without its yellow, too light for a line.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#4D4D4D")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Parts of a step, in colours that no series has.
COMPUTATION, INPUT, EXPOSED, EXCHANGE = "#b4bec6", "#8fd0c0", "#F0E442", "#1c2126"
INK, SOFT, FAINT = "#1c2126", "#5d6770", "#e3e7ea"
#: The first is the one of the layout; the others are as wide, and one is on every system.
FONTS = ("DejaVu Sans", "Bitstream Vera Sans", "Verdana", "sans-serif")

_RC = {
    "figure.dpi": 100,
    # Each drawing is laid out once, before it is written into several files.
    "figure.constrained_layout.use": False,
    "font.family": FONTS[0],
    "font.size": 7,
    "axes.titlesize": 7,
    "figure.titlesize": 7,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 7,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    # A square cap would draw an interval half a line width too long at each end.
    "lines.solid_capstyle": "butt",
    "lines.markersize": 3.5,
    # Names come from users' files: a dollar sign in one is no formula.
    "text.parse_math": False,
    # Text stays text: it can be searched and copied. A PDF embeds its fonts.
    "svg.fonttype": "none",
    "text.color": INK,
    "svg.hashsalt": "dlperf_study",
    "pdf.fonttype": 42,
}


@contextmanager
def publication_style() -> Iterator[None]:
    """Draw figures in this style; restore the reader's settings."""
    with mpl.rc_context(_RC):
        yield


def colour(position: int) -> str:
    """Return the colour of the n-th series; colours repeat."""
    return PALETTE[position % len(PALETTE)]


def marker(position: int) -> str:
    """Return the marker of the n-th series; pairs repeat after 49."""
    return MARKERS[(position + position // len(PALETTE)) % len(MARKERS)]


def quantity_axes(axes: Axes) -> None:
    """Draw a light grid behind both axes."""
    axes.grid(True)


def wrapped(label: str, letters: int) -> str:
    """Return a label on lines of at most so many letters."""
    parts = label.split(SEPARATOR)
    lines: list[str] = []
    for position, part in enumerate(parts, 1):
        tie = ""
        if position < len(parts):
            tie = SEPARATOR.rstrip()
        if lines and len(lines[-1]) + 1 + len(part + tie) <= letters:
            lines[-1] += f" {part}{tie}"
        else:
            # No line begins with a separator, also not where a part alone fills one.
            lines += textwrap.wrap(part, letters - len(tie), break_on_hyphens=False) or [""]
            lines[-1] += tie
    return "\n".join(lines)
