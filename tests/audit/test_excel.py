"""Excel files as input of the audit."""

import pytest

from dlperf_study.audit.audit import audit
from dlperf_study.audit.table_file import read_tables
from dlperf_study.errors import TableError

openpyxl = pytest.importorskip("openpyxl")


@pytest.fixture
def workbook(tmp_path):
    def write(sheets):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, rows in sheets.items():
            sheet = book.create_sheet(name)
            for row in rows:
                sheet.append(row)
        book.save(tmp_path / "table.xlsx")
        return tmp_path / "table.xlsx"

    return write


def test_every_sheet_is_a_table(workbook):
    speeds = [["GPUs", "Images/sec", "Speed-up"], [1, 352.7, 1], [8, 2630.5, 7.46], [16, None, "n/a"]]
    tables = read_tables(workbook({"speeds": [[], *speeds], "notes": [["who", "when"], ["a", "b"]], "empty": []}))
    assert [cell.value for cell in tables.results.of("throughput")] == [352.7, 2630.5]
    assert tables.tables_without_results == ("table 2 (notes)",)
    assert {one.name: one.examined for one in audit(tables.results)}["ratios"] == 2


def test_a_wrong_ratio_is_found(workbook):
    path = workbook({"speeds": [["GPUs", "Images/sec", "Speed-up"], [1, 352.7, 1], [8, 2630.5, 7.96]]})
    [checked] = [one for one in audit(read_tables(path).results) if one.name == "ratios"]
    assert [diagnostic.cells[0].text for diagnostic in checked.diagnostics] == ["7.96"]


def test_what_is_no_excel_file_is_refused(tmp_path):
    (tmp_path / "table.xlsx").write_text("GPUs,Images/sec\n")
    with pytest.raises(TableError, match=r"table\.xlsx: not an Excel file: File is not a zip file$"):
        read_tables(tmp_path / "table.xlsx")
