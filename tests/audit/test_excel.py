"""Excel files as input of the audit."""

import re
from zipfile import ZipFile

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


def test_formulas_without_a_stored_value_are_refused_with_their_cells(workbook):
    path = workbook({"speeds": [["GPUs", "Images/sec", "Speed-up"], [1, 352.7, 1], [8, 2630.5, "=B3/B2"]]})
    with pytest.raises(TableError, match=r"table\.xlsx: formulas have no stored value, in speeds!C3: open the file"):
        read_tables(path)


@pytest.mark.parametrize(("stored", "count"), [("><f>B3/B2</f><v>7.46</v>", 2), (' t="str"><f>""</f><v></v>', 1)])
def test_formulas_with_a_stored_value_are_read(workbook, stored, count):
    path = workbook({"speeds": [["GPUs", "Images/sec", "Speed-up"], [1, 352.7, 1], [8, 2630.5, "=B3/B2"]]})
    with ZipFile(path) as book:
        members = {name: book.read(name).decode() for name in book.namelist()}
    sheet = re.sub(r'(<c r="C3")[^>]*>.*?(?=</c>)', rf"\1{stored}", members["xl/worksheets/sheet1.xml"])
    with ZipFile(path, "w") as book:
        for name, content in (members | {"xl/worksheets/sheet1.xml": sheet}).items():
            book.writestr(name, content)
    assert len(read_tables(path).results.of("speedup")) == count
