"""Small tables of results, as a source would print them."""

from typing import Any

import pandas as pd

from dlperf_study.audit.audit_check import AuditDiagnostic
from dlperf_study.audit.checks import load
from dlperf_study.audit.result_frames import results_of_frame
from dlperf_study.audit.results import Results
from dlperf_study.published.source_lines import resolution_of, value_of

Row = dict[str, Any]


def number(metric: str, printed: str, world_size: int = 1, **facts: Any) -> Row:
    """Return one printed number; its key is made of its table, metric and devices unless given as ``cell``."""
    text, unit = printed.removesuffix("%"), "%" * printed.endswith("%")
    own = {"value": value_of(text, unit), "resolution": resolution_of(text, unit), "after": unit, "printed": text}
    table = facts.get("table", "table")
    place = {"cell": f"{table}/{metric}/{world_size}", "source": "source", "table": table, "series": table}
    return {**place, "metric": metric, "world_size": world_size, **own, **facts}


def rate(printed: str, world_size: int = 1, **facts: Any) -> Row:
    return number("throughput", printed, world_size, **facts)


def ratio(metric: str, printed: str, world_size: int, **facts: Any) -> Row:
    """Return a ratio to the rate of one device in the same table."""
    table = facts.get("table", "table")
    return number(metric, printed, world_size, baseline=f"{table}/throughput/1", **facts)


def runs(printed: list[str], world_size: int = 1, **facts: Any) -> list[Row]:
    """Return the runs of the rate at a number of devices."""
    table = facts.get("table", "table")
    summary = f"{table}/throughput/{world_size}"
    listed = {"estimator": "run", "runs_of": summary}
    return [
        rate(text, world_size, cell=f"{summary}/{position}", repetition=position, **listed, **facts)
        for position, text in enumerate(printed, 1)
    ]


def results(rows: list[Row]) -> Results:
    return results_of_frame(pd.DataFrame(rows))


def examined(check: str, rows: list[Row]) -> list[AuditDiagnostic | None]:
    """Return what a check says of every thing it examines."""
    return list(load(check).examine(results(rows)))


def found(check: str, rows: list[Row]) -> list[AuditDiagnostic]:
    return [diagnostic for diagnostic in examined(check, rows) if diagnostic is not None]
