"""Tables of a report as a reader sees them: what stands under a heading."""

from bs4 import BeautifulSoup, Tag


def printed(page: str, table: str, heading: str) -> list[str]:
    """Return what stands under a heading, its unit included, from the top; the marks of footnotes are left out."""
    found = BeautifulSoup(page, "html.parser").select_one(f"#table-{table} table")
    assert found
    for mark in found.select("sup"):
        mark.decompose()
    headings = [cell.get_text() for cell in found.select("thead th") for _ in range(int(str(cell["colspan"])))]
    return [_cells(row)[headings.index(heading)] for row in found.select("tbody tr") if row.select("td")]


def _cells(row: Tag) -> list[str]:
    return [cell.get_text() for cell in row.select("td")]
