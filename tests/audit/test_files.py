import gzip

import pytest

from dlperf_study.audit.audit import audit
from dlperf_study.audit.table_file import read_tables
from dlperf_study.errors import TableError
from dlperf_study.published import load_source

WIDE = """world_size,batch_per_device,throughput,speedup,efficiency
1,32,100.0,1.00,100%
2,32,195.2,1.95,97.6%
4,32,370.0,3.80,92.5%
"""
LONG = """cell,metric,value,world_size,baseline
a,throughput,16.74,1,
b,throughput,263.29,20,
c,efficiency,78.64%,20,a
d,throughput,-,40,
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "table.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def found(path):
    return [diagnostic for checked in audit(read_tables(path).results) for diagnostic in checked.diagnostics]


@pytest.mark.parametrize("devices", ["0", "-1"])
@pytest.mark.parametrize("column", ["world_size", "nodes", "devices_per_node"])
def test_a_number_of_devices_below_one_is_refused(write, column, devices):
    with pytest.raises(TableError, match=rf"table\.csv: line 2: {column} is '{devices}', which must be at least 1"):
        read_tables(write(f"{column},throughput\n{devices},100\n"))


def test_devices_are_counted_where_a_table_prints_those_of_a_node(write):
    results = audit(read_tables(write("nodes,devices_per_node,throughput,speedup\n1,2,100,1\n2,2,190,2.5\n")).results)
    [diagnostic] = [diagnostic for result in results for diagnostic in result.diagnostics]
    assert diagnostic.computation == "190 / 100 = 1.9, printed 2.5: it fits no rounding"
    assert [cell.world_size for cell in diagnostic.cells] == [4, 4, 2]
    # A number that is computed can't contradict what it is computed from.
    assert {result.name: result.examined for result in results}["world_size"] == 0


@pytest.mark.parametrize("name", ["gpus_per_node", "GPUs/node", "workers per host"])
def test_the_devices_of_a_node_have_one_name(write, name):
    [cell] = read_tables(write(f"nodes,{name},throughput\n2,8,100\n")).results.cells
    assert (cell.get("devices_per_node"), cell.world_size) == (8, 16)


def test_a_wide_table_as_one_types_it(write):
    [speedup, efficiency] = sorted(found(write(WIDE)), key=lambda diagnostic: diagnostic.check, reverse=True)
    assert "370.0 / 100.0 = 3.7, printed 3.80" in speedup.computation
    assert efficiency.computation == "3.80 × 1 / 4 = 0.95, printed 92.5%"


def test_a_right_table_has_no_diagnostic(write):
    assert found(write(WIDE.replace("3.80", "3.70"))) == []
    assert found(write(LONG)) == []


def test_a_long_table(write):
    table = read_tables(write(LONG)).results
    assert [(cell.key, cell.text) for cell in table.cells] == [("a", "16.74"), ("b", "263.29"), ("c", "78.64%")]
    [diagnostic] = found(write(LONG.replace("78.64", "88.64")))
    assert (diagnostic.check, diagnostic.severity) == ("ratios", "error")


def test_the_published_frame_written_as_csv_is_such_a_table(tmp_path):
    cells = load_source("paddle_vgg16_cluster")
    cells.to_csv(tmp_path / "cells.csv", index=False)
    again = read_tables(tmp_path / "cells.csv").results
    assert [cell.key for cell in again.cells] == cells.loc[cells["value"].notna(), "cell"].tolist()
    checked = {one.name: one for one in audit(again)}
    assert (checked["ratios"].examined, checked["ratios"].diagnostics) == (8, ())


@pytest.mark.parametrize("word", ["-", "n/a", "N/A", "NaN", ""])
def test_a_word_for_no_number_is_none(write, word):
    table = read_tables(write(f"world_size,throughput,speedup\n1,100.0,1.00\n2,190.0,{word}\n4,{word},-\n")).results
    assert [cell.text for cell in table.cells] == ["100.0", "1.00", "190.0"]


def test_no_compression_is_a_level_and_no_missing_number(write):
    [cell] = read_tables(write("world_size,gradient_compression,throughput\n1,none,100.0\n")).results.cells
    assert cell.get("gradient_compression") == "none"


def test_commas_between_thousands_are_none_of_a_number(write):
    table = read_tables(write('world_size,throughput\n1,"1,000.0"\n2,"1,952,000"\n')).results
    assert [(cell.text, cell.value) for cell in table.cells] == [("1000.0", 1000.0), ("1952000", 1952000.0)]
    assert [cell.printed.computed for cell in table.cells] == [False, False]


def test_the_metrics_named_are_those_that_work(write):
    with pytest.raises(TableError, match="relative_throughput"):
        read_tables(write("devices,rate\n1,100\n"))


def test_devices_by_another_name_are_no_condition(write):
    wide = "GPUs,world_size,throughput,speedup\n1,1,100.0,1.00\n4,4,370.0,3.80\n"
    [diagnostic] = found(write(wide))
    assert diagnostic.computation == "370.0 / 100.0 = 3.7, printed 3.80: it fits no rounding"


def test_digits_beyond_the_ninth_are_no_rounding(write):
    third = 100 / 3
    wide = f"world_size,throughput,speedup\n1,{third!r},1.0\n3,{2 * third!r},{2.0 + 1e-15!r}\n"
    assert [cell.printed.computed for cell in read_tables(write(wide)).results.of("throughput")] == [True, True]
    assert found(write(wide)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: a header with the names of the columns was expected, and rows below it"),
        ("world_size,throughput\n", "there is no row below the header"),
        ("world_size,throughput\n1,1,000\n", "line 2 has 3 fields, and the header has 2"),
        ("world_size,throughput\n1,1\n\n2\n", "line 4 has 1 field, and the header has 2"),
        ("throughput,throughput\n1,1\n", "column throughput appears twice"),
        (b"\xff\xfe\x00", "not a CSV table"),
        ('a,b\n1,"2\n', "not a CSV table"),
        ("devices,rate\n1,100\n", "there is no column metric and no column of a metric; the columns are devices, rate"),
        ("world_size,throughput\n1,100x\n", "throughput is '100x', which is not a number"),
        ("metric,value\nspeedup,1e308\n", "value is '1e308', which no result is: its size must be 0, or from 1e-30 to"),
        ("metric,value\nspeedup,-2e-31\n", "value is '-2e-31', which no result is"),
        ("metric,value\nspedup,1\n", "line 2: metric is 'spedup'; did you mean speedup"),
        ("metric,value\n,1\n", "line 2: metric is ''"),
        ("world_size,computation_to_communication\n2,10 : 0\n", "is '10 : 0', which is not a number"),
        ("metric,value\nspeedup,fast\n", "line 2: value is 'fast', which is not a number"),
        ("metric,value,world_size\nspeedup,1,x\n", "line 2: world_size is 'x', which is not a number"),
        ("world_size,throughput\n1,100\n2,fast\n", "line 3: throughput is 'fast', which is not a number"),
        (
            "world_size,throughput\nx,1\n1,2,3\ny,inf\n",
            "line 3 has 3 fields, and the header has 2; line 2: world_size is 'x'",
        ),
        ("world_size,throughput\nx,1\n1,2,3\ny,inf\n", "line 4: throughput is 'inf', which is not finite; where there"),
        (f"world_size,throughput\n1,{'9' * 400}\n", f"line 2: throughput is '{'9' * 40}…', which is not finite; where"),
        ("world_size,throughput\n" + "x,1\n" * 12, "; and 2 more"),
        ('world_size,throughput\n1,"1,000"\n', "throughput is '1,000', which may be 1000 or 1.000: write it without"),
        ('world_size,throughput\n1,"3 700,0"\n', "throughput is '3 700,0', which is not a number; where there is none"),
        ("world_size;throughput\n1;2\n", "fields seem to be separated by semicolons: declare them with --separator"),
        (
            "GPUs;img/s\n1;100,5\n2;199,0\n",
            "its fields seem to be separated by semicolons: declare them with --separator",
        ),
        ("metric,world_size\nspeedup,1\n", "column value is missing"),
        ("cell,metric,value\na,speedup,1\na,speedup,2\n", "column cell has 'a' twice"),
    ],
)
def test_an_error_is_named_with_its_line(write, text, message):
    with pytest.raises(TableError, match=r"table\.csv: ") as raised:
        read_tables(write(text))
    assert message in str(raised.value)


@pytest.mark.parametrize("text", ["{}", '[{"gpus": 8}]', '[\n  {"gpus": 8, "speedup": 7.5}\n]'])
def test_json_is_no_table(tmp_path, text):
    (tmp_path / "table.json").write_text(text)
    with pytest.raises(TableError, match="is JSON: tables are read from CSV, Markdown and Excel files"):
        read_tables(tmp_path / "table.json")


def test_a_column_that_parts_a_curve_is_named(write):
    rows = ("2020-01-01,1,100,1.00,first", "2020-01-02,2,198,1.98,", "2020-01-02,4,380,3.90,busy")
    ratios = [one for one in found(write("\n".join(("date,world_size,throughput,speedup,site", *rows, "")))) if one]
    parted = "no row of the same date and site has a ratio of 1. Rows of a curve differ in devices alone"
    assert [one.computation for one in ratios] == [
        f"{printed} is a ratio, but the table does not say to which rate: {parted}" for printed in ("1.98", "3.90")
    ]


@pytest.mark.parametrize("head", ["images/s", "Throughput (img/sec)", "train_samples_per_second", "Seq / s"])
def test_a_column_of_rates_in_everyday_wording_is_the_throughput(write, head):
    [diagnostic] = found(write(f"world_size,{head},speedup\n1,100,1.00\n4,370,3.90\n"))
    assert diagnostic.computation == "370 / 100 = 3.7, printed 3.90: it fits no rounding"
    repeated = read_tables(write(f"world_size,throughput,{head},speedup\n1,100,100,1.00\n"))
    assert [column.unused_numbers for column in repeated.columns] == ["", "", "throughput means the same", ""]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("ratio", ["1.0", "3.0"], ids=["all baselines", "all wrong"])
def test_many_rows_of_one_configuration_take_no_longer_than_as_many_others(write, ratio):
    """In time cubic in their number, these take minutes."""
    rows = [f"resnet50,{8 if row else 1},32,1000,{ratio if row else 1}" for row in range(700)]
    results = read_tables(write("\n".join(("model,world_size,batch_per_device,throughput,speedup", *rows, "")))).results
    assert {one.name: one.examined for one in audit(results)}["ratios"] == 700


def test_a_compressed_table_is_named_as_one(write):
    with pytest.raises(TableError, match="compressed with gzip"):
        read_tables(write(gzip.compress(WIDE.encode())))
