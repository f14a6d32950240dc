"""What a line of published points is called where there is little room: what tells it from those it stands among."""

import pandas as pd

from dlperf_study.analysis.published_points import Published
from dlperf_study.report.formatting import is_missing
from dlperf_study.report.series import SEPARATOR, level

NOTHING_NAMED = "The study names no published source."
#: The facts that may tell lines of one table or figure apart.
TELLING = (
    *("program", "mode", "servers", "batch_per_device", "precision"),
    *("loss_scaling", "compiler", "data_source", "extra"),
)


def line_labels(points: pd.DataFrame) -> pd.Series:
    """Return what tells the line of each point from the others of its table; where nothing does, the program."""
    varying = points.groupby(["source", "table"])[list(TELLING)].transform("nunique") > 1
    return pd.Series(
        [_label(row, varying.loc[index]) for index, row in points.iterrows()], index=points.index, dtype=str
    )


def _label(point: pd.Series, varying: pd.Series) -> str:
    words = [level(name, point[name]) for name in TELLING if varying[name] and not is_missing(point[name])]
    return SEPARATOR.join(words) or str(point["program"])


def titled_lines(published: Published, points: pd.DataFrame) -> pd.Series:
    """Return the label of the line of each point, with the title of its table where there are several."""
    labels, tables = line_labels(points), points.groupby(["source", "table"])["series"]
    if tables.ngroups < 2:
        return labels
    alone = tables.transform("nunique") == 1
    titles = [published.sources[row.source].tables[row.table].title for row in points.itertuples()]
    return pd.Series(titles, index=points.index, dtype=str) + (SEPARATOR + labels).where(~alone, "")
