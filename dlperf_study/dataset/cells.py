"""What a cell of a table of the dataset holds."""

import math
from typing import Any

import pandas as pd

from dlperf_study.metrics.statistics import Bounded


def is_missing(value: Any) -> bool:
    """Return whether a cell has no value; empty texts and infinity count."""
    return bool(pd.isna(value)) or value == "" or value in (math.inf, -math.inf)


def bounded_value(row: Any, column: str) -> Bounded:
    """Return a row's value in a column, with its bounds if any."""
    return getattr(row, column), getattr(row, f"{column}_low", None), getattr(row, f"{column}_high", None)
