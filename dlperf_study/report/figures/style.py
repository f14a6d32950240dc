"""How figures look: one palette, one set of sizes, two widths; and their SVG, small and themed like its page."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

import matplotlib as mpl

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
COMPUTATION, INPUT, EXPOSED, COMMUNICATION_ALONE = "#b4bec6", "#8fd0c0", "#F0E442", "#1c2126"
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
    """Draw figures in this style, whatever the reader's ``matplotlibrc``; restore the reader's settings."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def colour(position: int) -> str:
    """Return the colour of the n-th series; colours repeat."""
    return PALETTE[position % len(PALETTE)]


def marker(position: int) -> str:
    """Return the marker of the n-th series; pairs repeat after 49."""
    return MARKERS[(position + position // len(PALETTE)) % len(MARKERS)]


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


#: The coordinates of lines, in points; a hundredth of a point can't be seen.
_PATH = re.compile(r' d="[^"]*"')
_NUMBER = re.compile(r"-?(?<!\d)\d++\.\d+")
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_LINE_BREAKS = re.compile(r"(?<![^\S\n])[^\S\n]*+\n\s*+")
_FONT = f"'{FONTS[0]}'"
#: What a picture on a page does not need: the declaration, the type and who made it.
_HEAD = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>", re.DOTALL)
#: What needs no escape in a data address between double quotes, besides letters and digits.
_SAFE = " '<>=/:;,.-_()+*!?@$[]{}|"
#: What of a drawing is shortened on a page: styles, names of groups and turns by nothing, and where something is.
_STYLE = re.compile(r' style="[^"]*"')
_FONT_OF_TEXT = re.compile(r"; font-family: [^;\"]*")
_NEEDLESS = re.compile(r'(?<=<g) id="[^"]*"| transform="rotate\(-0 [^"]*"')
_COMMAND = re.compile(r" ?([A-Za-z\"]) ?")
_GROUP, _EMPTY_GROUP = re.compile(r"(<g\b[^>]*>|</g>)"), re.compile(r"<g\b[^>]*/>")
_NAME, _NAME_OR_USE = re.compile(r' id="([^"]*)"'), re.compile(r'( id="|url\(#|href="#)([^")]*)')
_COORDINATE = re.compile(r' [xy]="[^"]*"')
#: The colour on a dark page of each colour on white; those that are not here are seen on both.
DARK = {
    "#ffffff": "#15191c",
    INK: "#e6eaed",
    SOFT: "#a6b0b8",
    FAINT: "#333a40",
    COMPUTATION: "#66727c",
    INPUT: "#3f9682",
    EXPOSED: "#d9cc2f",
    COMMUNICATION_ALONE: "#e6eaed",
    PALETTE[0]: "#56a8e0",
    PALETTE[6]: "#b5b5b5",
}


def compact_svg(svg: str) -> str:
    """Return the drawing in fewer bytes, with fonts of equal width."""
    svg = _COMMENT.sub("", svg).replace(_FONT, ", ".join(FONTS))
    return _LINE_BREAKS.sub("\n", _PATH.sub(partial(_rounded, decimals=2), svg))


def data_uri(svg: str) -> str:
    """Return a drawing as a data address; dark on dark pages."""
    drawing, theme = _themed(_HEAD.sub("", svg).replace("\n", " "))
    drawing = _NEEDLESS.sub("", _STYLE.sub(_short_style, drawing))
    drawing = _COORDINATE.sub(partial(_rounded, decimals=1), drawing)
    drawing = _PATH.sub(_short_path, drawing).replace("xlink:href", "href")
    # Markers and clipping areas have names of few letters.
    names = {name: f"n{index}" for index, name in enumerate(dict.fromkeys(_NAME.findall(drawing)))}
    drawing = _NAME_OR_USE.sub(lambda name: f"{name[1]}{names.get(name[2], name[2])}", drawing)
    drawing, classes = _replace_styles(drawing)
    is_kept, parts = [], []
    for part in _GROUP.split(_EMPTY_GROUP.sub("", drawing)):
        if part.startswith("<g"):
            is_kept.append(part != "<g>")
        if is_kept.pop() if part == "</g>" else part != "<g>":
            parts.append(part)
    drawing = re.sub("> +<", "><", "".join(parts))
    rules = f"{theme}{classes}text{{font-family:{', '.join(FONTS)}}}"
    drawing = re.sub(r"(<svg[^>]*>)", lambda start: f"{start[0]}<style>{rules}</style>", drawing, count=1)
    if "'" not in drawing:
        drawing = drawing.replace('"', "'")
    return "data:image/svg+xml," + quote(drawing, safe=_SAFE)


def _replace_styles(drawing: str) -> tuple[str, str]:
    """Return a drawing with classes for repeated styles, and their rules."""
    counts = Counter(style[0] for style in _STYLE.finditer(drawing))
    classes = {style: f"s{index}" for index, (style, count) in enumerate(counts.items()) if count > 1}
    rules = [f".{name}{{{style[8:-1]}}}" for style, name in classes.items()]

    def classed(style: re.Match[str]) -> str:
        return f' class="{classes[style[0]]}"' if style[0] in classes else style[0]

    return _STYLE.sub(classed, drawing), "".join(rules)


def _short_style(style: re.Match[str]) -> str:
    return _FONT_OF_TEXT.sub("", style[0]).replace("; ", ";").replace(": ", ":")


def _short_path(path: re.Match[str]) -> str:
    """Return screen-exact coordinates without spaces next to commands: ``M1 2L3 4``."""
    return ' d="' + _COMMAND.sub(r"\1", _rounded(path, decimals=1).removeprefix(' d="'))


def _themed(drawing: str) -> tuple[str, str]:
    """Return a drawing whose colours are variables, and their rules."""
    light, dark = [], []
    for position, (colour, on_dark) in enumerate(DARK.items()):
        drawing = re.sub(f'{colour}(?=[;"])', f"var(--c{position})", drawing, flags=re.IGNORECASE)
        light.append(f"--c{position}:{colour}")
        dark.append(f"--c{position}:{on_dark}")
    rules = f":root{{{';'.join(light)}}} @media screen and (prefers-color-scheme:dark){{:root{{{';'.join(dark)}}}}}"
    return drawing, rules


def _rounded(path: re.Match[str], decimals: int) -> str:
    return _NUMBER.sub(lambda number: f"{float(number[0]):.{decimals}f}".rstrip("0").rstrip("."), path[0])
