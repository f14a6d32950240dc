"""Numbers in cells, with separators, units or deviations; errors of cells."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from dlperf_study.audit.published.source import UNIT_FACTORS
from dlperf_study.audit.vocabulary import WORDS
from dlperf_study.core.errors import TableError
from dlperf_study.core.wording import list_first

#: How many of a written unit are one unit of the metric; any other unit is that of the metric.
FACTORS = {
    **UNIT_FACTORS,
    "us": 1e6,
    "min": 1 / 60,
    "h": 1 / 3600,
    "GFLOP/s": 1e-9,
    "PFLOP/s": 1e-15,
    "k": 1e-3,
    "M": 1e-6,
}
#: A number with commas before every three digits; with one comma and no point it may be a decimal comma as well.
_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
_POINT = re.compile(r"[-+]?\d+(?:,\d{3})*\.\d+")
#: A number whose only sign may be before decimals as well as between thousands.
_ONE_SIGN = re.compile(r"[-+]?\d{1,3}[.,]\d{3}")
#: Spaces and apostrophes between thousands.
_GAPS = re.compile(r"(?<=\d)[ \u00a0\u202f'’](?=\d{3}(?!\d))")
_NUMBER = re.compile(
    r"(?P<about>[~≈]\s*)?(?P<digits>[-+]?\d[\d.,]*(?:e[-+]?\d+)?)\s*(?P<scale>[kKM](?![A-Za-z]))?\s*"
    r"(?P<deviation>(?:±|\+/-)\s*[\d.,]+)?\s*(?P<unit>[^\d\s].*)?",
    re.DOTALL,
)
_ENDS = re.compile(r"[.,]$")
_FORMULA, _SECOND = re.compile(r"^[\d.,\s*×x/+()]+=\s*(?=[~≈\d])"), re.compile(r"(?<=\w)\s*\([~≈]?[\d.,/]+\s?[%x×]?\)$")
_UNIT_IN_BRACKETS = re.compile(r"(?<=[\dx×])\s*\(([A-Za-z/%µ]+)\)$")
#: The longest unit after a number; what is longer is a text that begins with a number.
_LONGEST_UNIT = 24
_UNIT = re.compile(r"/?[%x×µA-Za-z][%A-Za-z/ ._·-]*")
#: A duration in parts, ``1h 30m``, and of a clock, ``1:02:03``; a number before two colons counts hours.
_DURATION = re.compile(
    r"(?:(?P<h>\d{1,6}) ?h(?:ours?|rs?)?,? ?)?(?:(?P<min>\d{1,6}) ?m(?:in(?:ute)?s?)?,? ?)?"
    r"(?:(?P<s>\d{1,6}(?:\.\d{1,6})?) ?s(?:ec(?:ond)?s?)?)?"
)
_CLOCK = re.compile(r"(?:(?P<h>\d{1,6}):)?(?P<min>\d{1,6}):(?P<s>\d\d(?:\.\d{1,6})?)")
_SECONDS_OF = {"h": 3600, "min": 60, "s": 1}
MOST_ERRORS = 10
#: How many fields of a table are kept with their numbers: a long table repeats many.
_KEPT_NUMBERS = 1 << 16
Item = TypeVar("Item")
Value = TypeVar("Value")


@dataclass(frozen=True)
class WrittenNumber:
    """A number in a cell: digits, scale (``k``), deviation and unit."""

    digits: str
    scale: str = ""
    unit: str = ""
    deviation: str = ""


def tidy(field: str) -> str:
    """Collapse spaces, which some patterns match in cubic time."""
    return " ".join(field.split())


@lru_cache(_KEPT_NUMBERS)
def written_number(field: str) -> WrittenNumber | None:
    """Return the first number of a field, or a formula's result."""
    plain = _SECOND.sub("", _FORMULA.sub("", tidy(field)))
    match = _NUMBER.fullmatch(_GAPS.sub("", _UNIT_IN_BRACKETS.sub(r" \1", plain)))
    if not match or _ENDS.search(match["digits"]):
        return None
    unit = (match["unit"] or "").strip()
    # ``15x faster`` and ``1x (baseline)`` are ratios.
    sign, _, _ = unit.partition(" ")
    if sign.lower() in WORDS.ratio_signs:
        unit = sign
    if unit and (len(unit) > _LONGEST_UNIT or not _UNIT.fullmatch(unit)):
        return None
    return WrittenNumber(match["digits"], match["scale"] or "", unit, match["deviation"] or "")


def written_duration(field: str) -> str:
    """Return a duration of several parts in its smallest unit, ``90 min`` of ``1h 30m``; else empty."""
    match = _CLOCK.fullmatch(field) or _DURATION.fullmatch(field.lower())
    parts = {} if match is None else {unit: part for unit, part in match.groupdict().items() if part}
    if len(parts) < 2:
        return ""
    *larger, smallest = parts
    integer, _, fraction = parts[smallest].partition(".")
    total = int(integer)
    for unit in larger:
        total += int(parts[unit]) * _SECONDS_OF[unit] // _SECONDS_OF[smallest]
    digits = f"{total}.{fraction}" if fraction else str(total)
    if smallest == "s":
        return digits
    return f"{digits} {smallest}"


def is_no_number(field: str) -> bool:
    """Return whether a field says that there is no number."""
    return field.lower() in WORDS.no_numbers or not field.strip("-")


def decimal_sign(fields: Iterable[str], declared: str) -> str:
    """Return the declared decimal sign, else a point if any number has one."""
    if declared:
        return declared
    has_point = any(written and _POINT.fullmatch(written.digits) for written in map(written_number, fields))
    return "." if has_point else ""


def require_one_sign(column: str, fields: Iterable[str], declared: str) -> None:
    """Raise TableError if the decimal sign of a column is ambiguous."""
    numbers = [written.digits for written in map(written_number, fields) if written]
    with_sign = [digits for digits in numbers if re.search(r"[.,]", digits)]
    with_comma = next((digits for digits in with_sign if "," in digits), "")
    with_point = next((digits for digits in with_sign if "." in digits), "")
    if with_comma and with_point and not declared and all(map(_ONE_SIGN.fullmatch, with_sign)):
        both = f"column {column} has {with_comma} and {with_point}"
        raise TableError(f"{both}: the decimal sign is unclear; write all numbers alike")


def plain_digits(digits: str, decimal: str) -> str:
    """Return digits with a decimal point and no thousands separators.

    Unchanged if ``decimal`` is unknown. Raises TableError for misplaced separators.
    """
    if not decimal:
        return digits
    thousands = "," if decimal == "." else "."
    integer, _, fraction = digits.partition(decimal)
    if thousands in digits and not re.fullmatch(rf"[-+]?\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+", integer):
        raise TableError(f"{digits!r}, which is not a number with {decimal!r} before its decimals")
    return integer.replace(thousands, "") + (f".{fraction}" if fraction else "")


def parse_digits(field: str, decimal: str) -> float:
    """Return the number in a field; 0 without one."""
    written = written_number(field)
    try:
        if written:
            return float(plain_digits(written.digits, decimal))
        return 0.0
    except (ValueError, TableError):
        return 0.0


def drop_thousands_commas(field: str) -> str:
    """Remove commas between thousands; return other fields unchanged.

    Raises TableError for one comma and no point, which could be two numbers.
    """
    if not _THOUSANDS.fullmatch(field):
        return field
    if field.count(",") == 1 and "." not in field:
        readings = f"{field.replace(',', '')} or {field.replace(',', '.')}"
        raise TableError(f"{field!r}, which may be {readings}; write it without the comma, or declare the decimal sign")
    return field.replace(",", "")


class TableErrors:
    """The errors of a table, each once."""

    def __init__(self) -> None:
        self._messages: dict[str, None] = {}

    def parse_each(self, items: Iterable[Item], parse: Callable[[Item], Value]) -> Iterator[Value]:
        """Yield ``parse(item)`` for each item; collect TableErrors."""
        for item in items:
            try:
                value = parse(item)
            except TableError as error:
                self._messages[str(error)] = None
            else:
                yield value

    @property
    def messages(self) -> tuple[str, ...]:
        """The messages, each once."""
        return tuple(self._messages)

    def raise_all(self) -> None:
        """Raise one TableError with all messages, if any."""
        if self._messages:
            raise TableError(list_first(self.messages, MOST_ERRORS, "; "))


@contextmanager
def error_prefix(prefix: str) -> Iterator[None]:
    """Add a prefix to the message of a TableError."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{prefix}{error}") from None
