"""Make the SVG that matplotlib writes smaller: the same picture, with short names and no more digits than can be seen.

Most of such a file is text, of which every letter refers to an outline by a long name and places it to a millionth of a
unit. A page holds its figures, so this decides how large a page of many configurations is.
"""

import re
from urllib.parse import quote

#: The names of outlines, ``DejaVuSans-Bold-41``: short, and still one for each letter of each font.
_GLYPH = re.compile(r"(?<=[\"#])DejaVuSans-((?:[A-Z][A-Za-z]*-)?[0-9a-f]+)(?=\")")
#: A letter of a text, in units of about a thousandth of an em: a tenth of one can't be seen.
_LETTER = re.compile(r'<use xlink:href="([^"]+)" transform="translate\(([-0-9.]+) ([-0-9.]+)\)"/>')
#: The coordinates of lines, in points; a hundredth of a point can't be seen either.
_PATH = re.compile(r' d="[^"]*"')
_NUMBER = re.compile(r"-?\d+\.\d+")
_COMMENT = re.compile(r"<!--.*?-->\s*", re.DOTALL)
_LINE_BREAKS = re.compile(r"\s*\n\s*")
#: What a picture on a page does not need: the declaration, the type and who made it.
_HEAD = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>", re.DOTALL)
#: What needs no escape in a data address between double quotes, besides letters and digits.
_SAFE = " '<>=/:;,.-_()+*!?@$[]{}|"


def compact_svg(svg: str) -> str:
    """Return the same drawing in fewer bytes."""
    svg = _COMMENT.sub("", svg)
    svg = _PATH.sub(_with_two_decimals, svg)
    svg = _LETTER.sub(_with_coordinates, svg)
    return _LINE_BREAKS.sub("\n", _GLYPH.sub(r"g\1", svg))


def data_uri(svg: str) -> str:
    """Return a drawing as an address in double quotes on a page: a third smaller than base64 makes it."""
    drawing = _HEAD.sub("", svg).replace("\n", " ")
    if "'" not in drawing:
        drawing = drawing.replace('"', "'")
    return "data:image/svg+xml," + quote(drawing, safe=_SAFE)


def _with_two_decimals(path: re.Match[str]) -> str:
    return _NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), path[0])


def _with_coordinates(letter: re.Match[str]) -> str:
    name, x, y = letter.groups()
    vertical = f' y="{float(y):.1f}"' if float(y) else ""
    return f'<use xlink:href="{name}" x="{float(x):.1f}"{vertical}/>'
