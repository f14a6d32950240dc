"""The published numbers as one tidy frame: a row per printed number."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from dlperf_study.columns import Table, columns_of
from dlperf_study.published.source import FACTS, read_source
from dlperf_study.published.source_lines import read_lines
from dlperf_study.study.study import SOURCES_FOLDER, source_names

# The tables of a source as its authors printed them.


def printed_table(cells: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return a table as text: its rows and columns by their printed labels, in printed order.

    ``cells`` are the numbers of one source. A place where nothing is printed holds the empty text.
    """
    ours = cells[cells["table"] == table]
    text = ours["before"] + ours["printed"] + ours["after"]
    grid = text.groupby([ours["row"], ours["column"]], sort=False).agg("".join).unstack(sort=False)
    return grid.fillna("").loc[list(dict.fromkeys(ours["row"])), list(dict.fromkeys(ours["column"]))]


Line = dict[str, Any]
#: The facts that may differ along a line of points.
ALONG = ("nodes", "devices_per_node", "world_size", "global_batch", "our_nodes", "our_devices_per_node")
_APART = tuple(name for name in FACTS if name not in (*ALONG, "scope", "role", "estimator", "inferred"))


def load(names: Iterable[str] | None = None) -> pd.DataFrame:
    """Return the numbers of some sources, or of all, with the columns of ``Table.PUBLISHED``.

    Raises:
        PublishedError: there is no such source, or one of its files can't be read.

    """
    lines = [line for name in (source_names() if names is None else names) for line in _lines(name)]
    return pd.DataFrame(
        {
            column.name: pd.Series(
                [line.get(column.name) for line in lines], dtype=str(column.dtype_in(Table.PUBLISHED))
            )
            for column in columns_of(Table.PUBLISHED)
        }
    )


def load_source(name: str) -> pd.DataFrame:
    """Return the numbers of one source; raises PublishedError as :func:`load` does."""
    return load([name])


def _lines(name: str) -> Iterator[Line]:
    """Yield the lines of a source with their keys, and the keys of what they point to."""
    lines = list(read_lines(read_source(name), SOURCES_FOLDER / f"{name}.csv"))
    keys, series = _keys(lines), _series(lines)
    runs = Counter(line.get("runs_of") for line in lines)
    for line, key, words in zip(lines, keys, series, strict=True):
        targets: Line = {pointer: f"{name}/{line[pointer]}" for pointer in ("baseline", "runs_of") if pointer in line}
        own = {"source": name, "cell": f"{name}/{key}", "series": f"{name}/{words}", "runs": runs[key]}
        yield {"before": "", "after": "", **line, **targets, **own}


def _keys(lines: list[Line]) -> list[str]:
    """Return the place of each number and, where several stand in one place, which of them it is."""
    places = [f"{line['table']}/{line['row']}/{line['column']}" for line in lines]
    sizes, seen = Counter(places), Counter[str]()
    keys = []
    for place in places:
        seen[place] += 1
        keys.append(place if sizes[place] == 1 else f"{place}#{seen[place]}")
    return keys


def _series(lines: list[Line]) -> list[str]:
    """Return the line of points each number belongs to: its table, and what tells lines of that table apart."""
    levels: dict[tuple[str, str], set[Any]] = defaultdict(set)
    for line in lines:
        for name in _APART:
            levels[line["table"], name].add(line.get(name))
    return ["/".join((line["table"], *_words(line, levels))) for line in lines]


def _words(line: Line, levels: dict[tuple[str, str], set[Any]]) -> Iterator[str]:
    for name in _APART:
        if name in line and len(levels[line["table"], name]) > 1:
            yield f"{line[name]:g}" if isinstance(line[name], float) else str(line[name])
