"""Published numbers of others, as one tidy frame.

A source is a pair of files: ``<name>.yaml`` has the authors, the address and facts of all numbers; ``<name>.csv`` has a
line per printed number, with its text as printed.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pandas as pd

from dlperf_study.audit.published.source import FACTS, PublishedSource, read_lines, read_source
from dlperf_study.metrics.columns import TableName, list_columns
from dlperf_study.study.study import SOURCES_FOLDER, source_names

__all__ = ["PublishedSource", "load", "load_source", "printed_table", "read_source", "source_names"]

Line = dict[str, Any]
#: Facts that may change along a series.
ALONG_SERIES = {"nodes", "devices_per_node", "world_size", "global_batch"}
ALONG_SERIES |= {"matching_nodes", "matching_devices_per_node"}
_SERIES_FACTS = tuple(name for name in FACTS if name not in {*ALONG_SERIES, "scope", "role", "estimator", "inferred"})


def load(names: Iterable[str] | None = None) -> pd.DataFrame:
    """Return the numbers of some or all sources, with the columns of ``TableName.PUBLISHED``."""
    lines: list[Line] = []
    for name in source_names() if names is None else names:
        lines.extend(_source_lines(name))
    columns = {}
    for column in list_columns(TableName.PUBLISHED):
        values = [line.get(column.name) for line in lines]
        columns[column.name] = pd.Series(values, dtype=str(column.dtype_in(TableName.PUBLISHED)))
    return pd.DataFrame(columns)


def load_source(name: str) -> pd.DataFrame:
    """Return the numbers of one source; raises PublishedError as :func:`load` does."""
    return load([name])


def printed_table(cells: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return a table as strings, in printed order; empty without a number."""
    cells = cells[cells["table"] == table]
    printed = cells["before"] + cells["printed"] + cells["after"]
    rows, columns = cells["row"], cells["column"]
    grid = printed.groupby([rows, columns], sort=False).agg("".join).unstack(sort=False)
    return grid.fillna("").loc[list(dict.fromkeys(rows)), list(dict.fromkeys(columns))]


def _source_lines(name: str) -> list[Line]:
    """Return the lines of a source with keys of cells and references."""
    lines = list(read_lines(read_source(name), SOURCES_FOLDER / f"{name}.csv"))
    fields = [f"{line['table']}/{line['row']}/{line['column']}" for line in lines]
    sizes, counts = Counter(fields), Counter[str]()
    runs = Counter(line.get("runs_of") for line in lines)
    with_keys: list[Line] = []
    for field, series, source_line in zip(fields, _series(lines), lines, strict=True):
        counts[field] += 1
        key = field if sizes[field] == 1 else f"{field}#{counts[field]}"
        line = {"before": "", "after": "", **source_line}
        line |= {"source": name, "cell": f"{name}/{key}", "series": f"{name}/{series}", "runs": runs[key]}
        for reference in ("baseline", "runs_of"):
            if reference in line:
                line[reference] = f"{name}/{line[reference]}"
        with_keys.append(line)
    return with_keys


def _series(lines: list[Line]) -> list[str]:
    """Return the series of each number: table and varying facts."""
    values: dict[tuple[str, str], set[Any]] = {}
    for line in lines:
        for name in _SERIES_FACTS:
            values.setdefault((line["table"], name), set()).add(line.get(name))
    series = []
    for line in lines:
        parts = [line["table"]]
        for name in _SERIES_FACTS:
            if name in line and len(values[line["table"], name]) > 1:
                value = line[name]
                parts.append(f"{value:g}" if isinstance(value, float) else str(value))
        series.append("/".join(parts))
    return series
