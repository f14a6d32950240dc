"""Files that are no tables of results, or can be read in two ways: the message names file, line and remedy."""

import gzip

import pytest

from dlperf_study.audit.audit import audit, reading_warnings
from dlperf_study.audit.reading.numbers import MOST_ERRORS, TableErrors, drop_thousands_commas, error_prefix
from dlperf_study.audit.reading.table_file import finite
from dlperf_study.core.errors import TableError

#: The text of a CSV file.
TABLES = {
    "empty": "",
    "no rows": "world_size,throughput\n",
    "a field too many": "world_size,throughput\n1,1,000\n",
    "a field too few": "world_size,throughput\n1\n\n2\n",
    "a column twice": "throughput,throughput\n1,1\n",
    "an open quote": 'a,b\n1,"2\n',
    "no column of a metric": "devices,rate\n1,100\n",
    "no column of a metric in everyday wording": "GPUs,note\n1,fast\n",
    "a unit after a throughput": "world_size,throughput\n1,100x\n",
    "too large": "metric,value\nspeedup,1e308\n",
    "too small": "metric,value\nspeedup,-2e-31\n",
    "an unknown metric": "metric,value\nspedup,1\n",
    "no metric": "metric,value\n,1\n",
    "a ratio to nothing": "world_size,computation_to_communication\n2,10 : 0\n",
    "a word as value": "metric,value\nspeedup,fast\n",
    "a word as condition": "metric,value,world_size\nspeedup,1,one\n",
    "a word as throughput": "world_size,throughput\n1,quick\n2,fast\n",
    "three errors": "world_size,throughput\none,1\n1,2,3\ny,inf\n",
    "many digits": f"world_size,throughput\n1,{'9' * 400}\n",
    "more errors than are listed": "world_size,throughput\n" + "".join(f"x{row},1\n" for row in range(12)),
    "a comma between thousands or before decimals": 'world_size,throughput\n1,"1,000"\n',
    "the same in everyday wording": 'GPUs,img/s\n1,"1,024"\n',
    "a space between thousands": 'world_size,throughput\n1,"3 700,0"\n',
    "semicolons": "world_size;throughput\n1;2\n",
    "semicolons and decimal commas": "GPUs;img/s\n1;100,5\n2;199,0\n",
    "no value": "metric,world_size\nspeedup,1\n",
    "a key twice": "cell,metric,value\na,speedup,1\na,speedup,2\n",
    "two units in a column": "GPUs,Throughput\n1,100 img/s\n2,200 img/s\n4,300 tok/s\n",
    "two signs in a column": 'GPUs,img/s\n1,"1,000"\n8,7.200\n',
    "a text above the header": "On V100\nGPUs,img/s\n1,100\n2,190\n",
    **{
        f"{devices} {name}": f"{name},throughput\n{devices},100\n"
        for name in ("world_size", "nodes", "devices_per_node")
        for devices in ("0", "-1")
    },
    **{f"{devices} devices": f"world_size,throughput\n{devices},100\n" for devices in ("2.5", "inf")},
    **{f"JSON {position}": text for position, text in enumerate(("{}", '[{"gpus": 8}]', '[\n  {"gpus": 8}\n]'))},
}
#: The name and the content of other files.
FILES = {
    "no UTF-8": ("table.csv", b"\xff\xfe\x00"),
    "no UTF-8 in a page": ("table.md", b"\xff\x00|"),
    "a page without tables": ("table.md", b"# Results\n"),
    "a row of a page that is too long": ("table.md", b"| GPUs | img/s |\n|---|---|\n| 1 | 100 | 3 |\n"),
    "compressed": ("table.csv", gzip.compress(b"world_size,throughput\n1,100\n")),
    "LaTeX": ("table.tex", b"\\begin{tabular}{lr}\n8 & 100 \\\\\n"),
    "no workbook": ("table.xlsx", b"GPUs,Images/sec\n"),
}


@pytest.mark.parametrize(
    ("name", "content"),
    [*(("table.csv", text.encode()) for text in TABLES.values()), *FILES.values()],
    ids=[*TABLES, *FILES],
)
def test_a_file_is_refused(read_table, refused, name, content):
    with refused(TableError):
        read_table(content, name=name)


@pytest.mark.parametrize("field", ["1,024", "inf", "1,02"])
def test_a_field_is_refused(field, refused):
    with refused(TableError):
        finite(field)


@pytest.mark.parametrize(
    ("field", "number"), [("1,024.5", 1024.5), ("-1,234,567", -1234567.0), ("1024", 1024.0), ("1e3", 1000.0)]
)
def test_commas_between_thousands_are_read_over(field, number):
    assert finite(field) == number


@pytest.mark.parametrize("field", ["1,02", "10 : 3", "12,34,567", "fast"])
def test_other_commas_are_left_alone(field):
    assert drop_thousands_commas(field) == field


def _even(number):
    if number % 2:
        raise TableError(f"{number} is odd")
    return number


@pytest.mark.parametrize(
    ("numbers", "parsed", "message"),
    [
        ([2], [2], ""),
        ([1, 2, 3, 4, 1], [2, 4], "1 is odd; 3 is odd"),
        (range(2 * MOST_ERRORS + 6), [*range(0, 2 * MOST_ERRORS + 6, 2)], "; 19 is odd; and 3 more"),
    ],
)
def test_what_can_be_parsed_is_and_the_first_errors_are_reported_once(numbers, parsed, message):
    errors = TableErrors()
    assert list(errors.parse_each(numbers, _even)) == parsed
    if not message:
        errors.raise_all()
        return
    with pytest.raises(TableError) as raised:
        errors.raise_all()
    assert str(raised.value).endswith(message)


def test_an_error_has_a_prefix(refused):
    with refused(TableError), error_prefix("line 2: "):
        _even(1)


#: Tables that are read in part: what is refused, and the results that are left.
IN_PART = {
    "a word as throughput": ("GPUs,img/s,speedup\n1,100,1\n2,fast,1.9\n", ["100", "1", "1.9"]),
    "a word as a number of devices": ("GPUs,img/s\n1,100\n2.5,150\n4,390\n", ["100", "390"]),
    "a field too few": ("GPUs,img/s\n1,100\n2\n4,390\n", ["100", "390"]),
    "a separator in a wrong place": ('GPUs,img/s\n1,"1,00.0"\n4,390.0\n', ["390.0"]),
    "two units in a column": (
        "GPUs,img/s,Rate per s\n1,100,5 tokens/s\n2,190,6 steps/s\n4,1,7 steps/s\n",
        ["100", "190", "1"],
    ),
}


@pytest.mark.parametrize(("content", "left"), IN_PART.values(), ids=IN_PART)
def test_what_cannot_be_read_is_left_out(read_table, snapshot, content, left):
    tables = read_table(content)
    assert [cell.text for cell in tables.results.cells] == left
    assert "\n".join(reading_warnings(tables, audit(tables.results))) == snapshot


def test_one_table_of_a_page_is_left_out(read_table):
    twice, right = "| img/s | img/s |\n|---|---|\n| 1 | 2 |\n", "| GPUs | img/s |\n|---|---|\n| 1 | 100 |\n"
    tables = read_table(f"# A\n{twice}\n# B\n{right}", name="table.md")
    assert [cell.text for cell in tables.results.cells] == ["100"]
    assert len(tables.refused) == 1


def test_sizes_of_networks_are_names(read_table):
    cells = read_table("Model,GPUs,T/s\n760m,8,900\n7b,8,100\n1.5B,8,400\n").results.cells
    assert [cell.get("model") for cell in cells] == ["760m", "7b", "1.5B"]


@pytest.mark.parametrize(("column", "share"), [("41.25", 0.4125), ("0.4125", 0.4125), ("1.52", 1.52)])
def test_a_column_tells_per_cent_from_shares(read_table, column, share):
    shares = read_table(f"GPUs,MFU\n8,{column}\n16,{column}\n").results.select("mfu")
    assert [cell.value for cell in shares] == [share, share]
