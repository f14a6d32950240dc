"""The tables of a source as its authors printed them."""

import pandas as pd


def printed_table(cells: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return a table as text: its rows and columns by their printed labels, in printed order.

    ``cells`` are the numbers of one source. A place where nothing is printed holds the empty text.
    """
    ours = cells[cells["table"] == table]
    text = ours["before"] + ours["printed"] + ours["after"]
    grid = text.groupby([ours["row"], ours["column"]], sort=False).agg("".join).unstack(sort=False)
    return grid.fillna("").loc[list(dict.fromkeys(ours["row"])), list(dict.fromkeys(ours["column"]))]
