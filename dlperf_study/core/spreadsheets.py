"""Texts of CSV files that a spreadsheet would run as formulas; an apostrophe before one makes it a text."""

import re

#: How such a text begins. A dash alone is none.
FORMULA = r"^([=+@\t\r]|-.)"
_FORMULA = re.compile(FORMULA, re.DOTALL)
#: A printed number, with or without its unit, which stays as it is.
_NUMBER = re.compile(r"[-+]\d[\d.,]*(?:e[-+]?\d+)?(?: ?[%×µA-Za-z/]+)?")


def disarmed(cell: str) -> str:
    """Return the text of a cell, of which no spreadsheet runs anything."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell
