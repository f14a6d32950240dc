"""Tables of a report as a reader sees them: the cells below a heading."""

from bs4 import BeautifulSoup

SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


def printed_seconds(page: str, table: str, heading: str) -> list[float]:
    """Return the times under a heading of a table, from the top, whatever their unit."""
    printed = BeautifulSoup(page, "html.parser").select_one(f"#table-{table} table")
    assert printed
    headings = [cell.get_text() for cell in printed.select("thead th") for _ in range(int(str(cell["colspan"])))]
    # A value with an interval has two columns, of which it is the first.
    (column, unit), *_ = [
        (k, unit) for k, text in enumerate(headings) for unit in SECONDS if text == f"{heading} {unit}"
    ]
    rows = [row.select("td") for row in printed.select("tbody tr")]
    return [float(cells[column].get_text()) * SECONDS[unit] for cells in rows if cells]
