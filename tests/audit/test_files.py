"""Tables of files as cells: what is a number, what tells curves apart, and in which file it may be."""

import re
from zipfile import ZipFile

import pytest

from dlperf_study.audit.audit import audit
from dlperf_study.audit.checks import list_diagnostics
from dlperf_study.audit.published import load_source
from dlperf_study.audit.reading.files import TableFormat
from dlperf_study.audit.reading.table_file import read_tables
from dlperf_study.core.errors import Severity, TableError

WIDE = """world_size,batch_per_device,throughput,speedup,efficiency
1,32,100.0,1.00,100%
2,32,195.2,1.95,97.6%
4,32,370.0,3.70,92.5%
"""
LONG = """cell,metric,value,world_size,baseline
a,throughput,16.74,1,
b,throughput,263.29,20,
c,efficiency,78.64%,20,a
d,throughput,-,40,
"""
SPEEDS = [["GPUs", "Images/sec", "Speed-up"], [1, 352.7, 1], [8, 2630.5, 7.46]]
THIRD = 100 / 3


def found(tables):
    """Return the check and the diagnosed number of each error and warning."""
    diagnostics = [each for each in list_diagnostics(audit(tables.results, True)) if each.severity is not Severity.NOTE]
    return [(diagnostic.check, diagnostic.cells[0].text) for diagnostic in diagnostics]


#: A table, and the diagnosed numbers.
FOUND = {
    "wide and right": (WIDE, []),
    "wide": (WIDE.replace("3.70", "3.80"), [("efficiency", "92.5%"), ("ratios", "3.80")]),
    "long and right": (LONG, []),
    "long": (LONG.replace("78.64", "88.64"), [("ratios", "88.64%")]),
    "devices by another name": (
        "GPUs,world_size,throughput,speedup\n1,1,100.0,1.00\n4,4,370.0,3.80\n",
        [("ratios", "3.80")],
    ),
    "devices of nodes": ("nodes,devices_per_node,throughput,speedup\n1,2,100,1\n2,2,190,2.5\n", [("ratios", "2.5")]),
    "digits beyond the ninth": (
        f"world_size,throughput,speedup\n1,{THIRD!r},1.0\n3,{2 * THIRD!r},{2.0 + 1e-15!r}\n",
        [],
    ),
    "the throughput of the baseline in a column": (
        "Group,Devices,Throughput (samples/s),Baseline throughput (samples/s),Speedup (×)\n"
        "local,1,40.1,40.1,1\nasync,1,50.2,40.1,1.25\nasync,2,70.4,40.1,1.86\n",
        [("ratios", "1.86")],
    ),
    "throughputs of nothing": (
        "world_size,throughput,speedup\n1,0,1\n2,190.0,1.90\n",
        [("above_zero", "0"), ("ratios", "1"), ("ratios", "1.90")],
    ),
    **{
        f"throughputs as {head}": (f"world_size,{head},speedup\n1,100,1.00\n4,370,3.90\n", [("ratios", "3.90")])
        for head in ("images/s", "Throughput (img/sec)", "train_samples_per_second", "Seq / s")
    },
    "columns that separate curves": (
        "date,world_size,throughput,speedup,site\n2020-01-01,1,100,1.00,first\n2020-01-02,2,198,1.98,\n"
        "2020-01-02,4,380,3.90,busy\n",
        [],
    ),
}


@pytest.mark.parametrize(("text", "diagnosed"), FOUND.values(), ids=FOUND)
def test_the_wrong_numbers_of_a_table_are_found(read_table, text, diagnosed):
    assert found(read_table(text)) == diagnosed


#: A table, and the texts of its numbers.
PRINTED = {
    "long": (LONG, ["16.74", "263.29", "78.64%"]),
    **{
        f"{word or 'nothing'} is no number": (
            f"world_size,throughput,speedup\n1,100.0,1.00\n2,190.0,{word}\n4,{word},-\n",
            ["100.0", "1.00", "190.0"],
        )
        for word in ("-", "n/a", "N/A", "NaN", "None", "")
    },
    "commas between thousands": ('world_size,throughput\n1,"1,000.0"\n2,"1,952,000"\n', ["1000.0", "1952000"]),
}


@pytest.mark.parametrize(("text", "printed"), PRINTED.values(), ids=PRINTED)
def test_numbers_count_as_printed(read_table, text, printed):
    cells = read_table(text).results.cells
    assert [cell.text for cell in cells] == printed
    assert not any(cell.printed.computed for cell in cells)


@pytest.mark.parametrize("name", ["devices_per_node", "gpus_per_node", "GPUs/node", "workers per host"])
def test_devices_are_counted_where_a_table_prints_those_of_a_node(read_table, name):
    results = read_table(f"nodes,{name},throughput\n2,8,100\n").results
    [cell] = results.cells
    assert (cell.get("devices_per_node"), cell.world_size) == (8, 16)
    # A number that is computed can't contradict what it is computed from.
    assert {result.name: result.examined for result in audit(results)}["world_size"] == 0


def test_one_of_two_equal_columns_is_used_and_no_compression_is_a_level(read_table):
    [cell] = read_table("world_size,gradient_compression,throughput\n1,none,100.0\n").results.cells
    assert cell.get("gradient_compression") == "none"
    tables = read_table("world_size,throughput,images/s,speedup\n1,100,100,1.00\n")
    assert [bool(column.unused_numbers) for column in tables.columns] == [False, False, True, False]
    assert all(
        cell.printed.computed for cell in read_table(FOUND["digits beyond the ninth"][0]).results.select("throughput")
    )


def test_the_published_frame_written_as_csv_is_such_a_table(read_table):
    cells = load_source("paddle_vgg16_cluster")
    again = read_table(cells.to_csv(index=False)).results
    assert [cell.key for cell in again.cells] == cells.loc[cells["value"].notna(), "cell"].tolist()
    checked = {result.name: result for result in audit(again)}
    assert (checked["ratios"].examined, checked["ratios"].diagnostics) == (8, ())


@pytest.mark.timeout(60)
@pytest.mark.parametrize("ratio", ["1.0", "3.0"], ids=["all baselines", "all wrong"])
def test_many_rows_of_one_configuration_take_no_longer_than_as_many_others(read_table, ratio):
    """In time cubic in their number, these take minutes."""
    rows = [f"resnet50,{8 if row else 1},32,1000,{ratio if row else 1}" for row in range(700)]
    results = read_table("\n".join(("model,world_size,batch_per_device,throughput,speedup", *rows, ""))).results
    assert {result.name: result.examined for result in audit(results)}["ratios"] == 700


def test_a_point_decides_what_the_commas_of_a_table_are(read_table):
    [cell] = read_table("| GPUs | img/s | mem |\n|---|---|---|\n| 8 | 2,840 | 38.2 |\n", name="table.md").results.cells
    assert cell.value == 2840
    page = "| GPUs | img/s |\n|---|---|\n| 8 | 2.840,5 |\n"
    [cell] = read_table(page, TableFormat(decimal=","), name="table.md").results.cells
    assert cell.value == 2840.5


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_a_table_may_be_in_the_unicode_of_excel(read_table, encoding):
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    text = f"{mark}GPUs,images/s\r\n1,100\r\n2,195\r\n"
    assert [cell.value for cell in read_table(text.encode(encoding)).results.select("throughput")] == [100, 195]


def test_every_sheet_of_a_workbook_is_a_table(workbook):
    speeds = [[], *SPEEDS, [16, None, "n/a"]]
    tables = read_tables(workbook(speeds=speeds, notes=[["who", "when"], ["a", "b"]], empty=[]))
    assert [cell.value for cell in tables.results.select("throughput")] == [352.7, 2630.5]
    assert tables.tables_without_results == ("table 2 (notes)",)
    assert {result.name: result.examined for result in audit(tables.results)}["ratios"] == 2


def test_a_wrong_number_of_a_workbook_is_found(workbook):
    assert found(read_tables(workbook(speeds=[*SPEEDS[:2], [8, 2630.5, 7.96]]))) == [("ratios", "7.96")]


def test_formulas_without_a_stored_value_are_refused_with_their_cells(workbook, refused):
    path = workbook(speeds=[*SPEEDS[:2], [8, 2630.5, "=B3/B2"]])
    with refused(TableError):
        read_tables(path)


@pytest.mark.parametrize(("stored", "count"), [("><f>B3/B2</f><v>7.46</v>", 2), (' t="str"><f>""</f><v></v>', 1)])
def test_formulas_with_a_stored_value_are_read(workbook, stored, count):
    path = workbook(speeds=[*SPEEDS[:2], [8, 2630.5, "=B3/B2"]])
    with ZipFile(path) as book:
        members = {name: book.read(name).decode() for name in book.namelist()}
    sheet = re.sub(r'(<c r="C3")[^>]*>.*?(?=</c>)', rf"\1{stored}", members["xl/worksheets/sheet1.xml"])
    with ZipFile(path, "w") as book:
        for name, content in (members | {"xl/worksheets/sheet1.xml": sheet}).items():
            book.writestr(name, content)
    assert len(read_tables(path).results.select("speedup")) == count


#: A table with columns whose numbers no check uses; what is said of them is a snapshot.
UNUSED = {
    "runs by another name": "GPUs,throughput_run1,throughput_run2,avg\n1,100.0,102.0,101.0\n",
    "a batch of unknown scope, a time of unknown unit": "GPUs,batch size,step time,img/s\n8,256,0.101,2534.7\n",
    "a deviation without its runs": "GPUs,img/s,std\n8,2534.7,12.1\n",
    "a throughput of a node": "nodes,GPUs,img/s,img/s/node\n2,16,4800,2400\n",
    "steps of a device": "GPUs,img/s,steps/s/GPU\n2,4800,2.1\n",
    "FLOP/s of nothing named": "GPUs,img/s,TFLOP/s\n2,4800,210\n",
    "an evaluation": "GPUs,eval img/s,img/s\n2,4800,2400\n",
    **{
        f"a throughput that its name multiplies: {name}": f"GPUs,{name},Step time (ms),GBS\n1,1.0,128,128\n"
        for name in ("Throughput (k images/s)", "thousand tokens/s", "images/s (×1000)", "(M tok/s)")
    },
}


@pytest.mark.parametrize("text", UNUSED.values(), ids=UNUSED)
def test_numbers_that_are_not_used_are_named(read_table, text, snapshot):
    unused = {column.header: column.unused_numbers for column in read_table(text).columns if column.unused_numbers}
    assert unused == snapshot
