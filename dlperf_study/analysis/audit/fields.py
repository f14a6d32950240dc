"""The numbers of a table as people write them: 1,024.5 is one, and some words stand for none."""

import math
import re

from dlperf_study.errors import TableError

#: What is written where there is no number, in small letters.
NO_NUMBERS = ("-", "–", "—", "n/a", "na", "nan", "none", "null")
#: A comma before every three digits; with one comma and no point it may be a decimal comma as well.
_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")


def is_no_number(text: str) -> bool:
    """Say whether a field says that there is no number."""
    return text.lower() in NO_NUMBERS


def without_commas(text: str) -> str:
    """Return a number without the commas between its thousands; anything else as it is.

    Raises:
        TableError: the number has one comma and no point, and could be two numbers.

    """
    if not _THOUSANDS.fullmatch(text):
        return text
    if text.count(",") == 1 and "." not in text:
        either = f"{text.replace(',', '')} or {text.replace(',', '.')}"
        raise TableError(f"{text!r}, which may be {either}: write it without the comma")
    return text.replace(",", "")


def finite(text: str) -> float:
    """Return a number; raises TableError if it is none, or has no end."""
    try:
        number = float(without_commas(text))
    except ValueError:
        raise TableError(f"{text!r}, which is not a number; where there is none, write {NO_NUMBERS[0]}") from None
    if not math.isfinite(number):
        raise TableError(f"{text!r}, which is not finite; where there is no number, write {NO_NUMBERS[0]}")
    return number
