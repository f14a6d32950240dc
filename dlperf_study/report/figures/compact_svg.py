"""Make the SVG that matplotlib writes smaller, and one that follows the colours of the page it is on.

A page holds its figures, so this decides how large a page of many configurations is.
"""

import re
from urllib.parse import quote

from dlperf_study.report.figures.style import COMPUTATION, EXCHANGE, EXPOSED, FAINT, FONTS, INK, INPUT, PALETTE, SOFT

#: The coordinates of lines, in points; a hundredth of a point can't be seen.
_PATH = re.compile(r' d="[^"]*"')
_NUMBER = re.compile(r"-?\d+\.\d+")
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_LINE_BREAKS = re.compile(r"\s*\n\s*")
#: The font that the drawing was laid out with.
_FONT = f"'{FONTS[0]}'"
#: What a picture on a page does not need: the declaration, the type and who made it.
_HEAD = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>", re.DOTALL)
#: What needs no escape in a data address between double quotes, besides letters and digits.
_SAFE = " '<>=/:;,.-_()+*!?@$[]{}|"
#: The colour on a dark page of each colour on white; those that are not here are seen on both.
DARK = {
    "#ffffff": "#15191c",
    INK: "#e6eaed",
    SOFT: "#a6b0b8",
    FAINT: "#333a40",
    COMPUTATION: "#66727c",
    INPUT: "#3f9682",
    EXPOSED: "#d9cc2f",
    EXCHANGE: "#e6eaed",
    PALETTE[0]: "#56a8e0",
    PALETTE[6]: "#b5b5b5",
}


def compact_svg(svg: str) -> str:
    """Return the same drawing in fewer bytes, its text in fonts that are as wide as the one it was laid out with."""
    svg = _COMMENT.sub("", svg).replace(_FONT, ", ".join(FONTS))
    return _LINE_BREAKS.sub("\n", _PATH.sub(_with_two_decimals, svg))


def data_uri(svg: str) -> str:
    """Return a drawing as an address in double quotes on a page: a third smaller than base64 makes it.

    Where a reader prefers dark pages the drawing is dark too.
    """
    drawing = _themed(_HEAD.sub("", svg).replace("\n", " "))
    if "'" not in drawing:
        drawing = drawing.replace('"', "'")
    return "data:image/svg+xml," + quote(drawing, safe=_SAFE)


def _themed(drawing: str) -> str:
    """Return a drawing whose colours are variables; a file for a paper keeps its colours, which all programs read."""
    light, dark = [], []
    for position, (colour, on_dark) in enumerate(DARK.items()):
        drawing = re.sub(f'{colour}(?=[;"])', f"var(--c{position})", drawing, flags=re.IGNORECASE)
        light.append(f"--c{position}:{colour}")
        dark.append(f"--c{position}:{on_dark}")
    rules = f":root{{{';'.join(light)}}} @media screen and (prefers-color-scheme:dark){{:root{{{';'.join(dark)}}}}}"
    return re.sub(r"(<svg[^>]*>)", lambda start: f"{start[0]}<style>{rules}</style>", drawing, count=1)


def _with_two_decimals(path: re.Match[str]) -> str:
    return _NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), path[0])
