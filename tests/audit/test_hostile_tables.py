"""Files that would take minutes and gigabytes if they were read as they ask for: each is read, or refused, at once."""

import os
import time
import zipfile

import pytest

from dlperf_study.audit.reading import excel
from dlperf_study.audit.reading.files import MOST_BYTES, plain_text
from dlperf_study.audit.reading.numbers import written_number
from dlperf_study.audit.reading.table_file import read_tables
from dlperf_study.core.errors import TableError

pytestmark = pytest.mark.timeout(30)
ROWS = (("GPUs", "Images/sec"), (1, 352.7), (8, 2630.5))


@pytest.mark.parametrize("field", ["1{}2", "1{}", "{}1{}x", "±{}1{}±{}", "1{}k{}±{}2{}²"])
def test_a_row_of_spaces_is_one_space(field):
    assert written_number(field.replace("{}", " " * 100_000)) == written_number(field.replace("{}", " "))


@pytest.mark.parametrize("mark", ["[", "[^", "![", "[x](", "[x](a", "[x](a(", "<", "<a", "`", "**", "\\\\|"])
def test_marks_that_never_end_take_no_longer_than_the_text(mark):
    """What would be a link, a footnote or a tag if it ended, again and again."""
    begun = time.process_time()
    plain_text(mark * 100_000)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("[a](b)", "a"),
        ("![a](b)", "a"),
        ("[a](b(c)d)", "a"),
        ("[a](b) and [c](d)", "a and c"),
        ("[a] (b)", "[a] (b)"),
        ("8[^1] **9**", "8 9"),
    ],
)
def test_links_and_footnotes_are_no_part_of_a_text(cell, text):
    assert plain_text(cell) == text


def test_a_stray_cell_in_the_last_row_is_one_row_more(workbook):
    path = workbook([("A1048576", "x")], Sheet=ROWS)
    assert [line for line, _ in excel.sheets(path)["Sheet"]] == [1, 2, 3, 1_048_576]
    assert [result.text for result in read_tables(path).results.cells] == ["352.7", "2630.5"]


def test_a_stray_cell_in_the_last_column_makes_rows_as_wide_and_no_more(workbook):
    rows = excel.sheets(workbook([("XFD1048576", "x")], Sheet=ROWS))["Sheet"]
    assert {len(fields) for _, fields in rows} == {16_384}
    assert [fields[:2] for _, fields in rows] == [("GPUs", "Images/sec"), ("1", "352.7"), ("8", "2630.5"), ("", "")]


def test_a_sheet_of_too_many_cells_is_refused_with_the_cell_at_its_end(workbook, monkeypatch, refused):
    monkeypatch.setattr(excel, "MOST_CELLS", 60_000)
    with refused(TableError):
        read_tables(workbook([("XFD1048576", "x")], Sheet=ROWS))


def test_a_workbook_that_is_unpacked_to_too_much_is_refused(workbook, monkeypatch, refused):
    monkeypatch.setattr(excel, "MOST_BYTES", 10_000_000)
    path = workbook(Sheet=ROWS)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/zeros", bytes(20_000_000))
    with refused(TableError):
        read_tables(path)


@pytest.mark.parametrize("name", ["table.csv", "table.md", "table.xlsx", "table.tsv"])
def test_what_has_no_end_is_refused(tmp_path, refused, name):
    (tmp_path / name).symlink_to("/dev/zero")
    os.mkfifo(tmp_path / f"pipe-{name}")
    for file in (name, f"pipe-{name}"):
        with refused(TableError):
            read_tables(tmp_path / file)


def test_a_file_of_any_size_is_not_read(tmp_path, refused):
    (tmp_path / "table.csv").touch()
    os.truncate(tmp_path / "table.csv", MOST_BYTES + 1_000_000)
    with refused(TableError):
        read_tables(tmp_path / "table.csv")


SHEET = "xl/worksheets/sheet1.xml"
EMPTY_CELLS = b'<c r="A9"/>' * 150_000


@pytest.mark.parametrize(
    ("member", "old", "new"),
    [
        (SHEET, b'<row r="3"', b'<row r="99999999999"'),
        (SHEET, b"</sheetData>", b'<row r="9">' + EMPTY_CELLS + b"</row></sheetData>"),
        (SHEET, b"</sheetData>", b"<row/>" * 150_000 + b"</sheetData>"),
        ("xl/styles.xml", b"</styleSheet>", b"<si/>" * 150_000 + b"</styleSheet>"),
    ],
    ids=["a row that no sheet has", "empty cells", "empty rows", "empty texts"],
)
def test_what_makes_far_more_than_its_bytes_is_refused(workbook, tmp_path, refused, member, old, new):
    with zipfile.ZipFile(workbook(Sheet=ROWS)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert old in members[member]
    members[member] = members[member].replace(old, new)
    with zipfile.ZipFile(tmp_path / "changed.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with refused(TableError):
        read_tables(tmp_path / "changed.xlsx")


def test_a_label_of_many_digits_takes_no_longer_than_its_text(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f"setting,GPUs,Images/sec\n{'1' * 30_000},1,100\nb,2,190\n")
    begun = time.process_time()
    assert len(read_tables(path).results.cells) == 2
    assert time.process_time() - begun < 5


def test_a_header_of_many_names_is_shown_in_part(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(",".join(f"c{number % 99_999}" for number in range(100_000)) + "\n" + ",".join("1" * 100_000))
    with pytest.raises(TableError, match=r"column c0 appears twice; the columns are .* and 99970 more") as error:
        read_tables(path)
    assert len(str(error.value)) < 1000


def test_a_file_of_the_kernel_is_refused(tmp_path, refused):
    (tmp_path / "table.csv").symlink_to("/proc/kmsg")
    with refused(TableError):
        read_tables(tmp_path / "table.csv")
