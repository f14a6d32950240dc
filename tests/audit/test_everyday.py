"""Tables in everyday wording: the nine real ones of ``everyday``, and small ones that were made up for this test."""

from pathlib import Path

import pytest

from dlperf_study.audit.audit import audit
from dlperf_study.audit.reading.description import describe_columns, reading_warnings
from dlperf_study.audit.reading.files import TableFormat
from dlperf_study.audit.table_file import read_tables
from dlperf_study.diagnostic import Severity
from dlperf_study.errors import TableError

REAL = Path(__file__).parent / "everyday"
#: What the checks examine in each real table, beyond single numbers, and how many errors and warnings they give.
CHECKED = {
    "torchtitan_llama3_h100_202412.md": ({}, 0),
    "torchtitan_asyncTP_h100.md": ({"ratios": 6}, 0),
    # Rate and time of a row are of different steps: they differ by up to 2 %.
    "timm_benchmark_train_amp_nchw_rtx3090.csv": ({"task_rates": 12}, 12),
    "megatron_bridge_performance_summary.md": ({"utilisation": 7}, 0),
    "ezpz_hf_trainer_polaris_aurora.md": ({"device_rates": 2, "global_batch": 2, "token_rates": 6}, 0),
    "colossalai_benchmark.md": ({"utilisation": 2}, 0),
    "jax_toolbox_maxtext.md": ({"global_batch": 1, "task_rates": 1}, 0),
    "tpu_recipes_ironwood.md": ({"task_rates": 21, "utilisation": 7}, 0),
    "flagperf_efficientnet.md": ({"above_linear": 3, "falling": 3}, 0),
}
_SINGLE = ("sign", "durations", "wholes", "known_names", "roundings", "scopes")


@pytest.mark.parametrize("name", sorted(path.name for path in REAL.iterdir() if path.name != "SOURCES.md"))
def test_a_real_table_is_read_and_checked(name):
    checked = audit(read_tables(REAL / name).results)
    examined = {one.name: one.examined for one in checked if one.examined and one.name not in _SINGLE}
    wrong = sum(one.count(Severity.ERROR) + one.count(Severity.WARNING) for one in checked)
    assert (examined, wrong) == CHECKED[name]


#: The right number in each real table, a wrong one in its stead, and the check that must find it.
DAMAGED = [
    ("torchtitan_asyncTP_h100.md", "| 1.16 |", "| 1.26 |", "ratios"),
    ("timm_benchmark_train_amp_nchw_rtx3090.csv", "10001.12", "11001.12", "task_rates"),
    ("megatron_bridge_performance_summary.md", "| 1635 |", "| 1735 |", "utilisation"),
    ("ezpz_hf_trainer_polaris_aurora.md", "250.61", "260.61", "device_rates"),
    ("ezpz_hf_trainer_polaris_aurora.md", "8.021", "9.021", "token_rates"),
    ("colossalai_benchmark.md", "17.13 samp/s", "18.13 samp/s", "utilisation"),
    ("jax_toolbox_maxtext.md", "22.19", "23.19", "task_rates"),
    ("tpu_recipes_ironwood.md", "2,425.75", "2,725.75", "task_rates"),
    ("flagperf_efficientnet.md", "4686", "46860", "above_linear"),
]


@pytest.mark.parametrize(("name", "right", "wrong", "check"), DAMAGED)
def test_a_wrong_number_in_a_real_table_is_an_error(tmp_path, name, right, wrong, check):
    text = (REAL / name).read_text(encoding="utf-8")
    assert right in text
    (tmp_path / name).write_text(text.replace(right, wrong, 1), encoding="utf-8")
    [checked] = [one for one in audit(read_tables(tmp_path / name).results) if one.name == check]
    assert checked.count(Severity.ERROR) > 0


def test_what_can_t_be_compared_is_said():
    warnings = list(reading_warnings(read_tables(REAL / "torchtitan_llama3_h100_202412.md")))
    assert warnings[0] == "numbers that are not checked: Memory(GiB): no check knows what it is"
    assert warnings[1].startswith("no number depends on another one, and none can be checked: table 1 (Results); ")


def test_a_column_that_several_tables_share_is_described_once():
    lines = describe_columns(read_tables(REAL / "torchtitan_asyncTP_h100.md")).splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == [
        *("Quantization", "Vanilla TP tokens/sec", "Async TP tokens/sec", "Async TP speedup")
    ]
    assert lines[2].endswith("tokens/s  not declared, read as the job  1, 2")


#: Made up: a header and a row, and what each column is read as; columns that are not used are left out.
HEADERS = {
    "GPUs,Images/sec,Speed-up": ("8,2840.5,7.6", {"world_size": "8", "throughput": "2840.5", "speedup": "7.6"}),
    "num_gpus,tokens_per_second_per_gpu,tflops_per_gpu": (
        "64,3890.1,412.5",
        {"world_size": "64", "tokens_per_second_per_device": "3890.1", "device_flops": "412.5 TFLOP/s"},
    ),
    "Number of devices,Scaling efficiency (%)": ("16,91.2", {"world_size": "16", "efficiency": "91.2%"}),
    "# Chips,GBS,Seq Len,Step time (ms),TPS": (
        "16,512,4096,1250.5,1677.0e3",
        {
            **{"world_size": "16", "global_batch": "512", "sequence_length": "4096"},
            **{"step_seconds": "1250.5 ms", "tokens_per_second": "1677.0e3"},
        },
    ),
    "Nodes,GPUs per node,samples/s/GPU,MFU (%)": (
        "2,8,310.5,41.2",
        {"nodes": "2", "devices_per_node": "8", "samples_per_second_per_device": "310.5", "mfu": "41.2%"},
    ),
    "Device,Precision,Throughput": (
        "Tesla V100,amp,1.28k img/s",
        {"device_name": "Tesla V100", "precision": "amp", "throughput": "1.28 k"},
    ),
    # A name of this package whose column has other fields.
    "gpus,device,img/s": ("2,H100,850.0", {"world_size": "2", "device_name": "H100", "throughput": "850.0"}),
    "nnodes,ngpus,img/s": ("1,2,850.0", {"nodes": "1", "world_size": "2", "throughput": "850.0"}),
    "GPUs,Scaling Eff. (%)": ("16,91.2", {"world_size": "16", "efficiency": "91.2%"}),
    "device,img/s": ("2,850.0", {"world_size": "2", "throughput": "850.0"}),
    "World Size,Local Batch Size,it/s": (
        "4,32,2.31",
        {"world_size": "4", "batch_per_device": "32", "steps_per_second": "2.31"},
    ),
    "gpu_count,Total Throughput (img/s),Throughput per GPU (img/s)": (
        "8,2400.0,300.0",
        {"world_size": "8", "throughput": "2400.0", "samples_per_second_per_device": "300.0"},
    ),
    "卡数,吞吐 (imgs/s),加速比": ("8,2400.0,7.5", {"world_size": "8", "throughput": "2400.0", "speedup": "7.5"}),
    "workers,seq/s,peak mem (GiB),infer_samples_per_sec": (
        "4,512.0,38.2,900.0",
        {"world_size": "4", "throughput": "512.0"},
    ),
}


@pytest.mark.parametrize(("header", "row", "columns"), [(header, *rest) for header, rest in HEADERS.items()])
def test_names_in_everyday_wording(tmp_path, header, row, columns):
    (tmp_path / "table.csv").write_text(f"{header}\n{row}\n", encoding="utf-8")
    tables = read_tables(tmp_path / "table.csv")
    read = {cell.metric: cell.text for cell in tables.results.cells}
    facts = tables.results.cells[0].facts
    for name, text in columns.items():
        expected = read.get(name) or facts.get(name)
        assert expected == text or float(expected) == float(text)
    assert {column.meaning.name for column in tables.columns if column.meaning.name} == {*columns}


@pytest.mark.parametrize("rate", ["Throughput (k images/s)", "thousand tokens/s", "images/s (×1000)", "(M tok/s)"])
def test_a_rate_that_its_name_multiplies_is_not_taken_for_one_in_single_samples(tmp_path, rate):
    (tmp_path / "table.csv").write_text(f"GPUs,{rate},Step time (ms),GBS\n1,1.0,128,128\n", encoding="utf-8")
    tables = read_tables(tmp_path / "table.csv")
    assert {cell.metric for cell in tables.results.cells} == {"step_seconds"}
    [warning] = [text for text in reading_warnings(tables) if "multiplies" in text]
    assert rate in warning
    # A network of size M is no million.
    (tmp_path / "table.csv").write_text("GPUs,ViT-M images/s\n1,1000.0\n", encoding="utf-8")
    assert {cell.metric for cell in read_tables(tmp_path / "table.csv").results.cells} == {"throughput"}


#: Made up: tables as people write them, how they are declared, and the only errors and warnings the checks may give.
MADE_UP = {
    "run columns": (
        "GPUs;run1;run2;run3;mean;std|4;100,1;101,3;99,8;100,4;0,8|8;190,5;191,2;196,0;192,6;3,0",
        TableFormat(";", ","),
        [],
    ),
    "a mean that is none of its runs": ("GPUs,run1,run2,run3,mean|4,100.1,101.3,99.8,104.0", None, ["run_lists"]),
    "a deviation that is none of its runs": (
        "GPUs,run 1,run 2,run 3,mean,std|4,100.1,101.3,99.8,100.4,8.1",
        None,
        ["deviations"],
    ),
    "a ratio to another precision": (
        "precision,GPUs,Images/sec,Speedup|fp32,1,352.7,1.00|fp32,8,2630.5,7.46|amp,8,8800.0,24.95",
        None,
        [],
    ),
    "a wrong ratio to another precision": (
        "precision,GPUs,Images/sec,Speedup|fp32,1,352.7,1.00|fp32,8,2630.5,7.46|amp,8,8800.0,22.95",
        None,
        ["ratios"],
    ),
    "two precisions as columns": (
        "GPUs,fp32 img/s,amp img/s,speedup|1,352.7,1380.1,3.91|8,2630.5,9712.0,3.69",
        None,
        [],
    ),
    "two precisions as columns, one ratio wrong": (
        "GPUs,fp32 img/s,amp img/s,speedup|1,352.7,1380.1,3.91|8,2630.5,9712.0,3.96",
        None,
        ["ratios"],
    ),
    "tokens of a device that are those of the job": (
        "GPUs,tokens/s,tokens/s/GPU|8,32000.0,32000.0",
        None,
        ["device_rates"],
    ),
    "efficiency from the rate of a device": ("GPUs,img/s/GPU,Efficiency|1,352.7,100%|8,328.8,93.2%", None, []),
    "speedup from the rate of a device": ("GPUs,img/s/GPU,Speedup|1,352.7,1.00|8,328.8,7.96", None, ["ratios"]),
    "a step time in a wrong unit": (
        "GPUs,GBS,Step time (s),img/s|8,256,101.0,2534.7",
        None,
        ["durations", "task_rates"],
    ),
    "a share of the peak": ("GPU,GPUs,Precision,TFLOPS/GPU,MFU|A100,8,bf16,156.3,50.1%", None, []),
    "a wrong share of the peak": ("GPU,GPUs,Precision,TFLOPS/GPU,MFU|A100,8,bf16,156.3,55.1%", None, ["utilisation"]),
    "metrics as rows below the devices": (
        "# GPUs,1,2,4|images/sec,352.7,690.1,1361.2|speedup,1.00x,1.96x,3.96x",
        None,
        ["ratios"],
    ),
    "a ratio of the first of two columns to the second": (
        "GPUs,Mixed precision throughput (img/s),FP32 throughput (img/s),Speedup (FP32 - mixed precision)"
        "|1,1028.0,380.0,2.71x|8,8100.0,2995.0,2.70x",
        None,
        [],
    ),
    "a ratio of each of two columns to its own first row": (
        "GPUs,amp img/s,fp32 img/s,Speedup,amp weak scaling,fp32 weak scaling"
        "|1,1028.0,380.0,2.71,1.00,1.00|8,8100.0,2995.0,2.70,7.88,7.38",
        None,
        ["ratios"],
    ),
    "a step of another batch": (
        "GPUs,samples/s,steps/s,batch per GPU|8,812.4,3.173,64",
        None,
        ["token_rates"],
    ),
    "batches on one device": ("batch_size,samples/s,step_time|32,2560.0,12.5|64,2655.6,24.1", None, []),
    "devices in the label of a row": ("config,tokens/s,tokens/s/GPU|8xH100,98304.0,12388.0", None, ["device_rates"]),
    "comments above the header": (
        "# DALI, on V100|# in March|GPUs,img/s,speedup|1,100.0,1.00|2,190.0,1.80",
        None,
        ["ratios"],
    ),
    "a header that begins with #": ("# GPUs,img/s,speedup|1,100.0,1.00|2,190.0,1.80", None, ["ratios"]),
    "a rate in thousands": ("GPUs,GBS,Step time (ms),img/s|8,2048,160.0,12.8k", None, []),
}


@pytest.mark.parametrize(("text", "table_format", "checks"), MADE_UP.values(), ids=MADE_UP)
def test_tables_as_people_write_them(tmp_path, text, table_format, checks):
    (tmp_path / "table.csv").write_text(text.replace("|", "\n") + "\n")
    checked = audit(read_tables(tmp_path / "table.csv", table_format).results)
    assert [one.name for one in checked if one.count(Severity.ERROR) or one.count(Severity.WARNING)] == checks
    assert any(one.examined for one in checked if one.name not in _SINGLE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('GPUs,img/s\n1,"1,024"\n', "which may be 1024 or 1.024: write it without the comma, or declare the decimal"),
        (
            "GPUs,Throughput\n1,100 img/s\n2,200 img/s\n4,300 tok/s\n",
            "column Throughput has numbers in img/s and in tok/s",
        ),
        (
            'GPUs,img/s\n1,"1,000"\n8,7.200\n',
            "column img/s has 1,000 and 7.200: one of the signs is before decimals, or both",
        ),
        ("On V100\nGPUs,img/s\n1,100\n2,190\n", "line 1 has 1 field, and all others have 2; put # before a text"),
        ("GPUs,img/s\n1,fast\n", "line 2: throughput is 'fast', which is not a number"),
        ("GPUs,note\n1,fast\n", "there is no column metric and no column of a metric; the columns are GPUs, note"),
    ],
)
def test_a_table_that_can_be_read_in_two_ways_or_none_is_refused(tmp_path, text, message):
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(TableError, match=r"table\.csv: ") as raised:
        read_tables(tmp_path / "table.csv")
    assert message in str(raised.value)


def test_runs_by_another_name_are_named(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("GPUs,throughput_run1,throughput_run2,avg\n1,100.0,102.0,101.0\n")
    [*_, runs] = [each.unused_numbers for each in read_tables(tmp_path / "table.csv").columns if "run" in each.header]
    assert runs == "call the columns of the runs of a result run1, run2, ..."


def test_a_batch_of_unknown_scope_and_a_time_of_unknown_unit_are_not_used(tmp_path):
    (tmp_path / "table.csv").write_text("GPUs,batch size,step time,img/s\n8,256,0.101,2534.7\n")
    unused = {column.header: column.unused_numbers for column in read_tables(tmp_path / "table.csv").columns}
    assert unused["batch size"].startswith("it does not say whether it is of one device or of the job")
    assert unused["step time"] == "neither its name nor its cells say the unit"


def test_a_column_of_decimals_with_commas_separates_no_rows(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("GPUs;Zeit;img/s\n1;370,8;100,0\n2;376,4;195,0\n")
    tables = read_tables(tmp_path / "table.csv", TableFormat(";", ","))
    assert [column.meaning.name for column in tables.columns] == ["world_size", "", "throughput"]


def test_a_rate_next_to_its_runs_and_their_mean_is_a_number_of_its_own(tmp_path: Path) -> None:
    text = "GPUs,img/s,run 1,run 2,run 3,mean\n1,100,99,100,101,100\n2,195,193,195,197,190\n"
    (tmp_path / "table.csv").write_text(text)
    results = read_tables(tmp_path / "table.csv").results
    [run_lists] = [check for check in audit(results) if check.name == "run_lists"]
    assert [diagnostic.cells[0].key for diagnostic in run_lists.diagnostics] == ["table.csv/row 2/throughput/mean"]


def test_a_deviation_without_its_runs_is_not_used(tmp_path):
    (tmp_path / "table.csv").write_text("GPUs,img/s,std\n8,2534.7,12.1\n")
    warnings = list(reading_warnings(read_tables(tmp_path / "table.csv")))
    assert warnings[0] == "numbers that are not checked: std: its runs are not in the table"


def test_a_point_decides_what_the_commas_of_a_table_are(tmp_path):
    (tmp_path / "table.md").write_text("| GPUs | img/s | mem |\n|---|---|---|\n| 8 | 2,840 | 38.2 |\n")
    [cell] = read_tables(tmp_path / "table.md").results.cells
    assert cell.value == 2840
    (tmp_path / "table.md").write_text("| GPUs | img/s |\n|---|---|\n| 8 | 2.840,5 |\n")
    [cell] = read_tables(tmp_path / "table.md", TableFormat(decimal=",")).results.cells
    assert cell.value == 2840.5


def test_a_rate_of_a_device_and_a_scaling_are_what_their_table_says(tmp_path: Path) -> None:
    table = (
        "| Model | Accelerators | Throughput (img/s) | Throughput per GPU | Scaling |\n|---|---|---|---|---|\n"
        "| ResNet-50 | 1 | 1,402 | 1402 | 1x |\n| ResNet-50 | 8 | 10,920 | 1465 | 7.79x |\n"
        "| ResNet-50 | 16 | 21,100 | 1319 | 15.9x |\n| ViT-B | 8 | OOM | - | n/a |\n"
    )
    (tmp_path / "table.md").write_text(table)
    tables = read_tables(tmp_path / "table.md")
    row = "samples_per_second_per_device  samples/s, as in Throughput (img/s)  one device"
    assert row in describe_columns(tables)
    errors = {one.name: one.count(Severity.ERROR) for one in audit(tables.results) if one.count(Severity.ERROR)}
    assert errors == {"device_rates": 1, "ratios": 1}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_table_may_be_in_the_unicode_of_excel(tmp_path: Path, encoding: str) -> None:
    text = "GPUs,images/s\r\n1,100\r\n2,195\r\n"
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    (tmp_path / "table.csv").write_bytes((mark + text).encode(encoding))
    assert [cell.value for cell in read_tables(tmp_path / "table.csv").results.of("throughput")] == [100, 195]


OWN = """\
Group,Devices,Runs completed,Throughput (samples/s),"Throughput, interval",Baseline throughput (samples/s),Speedup (×),\
"Speedup, interval",Efficiency,Against baseline,Notes
local,1,3 of 3,40.1,"[39.0, 41.2]",40.1,1,,1,,
async,1,3 of 3,50.2,"[49.0, 51.0]",40.1,1.25,"[1.20, 1.31]",1.25,faster,a remark
async,2,2 of 3,70.4,"[69.0, 71.9]",40.1,1.76,"[1.70, 1.81]",0.878,faster,1 run failed
"""


def test_a_column_with_the_rate_of_the_baseline_says_what_ratios_are_relative_to(tmp_path):
    """Remarks, intervals and counts of runs tell no curves apart."""
    (tmp_path / "own.csv").write_text(OWN)
    tables = read_tables(tmp_path / "own.csv")
    checked = {result.name: result for result in audit(tables.results)}
    assert checked["ratios"].examined == 6
    assert not [result for result in checked.values() if result.count(Severity.ERROR) + result.count(Severity.WARNING)]
    assert "throughput of the baseline" in describe_columns(tables)
    (tmp_path / "own.csv").write_text(OWN.replace("1.76", "1.86"))
    [damaged] = [result for result in audit(read_tables(tmp_path / "own.csv").results) if result.name == "ratios"]
    assert [diagnostic.computation for diagnostic in damaged.diagnostics if diagnostic.severity is Severity.ERROR] == [
        "70.4 / 40.1 = 1.7556, printed 1.86: it fits no rounding"
    ]
