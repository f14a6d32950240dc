"""Small tables of results, as a source would print them."""

from typing import Any

import pandas as pd

from dlperf_study.audit.published.source import parse_resolution, parse_value
from dlperf_study.audit.result_frames import read_results_frame
from dlperf_study.audit.results import Results

Row = dict[str, Any]
#: Tables by check and name: what the check yields for each item, and the rows of the table.
Cases = dict[str, dict[str, tuple[str, list[Row]]]]


def number(metric: str, printed: str, world_size: int | None = 1, **facts: Any) -> Row:
    """Return one printed number; its key is made of its table, metric and devices unless given as ``cell``."""
    text, unit = printed.removesuffix("%"), "%" * printed.endswith("%")
    own = {"value": parse_value(text, unit), "resolution": parse_resolution(text, unit), "after": unit, "printed": text}
    table = facts.get("table", "table")
    place = {"cell": f"{table}/{metric}/{world_size}", "source": "source", "table": table, "series": table}
    return {**place, "metric": metric, "world_size": world_size, **own, **facts}


def throughput(printed: str, world_size: int | None = 1, **facts: Any) -> Row:
    return number("throughput", printed, world_size, **facts)


def curve(*printed: str) -> list[Row]:
    """Return throughputs of 1, 2, 4 ... devices."""
    return [throughput(text, 2**power) for power, text in enumerate(printed)]


def ratio(metric: str, printed: str, world_size: int, **facts: Any) -> Row:
    """Return a ratio to the throughput of one device in the same table."""
    table = facts.get("table", "table")
    return number(metric, printed, world_size, baseline=f"{table}/throughput/1", **facts)


def runs(printed: list[str], world_size: int = 1, **facts: Any) -> list[Row]:
    """Return the runs of the throughput at a number of devices."""
    table = facts.get("table", "table")
    summary = f"{table}/throughput/{world_size}"
    listed = {"estimator": "run", "runs_of": summary}
    return [
        throughput(text, world_size, cell=f"{summary}/{position}", repetition=position, **listed, **facts)
        for position, text in enumerate(printed, 1)
    ]


def results(rows: list[Row]) -> Results:
    return read_results_frame(pd.DataFrame(rows))


def moved(rows: list[Row], name: str) -> list[Row]:
    """Return rows as those of another table."""
    copies = [row | {"table": name, "series": name, "cell": f"{name}/{row['cell']}"} for row in rows]
    return [row | ({"runs_of": f"{name}/{row['runs_of']}"} if "runs_of" in row else {}) for row in copies]
