"""Pages as people publish them: how much of each is read and checked, and what is found.

``expected.csv`` has a line for each page of ``pages`` and ``everyday``; ``SOURCES.md`` says where they are from.
"""

import csv
from pathlib import Path

import pytest

from dlperf_study.audit.audit import audit, count_compared
from dlperf_study.audit.reading.table_file import read_tables
from dlperf_study.core.errors import Severity

TESTS = Path(__file__).parent
PAGES = {path.name: path for folder in ("everyday", "pages") for path in (TESTS / folder).glob("*_*.*")}
with open(TESTS / "pages" / "expected.csv", encoding="utf-8", newline="") as file:
    EXPECTED = list(csv.DictReader(file))


def test_every_page_has_a_line():
    assert sorted(row["page"] for row in EXPECTED) == sorted(PAGES)
    assert len(PAGES) >= 25


@pytest.mark.parametrize("row", EXPECTED, ids=[row["page"] for row in EXPECTED])
def test_a_page_is_read_and_its_errors_are_found(row):
    tables = read_tables(PAGES[row["page"]])
    results = audit(tables.results)
    compared, read = map(sum, zip(*count_compared(tables, results).values(), strict=True))
    assert [read, compared, len(tables.refused)] == [int(row[name]) for name in ("read", "compared", "refused")]
    for severity in (Severity.ERROR, Severity.WARNING):
        checks = [result.name for result in results if result.count(severity)]
        assert checks == row[f"{severity}s"].split()
