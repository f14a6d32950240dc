"""Make the SVG that matplotlib writes smaller, and themed like its page."""

import re
from collections import Counter
from functools import partial
from urllib.parse import quote

from dlperf_study.report.figures.style import COMPUTATION, EXCHANGE, EXPOSED, FAINT, FONTS, INK, INPUT, PALETTE, SOFT

#: The coordinates of lines, in points; a hundredth of a point can't be seen.
_PATH = re.compile(r' d="[^"]*"')
_NUMBER = re.compile(r"-?\d+\.\d+")
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_LINE_BREAKS = re.compile(r"\s*\n\s*")
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
    EXCHANGE: "#e6eaed",
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
        if style[0] in classes:
            return f' class="{classes[style[0]]}"'
        return style[0]

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
